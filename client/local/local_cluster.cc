#include "client/local/local_cluster.h"

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

#include "base/time.h"

namespace tactus::client {
namespace {

constexpr Duration kStartMax = Seconds(30);
constexpr Duration kStopMax = Seconds(10);

std::string SpeedText(double speed) {
  std::ostringstream text;
  text << speed;
  return text.str();
}

}  // namespace

ClusterAddresses ParseAddressFile(const std::string& text) {
  ClusterAddresses addresses;
  std::istringstream in(text);
  std::string line;
  while (std::getline(in, line)) {
    if (line.starts_with("grpc=")) addresses.grpc = line.substr(5);
    if (line.starts_with("metrics=")) addresses.metrics = line.substr(8);
  }
  return addresses;
}

absl::Status LocalCluster::Start() {
  if (absl::Status status = StartCoordinator(); !status.ok()) return status;
  if (absl::Status status = AwaitAddress(); !status.ok()) return status;
  return StartAgent();
}

absl::Status LocalCluster::StartCoordinator() {
  const std::string& folder = options_.folder;
  absl::StatusOr<ChildProcess> child = ChildProcess::Start(
      {.program = options_.binary_folder + "/tactus-coordinator",
       .arguments = {"--listen", "127.0.0.1:0", "--state-dir", folder + "/coordinator",
                     "--metrics-listen", "127.0.0.1:0", "--address-file", folder + "/address",
                     // Whatever the environment has for a coordinator of other machines.
                     "--tls-dir", "", "--policy", "",
                     // There is one job, and nobody whose results want the room.
                     "--disk-floor", "0", "--parent-death-signal"},
       .log_path = folder + "/coordinator.log"});
  if (!child.ok()) return child.status();
  coordinator_.emplace(*std::move(child));
  return absl::OkStatus();
}

absl::Status LocalCluster::StartAgent() {
  std::string devices;
  std::string speeds;
  for (std::uint32_t i = 0; i < options_.workers; ++i) {
    devices += (i == 0 ? "cpu:" : ",cpu:") + std::to_string(i);
  }
  for (const double speed : options_.speeds)
    speeds += (speeds.empty() ? "" : ",") + SpeedText(speed);
  const std::string& folder = options_.folder;
  std::vector<std::string> arguments = {"--coordinator",
                                        addresses_.grpc,
                                        "--node",
                                        "local",
                                        "--devices",
                                        devices,
                                        "--state-dir",
                                        folder + "/agent",
                                        "--metrics-listen",
                                        "127.0.0.1:0",
                                        "--tls-dir",
                                        "",
                                        "--drain-deadline",
                                        "0",
                                        "--parent-death-signal"};
  if (options_.programs) {
    // The user's own program, as if it were run by hand: where it stands it writes, and it finds
    // the environment that it was started with.
    std::error_code error;
    const std::string here = std::filesystem::current_path(error).string();
    arguments.insert(arguments.end(), {"--allow-programs", "--worker-env", "*"});
    if (!error) arguments.insert(arguments.end(), {"--writable", here});
  }
  if (!speeds.empty()) arguments.insert(arguments.end(), {"--emulated-speeds", speeds});
  absl::StatusOr<ChildProcess> child =
      ChildProcess::Start({.program = options_.binary_folder + "/tactus-agent",
                           .arguments = std::move(arguments),
                           .log_path = folder + "/agent.log"});
  if (!child.ok()) return child.status();
  agent_.emplace(*std::move(child));
  return absl::OkStatus();
}

absl::Status LocalCluster::AwaitAddress() {
  const std::string path = options_.folder + "/address";
  const auto done = [&] {
    std::ifstream in(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    addresses_ = ParseAddressFile(text);
    return !addresses_.grpc.empty() || !coordinator_->IsRunning();
  };
  const EventLoop::Outcome outcome = loop_.RunUntil(done, kStartMax);
  if (outcome == EventLoop::Outcome::kInterrupted) return absl::CancelledError("interrupted");
  if (outcome == EventLoop::Outcome::kTimedOut) {
    return absl::DeadlineExceededError("tactus-coordinator was not ready within 30 s");
  }
  return Check();
}

absl::Status LocalCluster::Check() {
  for (std::optional<ChildProcess>* child : {&coordinator_, &agent_}) {
    if (child->has_value() && !(*child)->IsRunning())
      return absl::InternalError((*child)->Obituary());
  }
  return absl::OkStatus();
}

void LocalCluster::Stop() {
  // The agent first, while there is somebody to tell how its workers ended. An interrupt meanwhile
  // leaves the coordinator no time either.
  const int interrupts = loop_.interrupts();
  End(&agent_, kStopMax);
  End(&coordinator_, loop_.interrupts() > interrupts ? Duration::zero() : kStopMax);
}

void LocalCluster::End(std::optional<ChildProcess>* child, Duration patience) {
  if (!child->has_value()) return;
  (*child)->Signal(SIGTERM);
  loop_.RunUntil([child] { return !(*child)->IsRunning(); }, patience);
  (*child)->Kill();
  child->reset();
}

}  // namespace tactus::client
