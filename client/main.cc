// The program `tactus`.

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

#include "client/command_line.h"
#include "client/connection.h"
#include "client/exit_code.h"
#include "client/replay.h"
#include "client/run.h"
#include "client/screen.h"
#include "client/simulate.h"
#include "client/surroundings.h"
#include "client/verbs.h"

namespace tactus::client {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Surroundings FindSurroundings() {
  std::error_code ignored;
  return {.server = Variable("TACTUS_SERVER"),
          .no_color = !Variable("NO_COLOR").empty(),
          .folders = runtime::FoldersFromEnvironment(),
          .binary_folder =
              std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path().string()};
}

ExitCode Talk(const CommandLine& line, const std::string& server, const Screen& screen) {
  Connection connection({.server = server, .request_timeout = line.request_timeout});
  if (const auto* submit = std::get_if<SubmitCommand>(&line.command)) {
    return Submit(*submit, connection, screen);
  }
  if (const auto* get = std::get_if<GetCommand>(&line.command))
    return Get(*get, connection, screen);
  if (const auto* explain = std::get_if<ExplainCommand>(&line.command))
    return Explain(*explain, connection, screen);
  if (const auto* watch = std::get_if<WatchCommand>(&line.command))
    return Watch(*watch, connection, screen);
  if (const auto* cancel = std::get_if<CancelCommand>(&line.command)) {
    return Cancel(*cancel, connection, screen);
  }
  if (const auto* simulate = std::get_if<SimulateCommand>(&line.command)) {
    return SimulateHistory(*simulate, connection, screen);
  }
  return Download(std::get<DownloadCommand>(line.command), connection, screen);
}

ExitCode Main(const std::vector<std::string>& words) {
  const Surroundings surroundings = FindSurroundings();
  const Screen screen({.no_color = surroundings.no_color});
  const ParsedCommandLine parsed = ParseCommandLine(words);
  if (!parsed.line) {
    std::fputs(parsed.help.c_str(), stdout);
    std::fputs(parsed.error.c_str(), stderr);
    return parsed.error.empty() ? ExitCode::kOk : ExitCode::kUsage;
  }
  const CommandLine& line = *parsed.line;
  if (std::holds_alternative<VersionCommand>(line.command)) {
    screen.Print("tactus " TACTUS_VERSION "\n");
    return ExitCode::kOk;
  }
  if (const auto* run = std::get_if<RunCommand>(&line.command))
    return Run(*run, surroundings, screen);
  if (const auto* replay = std::get_if<ReplayCommand>(&line.command))
    return Replay(*replay, screen);
  const auto* simulate = std::get_if<SimulateCommand>(&line.command);
  if (simulate != nullptr && simulate->from.empty()) return Simulate(*simulate, screen);
  const absl::StatusOr<std::string> server =
      ServerAddress({.flag = line.server,
                     .environment = surroundings.server,
                     .config_path = surroundings.folders.config + "/config.yaml"});
  if (!server.ok()) {
    screen.Say(std::string(server.status().message()));
    return ExitCode::kUsage;
  }
  return Talk(line, *server, screen);
}

}  // namespace
}  // namespace tactus::client

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  return static_cast<int>(tactus::client::Main(words));
}
