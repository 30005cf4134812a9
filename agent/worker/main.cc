// tactus-worker: one training process on one device, started by an agent.

#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>

#include "agent/worker/agent_link.h"
#include "agent/worker/worker.h"

namespace {

constexpr int kExitUsage = 64;
constexpr int kExitUnavailable = 69;

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || std::strcmp(argv[1], "--socket") != 0) {
    std::fprintf(stderr,
                 "usage: tactus-worker --socket PATH\n"
                 "Started by tactus-agent; PATH is the agent's Unix socket for this worker.\n");
    return kExitUsage;
  }
  std::signal(SIGPIPE, SIG_IGN);
  auto link = tactus::worker::AgentLink::Connect(argv[2]);
  if (!link.ok()) {
    std::fprintf(stderr, "tactus-worker: %s\n", std::string(link.status().message()).c_str());
    return kExitUnavailable;
  }
  const absl::Status status = tactus::worker::Worker(**link).Run();
  if (status.ok()) return 0;
  std::fprintf(stderr, "tactus-worker: %s\n", std::string(status.message()).c_str());
  return 1;
}
