// `tactus verify`.
#include "client/local/verify.h"

#include "client/render/error_lines.h"
#include "client/verbs/words.h"
#include "identity/credentials.h"
#include "identity/revocations.h"
#include "identity/secret_file.h"
#include "runtime/now.h"

namespace tactus::client {
namespace {

class VerifyVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb = AddVerb(program, "verify",
                             "Check that a downloaded result is what the coordinator vouched for: "
                             "a line a finding");
    verb->add_option("result", order_.folder, "Folder that tactus download wrote")->required();
    verb->add_option("--ca", authority_,
                     "The authority's certificate, ca.pem, which the coordinator's is to be of. "
                     "Else that of --tls-dir. Without either it is not asked who signed");
    verb->add_option("--revoked", revoked_,
                     "File of the revoked, a copy of revoked in the coordinator's --tls-dir. Else "
                     "that of --tls-dir, where it has one. What one of them has signed since it "
                     "was revoked is WRONG")
        ->type_name("FILE");
  }
  Need need() const override { return Need::kSettings; }
  ExitCode Run(const Means& means) override {
    const std::string& tls_dir = means.settings->tls_dir.value;
    if (authority_.empty() && !tls_dir.empty()) {
      const auto own = identity::CheckTlsFolder(tls_dir);
      if (!own.ok()) return Complain(own.status(), means);
      order_.domain = own->holder.domain;
      authority_ = tls_dir + "/ca.pem";
    }
    const absl::Status status = ReadRevoked(tls_dir);
    if (!status.ok()) return Complain(status, means);
    if (!authority_.empty()) {
      absl::StatusOr<std::string> text = identity::ReadSmallFile(authority_);
      if (!text.ok()) return Complain(text.status(), means);
      order_.authority = *std::move(text);
    }
    order_.now = runtime::WallSeconds();
    const absl::StatusOr<std::vector<VerifyFinding>> findings = VerifyResult(order_);
    if (!findings.ok()) return Complain(findings.status(), means);
    bool right = true;
    for (const VerifyFinding& finding : *findings) {
      means.screen.Print((finding.right ? "ok     " : "WRONG  ") + finding.text + "\n");
      right = right && finding.right;
    }
    return right ? ExitCode::kOk : ExitCode::kGeneric;
  }

 private:
  static ExitCode Complain(const absl::Status& status, const Means& means) {
    means.screen.Say(std::string(status.message()));
    return absl::IsNotFound(status) ? ExitCode::kNotFound : ExitCode::kUsage;
  }

  // That of a folder is there where it is the coordinator's own.
  absl::Status ReadRevoked(const std::string& tls_dir) {
    const bool given = !revoked_.empty();
    if (given && authority_.empty()) {
      return absl::InvalidArgumentError(
          "revoked: found without --ca or --tls-dir, without which it is not asked who signed");
    }
    if (!given && tls_dir.empty()) return absl::OkStatus();
    const std::string path = given ? revoked_ : tls_dir + "/" + identity::kRevokedFile;
    const absl::StatusOr<std::string> text = identity::ReadSmallFile(path);
    if (!given && absl::IsNotFound(text.status())) return absl::OkStatus();
    if (!text.ok()) return text.status();
    absl::StatusOr<identity::Revocations> revoked = identity::Revocations::Parse(*text);
    if (!revoked.ok()) {
      return absl::InvalidArgumentError(path + ": " + std::string(revoked.status().message()));
    }
    order_.revoked = *std::move(revoked);
    return absl::OkStatus();
  }

  VerifyOrder order_;
  std::string authority_;
  std::string revoked_;
};

}  // namespace

std::unique_ptr<Verb> MakeVerify() { return std::make_unique<VerifyVerb>(); }

}  // namespace tactus::client
