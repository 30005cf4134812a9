// The program `tactus`.

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

#include "client/api/client.h"
#include "client/ask/simulate.h"
#include "client/cli/command_line_parser.h"
#include "client/cli/command_tree.h"
#include "client/cli/completion.h"
#include "client/cli/man_pages.h"
#include "client/local/run.h"
#include "client/local/settings.h"
#include "client/local/surroundings.h"
#include "client/render/error_lines.h"
#include "client/render/exit_code.h"
#include "client/render/screen.h"
#include "client/verbs/replay.h"
#include "client/verbs/verbs.h"

namespace tactus::client {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Surroundings FindSurroundings() {
  std::error_code ignored;
  return {.settings = {.server = Variable("TACTUS_SERVER"),
                       .context = Variable("TACTUS_CONTEXT"),
                       .request_timeout = Variable("TACTUS_REQUEST_TIMEOUT"),
                       .output = Variable("TACTUS_OUTPUT")},
          .no_color = !Variable("NO_COLOR").empty(),
          .dumb_terminal = Variable("TERM") == "dumb",
          .folders = runtime::FoldersFromEnvironment(),
          .binary_folder =
              std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path().string()};
}

// The verbs that need a coordinator.
struct Talk {
  api::Client& client;
  const Screen& screen;
  const Settings& settings;

  ExitCode operator()(const SubmitCommand& command) { return Submit(command, client, screen); }
  ExitCode operator()(GetCommand command) {
    if (!command.output) command.output = ParseOutputFormat(settings.output.value);
    return Get(command, client, screen);
  }
  ExitCode operator()(const DescribeCommand& command) { return Describe(command, client, screen); }
  ExitCode operator()(const ExplainCommand& command) { return Explain(command, client, screen); }
  ExitCode operator()(const WatchCommand& command) { return Watch(command, client, screen); }
  ExitCode operator()(const WaitCommand& command) { return Wait(command, client, screen); }
  ExitCode operator()(const LogsCommand& command) { return Logs(command, client, screen); }
  ExitCode operator()(const UpdateCommand& command) { return Update(command, client, screen); }
  ExitCode operator()(const CancelCommand& command) { return Cancel(command, client, screen); }
  ExitCode operator()(const PauseCommand& command) { return Pause(command, client, screen); }
  ExitCode operator()(const ResumeCommand& command) { return Resume(command, client, screen); }
  ExitCode operator()(const DeleteCommand& command) { return Delete(command, client, screen); }
  ExitCode operator()(const DownloadCommand& command) { return Download(command, client, screen); }
  ExitCode operator()(const NodeCommand& command) { return ChangeNode(command, client, screen); }
  ExitCode operator()(const TopCommand& command) { return Top(command, client, screen); }
  ExitCode operator()(const TraceCommand& command) { return Trace(command, client, screen); }
  ExitCode operator()(const PlotCommand& command) { return DrawPlot(command, client, screen); }
  ExitCode operator()(const BackupCommand& command) { return Backup(command, client, screen); }
  ExitCode operator()(const LogLevelCommand& command) {
    return SetLogLevel(command, client, screen);
  }
  ExitCode operator()(const IntegrityCommand& command) {
    return CheckIntegrity(command, client, screen);
  }
  ExitCode operator()(const SimulateCommand& command) {
    return SimulateHistory(command, client, screen);
  }
  // Those that were done before.
  template <typename Other>
  ExitCode operator()(const Other&) {
    return ExitCode::kGeneric;
  }
};

ExitCode ShowConfig(const ConfigCommand& command, const Settings& settings, const Screen& screen) {
  screen.Print(command.action == ConfigCommand::Action::kShow
                   ? RenderSettings(settings, command.output)
                   : RenderContexts(settings, command.output));
  return ExitCode::kOk;
}

ExitCode WriteMan(const ManCommand& command, const Screen& screen) {
  const auto paths = WriteManPages(CommandTree(), command.folder);
  if (!paths.ok()) return ReportError(paths.status(), screen);
  for (const std::string& path : *paths) screen.Print(path + "\n");
  return ExitCode::kOk;
}

// Nothing for a command that needs the settings.
std::optional<ExitCode> AnswerAlone(const Command& command, const Surroundings& surroundings,
                                    const Screen& screen) {
  if (std::holds_alternative<VersionCommand>(command)) {
    screen.Print("tactus " TACTUS_VERSION "\n");
    return ExitCode::kOk;
  }
  if (const auto* completion = std::get_if<CompletionCommand>(&command)) {
    screen.Print(CompletionScript(completion->shell));
    return ExitCode::kOk;
  }
  if (const auto* man = std::get_if<ManCommand>(&command)) return WriteMan(*man, screen);
  if (const auto* run = std::get_if<RunCommand>(&command)) return Run(*run, surroundings, screen);
  if (const auto* replay = std::get_if<ReplayCommand>(&command)) return Replay(*replay, screen);
  const auto* simulate = std::get_if<SimulateCommand>(&command);
  if (simulate != nullptr && simulate->from.empty()) return Simulate(*simulate, screen);
  const auto* config = std::get_if<ConfigCommand>(&command);
  if (config != nullptr && config->action == ConfigCommand::Action::kUseContext) {
    const absl::Status used =
        UseContext(surroundings.folders.config + "/config.yaml", config->context);
    if (!used.ok()) return ReportError(used, screen);
    screen.Say("context " + config->context + " is in use");
    return ExitCode::kOk;
  }
  return std::nullopt;
}

ExitCode Answer(const std::vector<std::string>& words, const Surroundings& surroundings,
                const Screen& screen) {
  if (!words.empty() && words.front() == kCompleteWord) {
    for (const std::string& line : Complete(CommandTree(), {words.begin() + 1, words.end()})) {
      screen.Print(line + "\n");
    }
    return ExitCode::kOk;
  }
  const ParsedCommandLine parsed = ParseCommandLine(words);
  if (!parsed.line) {
    screen.Print(parsed.help);
    std::fputs(parsed.error.c_str(), stderr);
    return parsed.error.empty() ? ExitCode::kOk : ExitCode::kUsage;
  }
  const CommandLine& line = *parsed.line;
  if (const auto code = AnswerAlone(line.command, surroundings, screen)) return *code;
  absl::StatusOr<Settings> settings =
      ResolveSettings({.flags = {.server = line.server,
                                 .context = line.context,
                                 .request_timeout = line.request_timeout},
                       .environment = surroundings.settings,
                       .config_path = surroundings.folders.config + "/config.yaml"});
  if (!settings.ok()) {
    ReportError(settings.status(), screen);
    return ExitCode::kUsage;
  }
  settings->colour = {.value = surroundings.no_color ? "never" : "auto",
                      .source = surroundings.no_color ? "environment NO_COLOR" : "default"};
  if (const auto* config = std::get_if<ConfigCommand>(&line.command)) {
    return ShowConfig(*config, *settings, screen);
  }
  const auto timeout = runtime::ParseDuration(settings->request_timeout.value);
  if (!timeout.ok()) return ReportError(timeout.status(), screen);
  api::Client client({.server = settings->server.value, .request_timeout = *timeout});
  return std::visit(Talk{client, screen, *settings}, line.command);
}

ExitCode Main(const std::vector<std::string>& words) {
  const Surroundings surroundings = FindSurroundings();
  const Screen screen({.no_color = surroundings.no_color, .dumb = surroundings.dumb_terminal});
  return screen.AfterAll(Answer(words, surroundings, screen));
}

}  // namespace
}  // namespace tactus::client

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  return static_cast<int>(tactus::client::Main(words));
}
