// `tactus delete`.
#include <optional>

#include "client/render/error_lines.h"
#include "client/text/text.h"
#include "client/verbs/words.h"

namespace tactus::client {
namespace {

// Jobs without a noun, as what is deleted day by day.
class DeleteVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb = AddVerb(program, "delete",
                             "Forget jobs that are over, with their history, logs and files; or, "
                             "with the word node, nodes that are gone");
    // Not required: CLI11 would take the word node for the first of them.
    verb->add_option("job", jobs_, "The jobs' names");
    verb->add_flag("--yes", yes_, "Do not ask; needed where there is no terminal");
    CLI::App* node =
        AddVerb(*verb, "node", "Forget nodes whose agents are gone, with their cordons");
    node->add_option("node", nodes_, "The nodes' names")->required();
  }
  std::string Check() override {
    if (jobs_.empty() && nodes_.empty()) return "job is required; --help says what is allowed";
    if (jobs_.empty() || nodes_.empty()) return "";
    return "delete: found jobs and nodes, allowed are either";
  }
  ExitCode Run(const Means& means) override {
    api::Client& client = *means.client;
    if (!nodes_.empty()) {
      return Delete(
          {.kind = "node", .names = nodes_, .with = "cordon"},
          [&](const std::string& name) { return client.DeleteNode(name); }, means.screen);
    }
    return Delete(
        {.kind = "job", .names = jobs_, .with = "history, logs and files"},
        [&](const std::string& name) { return client.DeleteJob(name); }, means.screen);
  }

 private:
  struct Doomed {
    std::string kind{};  // "job"
    std::vector<std::string> names{};
    std::string with{};  // what goes with each
  };

  // Goes on after a failure; the first one is the program's.
  ExitCode Delete(const Doomed& doomed, const auto& call, const Screen& screen) const {
    if (const ExitCode sure = Confirm(doomed, screen); sure != ExitCode::kOk) return sure;
    ExitCode code = ExitCode::kOk;
    for (const std::string& name : doomed.names) {
      const absl::Status status = call(name);
      if (status.ok()) {
        screen.Say(doomed.kind + " " + Printable(ShortName(name)) + " deleted");
      } else {
        const ExitCode failed = ReportError(status, screen);
        if (code == ExitCode::kOk) code = failed;
      }
    }
    return code;
  }

  // kOk: delete.
  ExitCode Confirm(const Doomed& doomed, const Screen& screen) const {
    if (yes_) return ExitCode::kOk;
    const std::string what = doomed.names.size() == 1
                                 ? doomed.kind + " " + Printable(doomed.names.front())
                                 : std::to_string(doomed.names.size()) + " " + doomed.kind + "s";
    const std::optional<bool> sure = screen.Ask("delete " + what + " with " + doomed.with + "?");
    if (!sure) {
      screen.Say("delete: there is no terminal to ask on; --yes deletes without asking");
      return ExitCode::kUsage;
    }
    if (*sure) return ExitCode::kOk;
    screen.Say("nothing was deleted");
    return ExitCode::kInterrupted;
  }

  std::vector<std::string> jobs_;
  std::vector<std::string> nodes_;  // not empty: instead of jobs_
  bool yes_ = false;
};

}  // namespace

std::unique_ptr<Verb> MakeDelete() { return std::make_unique<DeleteVerb>(); }

}  // namespace tactus::client
