// `tactus doctor`.
#include "client/local/doctor.h"

#include <algorithm>

#include "client/local/support_bundle.h"
#include "client/render/error_lines.h"
#include "client/text/text.h"
#include "client/verbs/words.h"
#include "runtime/now.h"

namespace tactus::client {
namespace {

constexpr std::size_t kBundleJobsMax = 100;

class DoctorVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb = AddVerb(program, "doctor",
                             "Look at this machine, the coordinator and its nodes: a line a "
                             "finding, with what to do. Ends with 1 when something is bad");
    verb->add_flag("--local", local_, "At this machine alone");
    verb->add_option(
        "--bundle", bundle_,
        "Also write what somebody who helps has to know into this folder: findings, "
        "settings, machine, nodes, jobs; secrets are left out, and it is yours to read "
        "before you hand it on");
  }
  ExitCode Run(const Means& means) override {
    std::vector<Finding> findings = JudgeHost(LookAtHost(means.surroundings));
    BundleContent content = {.version = TACTUS_VERSION,
                             .settings = RenderSettings(*means.settings, OutputFormat::kTable)};
    if (!local_) {
      findings.push_back(JudgeTls(LookAtTls(*means.settings)));
      const Instant begin = runtime::Now();
      content.nodes = means.client->ListAllNodes();
      const CoordinatorFacts facts = {
          .server = means.settings->server,
          .answer_seconds = ToSeconds(runtime::Now() - begin),
          .wall_seconds = static_cast<double>(runtime::WallNow()) * 1e-9,
          .version = TACTUS_VERSION};
      for (Finding& finding : JudgeNodes(facts, content.nodes)) {
        findings.push_back(std::move(finding));
      }
    }
    means.screen.Print(FormatFindings(findings));
    if (!bundle_.empty()) {
      content.findings = FormatFindings(findings);
      if (!local_) content.jobs = means.client->ListAllJobs({}, kBundleJobsMax);
      const auto paths = WriteSupportBundle(bundle_, content);
      if (!paths.ok()) return ReportError(paths.status(), means.screen);
      for (const std::string& path : *paths) means.screen.Say("written: " + Printable(path));
    }
    const bool bad = std::ranges::any_of(
        findings, [](const Finding& finding) { return finding.grade == Grade::kBad; });
    return bad ? ExitCode::kGeneric : ExitCode::kOk;
  }

 private:
  bool local_ = false;
  std::string bundle_;
};

}  // namespace

std::unique_ptr<Verb> MakeDoctor() { return std::make_unique<DoctorVerb>(); }

}  // namespace tactus::client
