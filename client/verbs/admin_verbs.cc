// The verbs about nodes and about the coordinator itself.
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "client/observe/event_loop.h"
#include "client/render/error_lines.h"
#include "client/render/progress_view.h"
#include "client/render/tables.h"
#include "client/text/text.h"
#include "client/verbs/verbs.h"
#include "runtime/process.h"

namespace tactus::client {
namespace {

namespace fs = std::filesystem;

constexpr Duration kPoll = Seconds(1);

absl::StatusOr<v1::Node> Act(const NodeCommand& command, api::Client& client) {
  switch (command.action) {
    case NodeCommand::Action::kCordon:
      return client.CordonNode(command.name);
    case NodeCommand::Action::kDrain:
      return client.DrainNode(command.name);
    case NodeCommand::Action::kUncordon:
      break;
  }
  return client.UncordonNode(command.name);
}

bool IsFree(const v1::Node& node) {
  return std::ranges::all_of(node.devices(),
                             [](const v1::Device& device) { return device.job().empty(); });
}

// Until no device of the node has a job.
ExitCode AwaitDrained(const NodeCommand& command, api::Client& client, const Screen& screen) {
  EventLoop loop({SIGINT, SIGTERM});
  const Duration timeout = command.timeout.value_or(EventLoop::kForever);
  Duration waited{};
  while (true) {
    const absl::StatusOr<v1::Node> node = client.GetNode(command.name);
    if (!node.ok()) return ReportError(node.status(), screen);
    const std::string name = Printable(ShortName(node->name()));
    if (IsFree(*node)) {
      screen.Say("node " + name + " is " + NodeStatus(*node));
      return ExitCode::kOk;
    }
    if (waited >= timeout) {
      screen.Say("node " + name + " is " + NodeStatus(*node) + ", not yet drained");
      return ExitCode::kTimedOut;
    }
    const Duration step = std::min(kPoll, timeout - waited);
    if (loop.RunUntil([] { return false; }, step) == EventLoop::Outcome::kInterrupted) {
      return ExitCode::kInterrupted;
    }
    waited += step;
  }
}

}  // namespace

ExitCode ChangeNode(const NodeCommand& command, api::Client& client, const Screen& screen) {
  const absl::StatusOr<v1::Node> node = Act(command, client);
  if (!node.ok()) return ReportError(node.status(), screen);
  if (command.wait) return AwaitDrained(command, client, screen);
  screen.Say("node " + Printable(ShortName(node->name())) + " is " + NodeStatus(*node));
  return ExitCode::kOk;
}

ExitCode Backup(const BackupCommand& command, api::Client& client, const Screen& screen) {
  std::error_code error;
  if (fs::exists(command.file, error)) {
    screen.Say(command.file + ": exists already; allowed is a new file");
    return ExitCode::kConflict;
  }
  const std::string part = command.file + ".part";
  std::ofstream out(part, std::ios::binary | std::ios::trunc);
  if (!out) return ReportError(runtime::FileError(errno, part, "cannot be written"), screen);
  std::uint64_t bytes = 0;
  absl::Status status = client.Backup([&](std::string_view data) -> absl::Status {
    bytes += data.size();
    out.write(data.data(), static_cast<std::streamsize>(data.size()));
    return out ? absl::OkStatus() : absl::ResourceExhaustedError(part + ": the disk is full");
  });
  out.close();
  if (status.ok() && !out) status = absl::ResourceExhaustedError(part + ": the disk is full");
  if (status.ok()) {
    fs::rename(part, command.file, error);
    if (error) status = runtime::FileError(error.value(), command.file, "cannot be written");
  }
  if (!status.ok()) {
    fs::remove(part, error);
    return ReportError(status, screen);
  }
  screen.Print(command.file + "\n");
  screen.Say(FormatBytes(bytes) + " saved");
  return ExitCode::kOk;
}

ExitCode SetLogLevel(const LogLevelCommand& command, api::Client& client, const Screen& screen) {
  v1::SetLogLevelRequest request;
  request.set_level(command.level);
  request.set_node(command.node);
  const absl::Status status = client.SetLogLevel(request);
  if (!status.ok()) return ReportError(status, screen);
  const std::string who =
      command.node.empty() ? "the coordinator" : "the agent of " + Printable(command.node);
  screen.Say(who + " logs at level " + command.level + " until it is told otherwise or restarted");
  return ExitCode::kOk;
}

ExitCode CheckIntegrity(const IntegrityCommand& command, api::Client& client,
                        const Screen& screen) {
  const absl::StatusOr<v1::CheckIntegrityResponse> found = client.CheckIntegrity();
  if (!found.ok()) return ReportError(found.status(), screen);
  if (command.output == OutputFormat::kJson) {
    screen.Print(JsonLine(*found) + "\n");
  } else {
    for (const std::string& problem : found->problems()) screen.Print(Printable(problem) + "\n");
    const std::string looked =
        CountOf(found->jobs(), "job") + " and " + CountOf(found->blobs(), "blob");
    if (found->problems().empty()) screen.Print(looked + " are sound\n");
  }
  return found->problems().empty() ? ExitCode::kOk : ExitCode::kGeneric;
}

}  // namespace tactus::client
