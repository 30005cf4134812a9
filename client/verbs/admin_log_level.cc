// `tactus admin log-level`.
#include "client/render/error_lines.h"
#include "client/text/text.h"
#include "client/verbs/words.h"

namespace tactus::client {
namespace {

class LogLevelVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb =
        AddVerb(AdminGroup(program), "log-level",
                "How much the coordinator, or a node's agent, logs, until it is started again");
    verb->add_option("level", level_, "trace, debug, info, warn, error or off")
        ->required()
        ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}));
    verb->add_option("--node", node_, "The agent of this node, not the coordinator");
  }
  ExitCode Run(const Means& means) override {
    v1::SetLogLevelRequest request;
    request.set_level(level_);
    request.set_node(node_);
    const absl::Status status = means.client->SetLogLevel(request);
    if (!status.ok()) return ReportError(status, means.screen);
    const std::string who = node_.empty() ? "the coordinator" : "the agent of " + Printable(node_);
    means.screen.Say(who + " logs at level " + level_ + " until it is told otherwise or restarted");
    return ExitCode::kOk;
  }

 private:
  std::string level_;
  std::string node_;  // empty: the coordinator
};

}  // namespace

std::unique_ptr<Verb> MakeLogLevel() { return std::make_unique<LogLevelVerb>(); }

}  // namespace tactus::client
