// `tactus doctor`.
#include "client/local/doctor.h"

#include <algorithm>

#include "client/local/doctor_blobs.h"
#include "client/local/doctor_links.h"
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
    verb->add_flag("--links", links_,
                   "Also at the links between nodes: each agent sends to the next for a second, "
                   "128 MiB at most, one after the other. Nodes with jobs are left out");
    verb->add_flag("--while-training", while_training_,
                   "With --links: also of nodes with jobs, whose rounds may take longer meanwhile");
    verb->add_option("--blobs", blobs_.place,
                     "Also at the bucket of a coordinator's --blobs, s3://BUCKET/PREFIX: writes, "
                     "reads, lists and removes an object, and compares clocks; keys as there");
    verb->add_option("--blobs-endpoint", blobs_.endpoint, "With --blobs: as the coordinator's");
    verb->add_option("--blobs-region", blobs_.region, "With --blobs: as the coordinator's");
    verb->add_option("--blobs-credentials", blobs_.keys_file, "With --blobs: as the coordinator's");
    verb->add_option("--blobs-ca", blobs_.authority_file, "With --blobs: as the coordinator's");
    verb->add_option(
        "--bundle", bundle_,
        "Also write what somebody who helps has to know into this folder: findings, "
        "settings, machine, nodes, jobs; secrets are left out, and it is yours to read "
        "before you hand it on");
  }
  std::string Check() override {
    const absl::Status blobs = blobs_.Validate();
    if (!blobs.ok()) return "--" + std::string(blobs.message());
    if (while_training_ && !links_) return "--while-training: goes with --links";
    return links_ && local_ ? "--links: are between nodes; goes without --local" : "";
  }
  ExitCode Run(const Means& means) override {
    std::vector<Finding> findings = JudgeHost(LookAtHost(means.surroundings));
    BundleContent content = {.version = TACTUS_VERSION,
                             .settings = RenderSettings(*means.settings, OutputFormat::kTable)};
    if (!blobs_.place.empty()) {
      blobs_.keys = means.surroundings.bucket_keys;
      findings.push_back(JudgeBlobs(blobs_, LookAtBlobs(blobs_)));
    }
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
    if (links_ && content.nodes.ok()) {
      const std::vector<LinkFound> links = Probe(*content.nodes, means);
      const absl::Status refused = links.empty() ? absl::OkStatus() : RefusalOf(links.back());
      if (!refused.ok()) {
        means.screen.Print(FormatFindings(findings));
        return ReportError(refused, means.screen);
      }
      for (Finding& finding : JudgeLinks(links, NodesLeftOut(*content.nodes))) {
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
  // Up to the first that the coordinator does not let this user measure.
  std::vector<LinkFound> Probe(const v1::ListNodesResponse& nodes, const Means& means) const {
    std::vector<LinkFound> links;
    for (const auto& [from, to] : LinksToProbe(nodes)) {
      v1::ProbeLinkRequest request;
      request.set_from(from);
      request.set_to(to);
      request.set_while_training(while_training_);
      links.push_back({.from = from, .to = to, .found = means.client->ProbeLink(request)});
      if (!RefusalOf(links.back()).ok()) break;
    }
    return links;
  }

  bool local_ = false;
  bool links_ = false;
  bool while_training_ = false;
  std::string bundle_;
  bucket::BucketOptions blobs_;
};

}  // namespace

std::unique_ptr<Verb> MakeDoctor() { return std::make_unique<DoctorVerb>(); }

}  // namespace tactus::client
