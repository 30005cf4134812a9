// `tactus doctor`.
#include "client/local/doctor.h"

#include <algorithm>

#include "client/verbs/words.h"
#include "runtime/now.h"

namespace tactus::client {
namespace {

class DoctorVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb = AddVerb(program, "doctor",
                             "Look at this machine, the coordinator and its nodes: a line a "
                             "finding, with what to do. Ends with 1 when something is bad");
    verb->add_flag("--local", local_, "At this machine alone");
  }
  ExitCode Run(const Means& means) override {
    std::vector<Finding> findings = JudgeHost(LookAtHost(means.surroundings));
    if (!local_) {
      const Instant begin = runtime::Now();
      const absl::StatusOr<v1::ListNodesResponse> nodes = means.client->ListAllNodes();
      const CoordinatorFacts facts = {
          .server = means.settings->server,
          .answer_seconds = ToSeconds(runtime::Now() - begin),
          .wall_seconds = static_cast<double>(runtime::WallNow()) * 1e-9,
          .version = TACTUS_VERSION};
      for (Finding& finding : JudgeNodes(facts, nodes)) findings.push_back(std::move(finding));
    }
    means.screen.Print(FormatFindings(findings));
    const bool bad = std::ranges::any_of(
        findings, [](const Finding& finding) { return finding.grade == Grade::kBad; });
    return bad ? ExitCode::kGeneric : ExitCode::kOk;
  }

 private:
  bool local_ = false;
};

}  // namespace

std::unique_ptr<Verb> MakeDoctor() { return std::make_unique<DoctorVerb>(); }

}  // namespace tactus::client
