// `tactus login`.
#include "client/local/login.h"

#include "client/render/error_lines.h"
#include "client/verbs/words.h"
#include "identity/enrolment.h"
#include "identity/secret_file.h"
#include "runtime/now.h"
#include "runtime/options.h"

namespace tactus::client {
namespace {

class LoginVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb =
        AddVerb(program, "login",
                "Come by a certificate at --server with a token, and go there from now "
                "on: a folder for --tls-dir, and a context that names it");
    verb->add_option("--token", token_, "The token, as tactus admin token --user prints it");
    verb->add_option("--token-file", token_file_, "A file that has it and not everybody may read");
    verb->add_option("--name", name_, "The context's name; default: the coordinator's host");
  }
  std::string Check() override {
    return token_.empty() == token_file_.empty() ? "allowed is exactly one of --token, --token-file"
                                                 : "";
  }
  Need need() const override { return Need::kSettings; }
  ExitCode Run(const Means& means) override {
    const Setting& tls_dir = means.settings->tls_dir;
    const bool given = tls_dir.source.starts_with("flag ");
    const LoginPlace place = PlaceOf({.server = means.settings->server.value,
                                      .name = name_,
                                      .folder = given ? tls_dir.value : ""},
                                     means.surroundings.folders);
    if (!token_file_.empty()) {
      const absl::StatusOr<std::string> read = identity::ReadKeyFile(token_file_);
      if (!read.ok()) return ReportError(OfLocalFile(read.status()), means.screen);
      token_ = *read;
    }
    if (const absl::Status room = MakeRoomFor(place); !room.ok()) {
      return ReportError(room, means.screen);
    }
    const auto within = runtime::ParseDuration(means.settings->request_timeout.value);
    const absl::StatusOr<identity::Certificate> own =
        identity::EnrolInto({.folder = place.folder,
                             .server = place.server,
                             .token = token_,
                             .within = within.ok() ? *within : Seconds(10)});
    if (!own.ok()) return ReportError(own.status(), means.screen);
    if (const absl::Status used = UseLogin(place); !used.ok()) {
      return ReportError(used, means.screen);
    }
    means.screen.Print(identity::SpiffeIdOf(own->holder) + "\n");
    means.screen.Say("context " + place.context + " is in use, with the certificate in " +
                     place.folder + ", which is valid until " + runtime::UtcText(own->end) +
                     " and renewed by use");
    return ExitCode::kOk;
  }

 private:
  std::string token_;
  std::string token_file_;
  std::string name_;
};

}  // namespace

std::unique_ptr<Verb> MakeLogin() { return std::make_unique<LoginVerb>(); }

}  // namespace tactus::client
