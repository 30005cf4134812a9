// `tactus delete`.
#include <optional>

#include "client/render/error_lines.h"
#include "client/text/text.h"
#include "client/verbs/words.h"

namespace tactus::client {
namespace {

class DeleteVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb =
        AddVerb(program, "delete", "Forget jobs that are over, with their history, logs and files");
    verb->add_option("job", names_, "The jobs' names")->required();
    verb->add_flag("--yes", yes_, "Do not ask; needed where there is no terminal");
  }
  ExitCode Run(const Means& means) override {
    if (const ExitCode sure = Confirm(means.screen); sure != ExitCode::kOk) return sure;
    ExitCode code = ExitCode::kOk;
    for (const std::string& name : names_) {
      const absl::Status status = means.client->DeleteJob(name);
      if (status.ok()) {
        means.screen.Say("job " + Printable(ShortName(name)) + " deleted");
      } else {
        const ExitCode failed = ReportError(status, means.screen);
        if (code == ExitCode::kOk) code = failed;
      }
    }
    return code;
  }

 private:
  // kOk: delete.
  ExitCode Confirm(const Screen& screen) const {
    if (yes_) return ExitCode::kOk;
    const std::string what = names_.size() == 1 ? "job " + Printable(names_.front())
                                                : std::to_string(names_.size()) + " jobs";
    const std::optional<bool> sure =
        screen.Ask("delete " + what + " with history, logs and files?");
    if (!sure) {
      screen.Say("delete: there is no terminal to ask on; --yes deletes without asking");
      return ExitCode::kUsage;
    }
    if (*sure) return ExitCode::kOk;
    screen.Say("nothing was deleted");
    return ExitCode::kInterrupted;
  }

  std::vector<std::string> names_;
  bool yes_ = false;
};

}  // namespace

std::unique_ptr<Verb> MakeDelete() { return std::make_unique<DeleteVerb>(); }

}  // namespace tactus::client
