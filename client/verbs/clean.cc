// `tactus clean`.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "client/local/run_folder.h"
#include "client/render/error_lines.h"
#include "client/text/text.h"
#include "client/verbs/words.h"

namespace tactus::client {
namespace {

class CleanVerb : public Verb {
 public:
  void Declare(CLI::App& program) override {
    CLI::App* verb = AddVerb(program, "clean",
                             "Remove what runs left in their folders on this machine: logs and "
                             "databases, of runs that are over. Shows it, and asks, before");
    verb->add_flag("--results", results_, "Also results that run put there, for want of --output");
    verb->add_flag("--yes", yes_, "Do not ask; needed where there is no terminal");
  }
  Need need() const override { return Need::kNothing; }
  ExitCode Run(const Means& means) override {
    const Screen& screen = means.screen;
    std::vector<FormerRun> runs = FormerRuns(means.surroundings.folders.state);
    const auto used = std::erase_if(runs, [](const FormerRun& run) { return run.in_use; });
    if (used > 0) screen.Say(CountOf(used, "run") + " in use, which stays");
    std::erase_if(runs, [this](const FormerRun& run) { return Goes(run) == 0 && !IsEmpty(run); });
    if (runs.empty()) {
      screen.Say("there is nothing to remove");
      return ExitCode::kOk;
    }
    screen.Print(Table(runs));
    if (const ExitCode sure = Confirm(runs, screen); sure != ExitCode::kOk) return sure;
    return Remove(runs, screen);
  }

 private:
  // Bytes that are removed.
  std::uint64_t Goes(const FormerRun& run) const {
    return results_ ? run.bytes : run.bytes - run.result_bytes;
  }
  static bool IsEmpty(const FormerRun& run) { return run.bytes == 0; }

  std::string Table(const std::vector<FormerRun>& runs) const {
    std::vector<std::vector<std::string>> rows = {{"FOLDER", "REMOVED", "RESULT"}};
    for (const FormerRun& run : runs) {
      const bool stays = !results_ && run.result_bytes > 0;
      rows.push_back({Printable(run.path), FormatBytes(Goes(run)),
                      run.result_bytes == 0 ? "-"
                      : stays               ? "stays, " + FormatBytes(run.result_bytes)
                                            : "removed"});
    }
    return FormatTable(rows);
  }

  // kOk: remove.
  ExitCode Confirm(const std::vector<FormerRun>& runs, const Screen& screen) const {
    if (yes_) return ExitCode::kOk;
    const std::optional<bool> sure =
        screen.Ask("remove this of " + CountOf(runs.size(), "run") + "?");
    if (!sure) {
      screen.Say("clean: there is no terminal to ask on; --yes removes without asking");
      return ExitCode::kUsage;
    }
    if (*sure) return ExitCode::kOk;
    screen.Say("nothing was removed");
    return ExitCode::kInterrupted;
  }

  ExitCode Remove(const std::vector<FormerRun>& runs, const Screen& screen) const {
    ExitCode code = ExitCode::kOk;
    std::uint64_t bytes = 0;
    for (const FormerRun& run : runs) {
      const absl::Status removed = OfLocalFile(RemoveRun(run.path, results_));
      if (removed.ok()) {
        bytes += Goes(run);
      } else {
        code = ReportError(removed, screen);
      }
    }
    screen.Say(FormatBytes(bytes) + " removed");
    return code;
  }

  bool results_ = false;
  bool yes_ = false;
};

}  // namespace

std::unique_ptr<Verb> MakeClean() { return std::make_unique<CleanVerb>(); }

}  // namespace tactus::client
