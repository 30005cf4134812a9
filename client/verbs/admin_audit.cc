// `tactus admin audit`.
#include <fstream>

#include "client/render/error_lines.h"
#include "client/verbs/words.h"
#include "coordinator/access/audit_chain.h"

namespace tactus::client {
namespace {

class AuditVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb = AddVerb(AdminGroup(program), "audit",
                             "Who changed what, and who was refused: the coordinator's audit log, "
                             "on its machine");
    verb->add_option("--state-dir", state_folder_, "The coordinator's --state-dir")->required();
    verb->add_flag("--verify", verify_, "Say whether it is intact, or from where on it is not");
  }
  Need need() const override { return Need::kNothing; }
  ExitCode Run(const Means& means) override {
    const std::string folder = state_folder_ + "/audit";
    return verify_ ? Verify(folder, means) : Show(folder, means);
  }

 private:
  static ExitCode Complain(const absl::Status& status, const Means& means) {
    means.screen.Say(std::string(status.message()));
    return absl::IsDataLoss(status) ? ExitCode::kGeneric : ExitCode::kUsage;
  }

  static ExitCode Verify(const std::string& folder, const Means& means) {
    const absl::StatusOr<access::AuditReport> report = access::VerifyAudit(folder);
    if (!report.ok()) return Complain(report.status(), means);
    std::string text = "intact: " + std::to_string(report->lines) + " lines, " +
                       std::to_string(report->first) + " to " + std::to_string(report->end.number) +
                       "\n";
    if (report->removal_line > 0) {
      text += "lines before " + std::to_string(report->first) +
              " were removed for room (--audit-bytes), as line " +
              std::to_string(report->removal_line) + " says\n";
    }
    means.screen.Print(text + "last hash " + report->end.hash + "\n");
    return ExitCode::kOk;
  }

  static ExitCode Show(const std::string& folder, const Means& means) {
    const std::vector<std::string> files = access::AuditFiles(folder);
    if (files.empty()) {
      return Complain(absl::NotFoundError(folder + ": there is no audit log"), means);
    }
    for (const std::string& file : files) {
      std::ifstream in(folder + "/" + file, std::ios::binary);
      if (!in) return Complain(absl::NotFoundError(folder + "/" + file + ": not readable"), means);
      // A line that is being written has no end yet.
      for (std::string line; std::getline(in, line) && !in.eof();) means.screen.Print(line + "\n");
    }
    return ExitCode::kOk;
  }

  std::string state_folder_;
  bool verify_ = false;
};

}  // namespace

std::unique_ptr<Verb> MakeAudit() { return std::make_unique<AuditVerb>(); }

}  // namespace tactus::client
