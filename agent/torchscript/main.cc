// tactus-worker: one training process on one device, started by an agent.

#include <malloc.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "agent/torchscript/torchscript_trainee.h"
#include "agent/worker/agent_link.h"
#include "agent/worker/worker.h"

namespace {

constexpr int kExitUsage = 64;
constexpr int kExitUnavailable = 69;

// Activations and gradients come and go in every pass: kept in the heap, they need no system calls
// and no fresh pages, which were an eighth of the CPU time of a small convolutional network.
constexpr int kMapFromBytes = 32 << 20;    // the most that glibc allows
constexpr int kHeapKeptBytes = 256 << 20;  // what a pass may leave behind

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || std::strcmp(argv[1], "--socket") != 0) {
    std::fprintf(stderr,
                 "usage: tactus-worker --socket PATH\n"
                 "Started by tactus-agent; PATH is the agent's Unix socket for this worker.\n");
    return kExitUsage;
  }
  std::signal(SIGPIPE, SIG_IGN);
  mallopt(M_MMAP_THRESHOLD, kMapFromBytes);
  mallopt(M_TRIM_THRESHOLD, kHeapKeptBytes);
  auto link = tactus::worker::AgentLink::Connect(argv[2]);
  if (!link.ok()) {
    std::fprintf(stderr, "tactus-worker: %s\n", std::string(link.status().message()).c_str());
    return kExitUnavailable;
  }
  tactus::torchscript::TorchscriptTrainee trainee;
  const auto failed = tactus::worker::Worker(**link, trainee).Run();
  if (!failed) return 0;
  const std::string field = failed->field.empty() ? "" : failed->field + ": ";
  std::fprintf(stderr, "tactus-worker: %s%s\n", field.c_str(), failed->message.c_str());
  return 1;
}
