// `tactus admin token`.
#include "client/render/error_lines.h"
#include "client/verbs/words.h"
#include "runtime/now.h"

namespace tactus::client {
namespace {

constexpr std::uint64_t kHoursMax = 168;

class TokenVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb = AddVerb(AdminGroup(program), "token",
                             "Make a token, with which one node or user comes by a certificate");
    AddRepeated(verb, "--node", &nodes_, "For an agent's --join, as this node; may be repeated");
    AddRepeated(verb, "--user", &users_, "For tactus login, as this user; may be repeated");
    verb->add_option("--hours", hours_, "How long it may be used")
        ->check(WholeNumber(1, kHoursMax))
        ->capture_default_str();
  }
  std::string Check() override {
    return nodes_.empty() && users_.empty() ? "--node or --user: one is needed at least" : "";
  }
  // One a line, the nodes' before the users'.
  ExitCode Run(const Means& means) override {
    for (const std::string& node : nodes_) {
      v1::CreateTokenRequest request;
      request.set_node(node);
      if (const ExitCode code = Make(request, means); code != ExitCode::kOk) return code;
    }
    for (const std::string& user : users_) {
      v1::CreateTokenRequest request;
      request.set_user(user);
      if (const ExitCode code = Make(request, means); code != ExitCode::kOk) return code;
    }
    const std::string& server = means.settings->server.value;
    if (!nodes_.empty()) {
      means.screen.Say("on the node: tactus-agent --coordinator " + server +
                       " --tls-dir DIR --join TOKEN --address ITS_ADDRESS");
    }
    if (!users_.empty()) {
      means.screen.Say("the user: tactus login --server " + server + " --token TOKEN");
    }
    return ExitCode::kOk;
  }

 private:
  ExitCode Make(v1::CreateTokenRequest& request, const Means& means) const {
    request.set_hours(static_cast<std::uint32_t>(hours_));
    const absl::StatusOr<v1::CreateTokenResponse> made = means.client->CreateToken(request);
    if (!made.ok()) return ReportError(made.status(), means.screen);
    means.screen.Print(made->token() + "\n");
    return ExitCode::kOk;
  }

  std::vector<std::string> nodes_;
  std::vector<std::string> users_;
  std::uint64_t hours_ = 24;
};

}  // namespace

std::unique_ptr<Verb> MakeToken() { return std::make_unique<TokenVerb>(); }

}  // namespace tactus::client
