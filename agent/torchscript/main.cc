// tactus-worker: one training process on one device, started by an agent.

#include <malloc.h>
#include <sched.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
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

// The value of an environment variable of the agent's; -1 when it is not there.
int FromEnvironment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? -1 : std::atoi(text);
}

// Where an agent has as many devices as the host has cores, each worker keeps to its own core. Left
// alone, the kernel moves a worker to the core of the peer whose message woke it, and the two share
// that core. Elsewhere (several agents on a host, more devices than cores) the kernel knows better.
void KeepToOwnCore() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  // The threads of a worker on a GPU (libtorch's, NCCL's, the reader's) wait for each other.
  if (std::getenv("CUDA_VISIBLE_DEVICES") != nullptr) return;
  const int rank = FromEnvironment("LOCAL_RANK");
  if (rank < 0 || FromEnvironment("LOCAL_WORLD_SIZE") != CPU_COUNT(&allowed)) return;
  for (int core = 0, seen = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || seen++ != rank) continue;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(core, &own);
    sched_setaffinity(0, sizeof(own), &own);
    return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || std::strcmp(argv[1], "--socket") != 0) {
    std::fprintf(stderr,
                 "usage: tactus-worker --socket PATH\n"
                 "Started by tactus-agent; PATH is the agent's Unix socket for this worker.\n");
    return kExitUsage;
  }
  std::signal(SIGPIPE, SIG_IGN);
  KeepToOwnCore();
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
