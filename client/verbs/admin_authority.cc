// `tactus admin init-ca`, `rotate-ca`, `issue`, `revoke`: a small certificate authority, in files.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>

#include "client/local/login.h"
#include "client/render/error_lines.h"
#include "client/verbs/words.h"
#include "identity/authority.h"
#include "identity/revocations.h"
#include "identity/rotation.h"
#include "identity/tls_folder.h"
#include "runtime/now.h"

namespace tactus::client {
namespace {

constexpr std::uint64_t kDaysMax = 36'500;
constexpr char kKeyOfCoordinators[] = "mesh-key";  // in the folder that several share, always
constexpr char kAdmin[] = "admin";                 // who is one where no policy says otherwise

// Of what is done with files of this machine.
ExitCode Report(const absl::Status& status, const Means& means) {
  if (absl::IsAlreadyExists(status)) {
    means.screen.Say(std::string(status.message()));
    return ExitCode::kConflict;
  }
  if (absl::IsInvalidArgument(status) || absl::IsNotFound(status) ||
      absl::IsFailedPrecondition(status)) {
    means.screen.Say(std::string(status.message()));
    return ExitCode::kUsage;
  }
  return ReportError(OfLocalFile(status), means.screen);
}

class InitAuthorityVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb = AddVerb(AdminGroup(program), "init-ca",
                             "Make a certificate authority, whose certificates say who is who");
    verb->add_option("--out", folder_, "Its folder: ca.pem, and ca-key.pem, which signs")
        ->required();
    verb->add_option("--domain", domain_, "The trust domain, a part of every name it gives")
        ->capture_default_str();
    verb->add_option("--days", days_, "How long it is valid")
        ->check(WholeNumber(1, kDaysMax))
        ->capture_default_str();
    verb->add_option("--login", server_,
                     "The coordinator that is going to be at HOST:PORT: make the user admin's "
                     "certificate, too, and a context that goes there with it");
  }
  Need need() const override { return Need::kNothing; }
  ExitCode Run(const Means& means) override {
    const LoginPlace place = PlaceOf({.server = server_}, means.surroundings.folders);
    if (!server_.empty() && !identity::NeedsCertificate(place.folder, runtime::WallSeconds())) {
      means.screen.Say(place.folder + ": has a certificate already, and is left as it is");
      return ExitCode::kConflict;
    }
    const absl::Status made =
        identity::InitAuthority(folder_, domain_, runtime::WallSeconds(), static_cast<int>(days_));
    if (!made.ok()) return Report(made, means);
    means.screen.Print(folder_ + "/ca.pem\n" + folder_ + "/ca-key.pem\n");
    means.screen.Say("whoever has ca-key.pem can be anybody: keep it off the nodes");
    return server_.empty() ? ExitCode::kOk : LogIn(place, means);
  }

 private:
  ExitCode LogIn(const LoginPlace& place, const Means& means) const {
    absl::Status done = MakeRoomFor(place);
    if (!done.ok()) return Report(done, means);
    const absl::StatusOr<identity::Certificate> issued = identity::IssueInto(
        folder_, place.folder,
        {.kind = identity::Kind::kUser, .name = kAdmin, .now = runtime::WallSeconds()});
    if (!issued.ok()) return Report(issued.status(), means);
    done = UseLogin(place);
    if (!done.ok()) return Report(done, means);
    means.screen.Say("context " + place.context + " is in use, as the user " + kAdmin);
    return ExitCode::kOk;
  }

  std::string server_;  // empty: nobody logs in
  std::string folder_;
  std::string domain_ = identity::kDomainDefault;
  std::uint64_t days_ = 3650;
};

class RotateAuthorityVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb =
        AddVerb(AdminGroup(program), "rotate-ca",
                "Have another key take the place of an authority's, while all goes on");
    verb->add_option("--ca", authority_, "The authority's folder, of init-ca")->required();
    verb->add_option("--over", over_,
                     "From now until the new key signs, and as long again until the old one is not "
                     "trusted; not less than certificates live")
        ->check(DurationText())
        ->capture_default_str();
    verb->add_option("--days", days_, "How long the new authority is valid")
        ->check(WholeNumber(1, kDaysMax))
        ->capture_default_str();
  }
  Need need() const override { return Need::kNothing; }
  ExitCode Run(const Means& means) override {
    const std::int64_t over = GivenDuration(over_).value_or(Duration(0)) / Seconds(1);
    const absl::StatusOr<identity::Rotated> rotated = identity::RotateAuthority(
        authority_, {.now = runtime::WallSeconds(), .over = over, .days = static_cast<int>(days_)});
    if (!rotated.ok()) return Report(rotated.status(), means);
    means.screen.Print("the new key signs from " + runtime::UtcText(rotated->signs) +
                       "\nthe old one ends at " + runtime::UtcText(rotated->closed) + "\n");
    return ExitCode::kOk;
  }

 private:
  std::string authority_;
  std::string over_ = "7d";
  std::uint64_t days_ = 3650;
};

// Whom a certificate is about: exactly one of the options.
struct Holder {
  std::string node{};
  std::string user{};
  bool coordinator = false;

  void Declare(CLI::App* verb) {
    verb->add_option("--node", node, "An agent's node, of this name");
    verb->add_option("--user", user, "A user, of this name");
    verb->add_flag("--coordinator", coordinator, "The coordinator");
  }
  int given() const { return !node.empty() + !user.empty() + (coordinator ? 1 : 0); }
  identity::Kind kind() const {
    if (coordinator) return identity::Kind::kCoordinator;
    return node.empty() ? identity::Kind::kUser : identity::Kind::kNode;
  }
  std::string name() const { return node.empty() ? user : node; }
};

class IssueVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb = AddVerb(AdminGroup(program), "issue",
                             "Issue a certificate: the folder for somebody's --tls-dir");
    holder_.Declare(verb);
    verb->add_option("--ca", authority_, "The authority's folder, of init-ca")->required();
    verb->add_option("--out", folder_, "Where ca.pem, cert.pem and key.pem are to be")->required();
    AddRepeated(verb, "--dns", &dns_, "A host name, for programs beside Tactus; may be repeated");
    AddRepeated(verb, "--ip", &addresses_, "An address, likewise");
    verb->add_option("--days", days_, "How long it is valid")
        ->check(WholeNumber(1, kDaysMax))
        ->capture_default_str();
    verb->add_flag("--renew", renew_,
                   "For the holder and key that --out has: cert.pem alone is replaced, while it is "
                   "in use");
  }
  std::string Check() override {
    if (holder_.given() == (renew_ ? 0 : 1)) return "";
    return renew_ ? "--renew: goes without --node, --user and --coordinator, which stay as they are"
                  : "allowed is exactly one of --node, --user, --coordinator";
  }
  Need need() const override { return Need::kNothing; }
  ExitCode Run(const Means& means) override {
    const identity::CertificateOrder order = {
        .kind = holder_.kind(),
        .name = holder_.name(),
        .dns = dns_,
        .addresses = addresses_,
        .now = runtime::WallSeconds(),
        .seconds = static_cast<std::int64_t>(days_) * identity::kDaySeconds};
    const absl::StatusOr<identity::Certificate> issued =
        renew_ ? identity::RenewIn(authority_, folder_, order)
               : identity::IssueInto(authority_, folder_, order);
    if (!issued.ok()) return Report(issued.status(), means);
    means.screen.Print(identity::SpiffeIdOf(issued->holder) + "\nserial " + issued->serial + "\n");
    return ExitCode::kOk;
  }

 private:
  Holder holder_;
  std::string authority_;
  std::string folder_;
  std::vector<std::string> dns_;
  std::vector<std::string> addresses_;
  std::uint64_t days_ = 7;
  bool renew_ = false;
};

// A list that no coordinator reads lets everybody in as before.
absl::Status CheckCoordinators(const std::string& folder) {
  const auto own = identity::CertificateOfFolder(folder);
  if (own.ok() && own->holder.kind == identity::Kind::kCoordinator) return absl::OkStatus();
  std::error_code ignored;
  if (std::filesystem::exists(folder + "/" + kKeyOfCoordinators, ignored)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--in: " + folder + ": " +
      (own.ok() ? "has the certificate of " + identity::ShortNameOf(own->holder)
                : "has no coordinator's cert.pem") +
      "; allowed is the --tls-dir of a coordinator, or the --files-dir of several");
}

class RevokeVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb = AddVerb(AdminGroup(program), "revoke",
                             "Let a node, a user or one certificate in no more, within seconds");
    holder_.Declare(verb);
    verb->add_option("--serial", serial_, "One certificate, by the number that issue printed");
    verb->add_option(
            "--in", folder_,
            "The coordinator's --tls-dir, on its machine: file revoked. Of several with one "
            "--store: their --files-dir, for all of them")
        ->required();
    verb->add_option("--since", since_text_,
                     "When somebody else may have had the key first, such as "
                     "2026-12-02T10:00:00Z: results signed since then are WRONG to tactus verify. "
                     "Default: now. It is let in no more from now on, whatever this says")
        ->type_name("TIME");
  }
  std::string Check() override {
    if (!since_text_.empty()) {
      since_ = identity::ParseMoment(since_text_);
      const std::int64_t now = runtime::WallSeconds();
      if (!since_ || *since_ > now) {
        return "--since: found \"" + since_text_ +
               "\", allowed is a time such as 2026-12-02T10:00:00Z, and none that is to come";
      }
    }
    return holder_.given() + (serial_.empty() ? 0 : 1) == 1
               ? ""
               : "allowed is exactly one of --node, --user, --coordinator, --serial";
  }
  Need need() const override { return Need::kNothing; }
  ExitCode Run(const Means& means) override {
    const std::string entry =
        serial_.empty() ? identity::ShortNameOf({.kind = holder_.kind(), .name = holder_.name()})
                        : "serial " + serial_;
    absl::Status revoked = identity::CheckEntry(entry);
    if (revoked.ok()) revoked = CheckCoordinators(folder_);
    if (revoked.ok()) {
      revoked = identity::Revoke(folder_ + "/" + identity::kRevokedFile, entry,
                                 since_.value_or(runtime::WallSeconds()));
    }
    if (!revoked.ok()) return Report(revoked, means);
    means.screen.Print(entry + "\n");
    return ExitCode::kOk;
  }

 private:
  Holder holder_;
  std::string serial_;
  std::string folder_;
  std::string since_text_;
  std::optional<std::int64_t> since_;
};

}  // namespace

std::unique_ptr<Verb> MakeInitAuthority() { return std::make_unique<InitAuthorityVerb>(); }
std::unique_ptr<Verb> MakeRotateAuthority() { return std::make_unique<RotateAuthorityVerb>(); }
std::unique_ptr<Verb> MakeIssue() { return std::make_unique<IssueVerb>(); }
std::unique_ptr<Verb> MakeRevoke() { return std::make_unique<RevokeVerb>(); }

}  // namespace tactus::client
