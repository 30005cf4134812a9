// tactus-worker: one training process on one device, of one job or of an array of them, started by
// an agent.

#include <malloc.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <string>

#include "agent/torchscript/job_array.h"
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

void Complain(const std::string& text) {
  std::fprintf(stderr, "tactus-worker: %s\n", text.c_str());
}

int RunOne(const char* socket) {
  auto link = tactus::worker::AgentLink::Connect(socket);
  if (!link.ok()) {
    Complain(std::string(link.status().message()));
    return kExitUnavailable;
  }
  tactus::torchscript::TorchscriptTrainee trainee;
  const auto failed = tactus::worker::Worker(**link, trainee).Run();
  if (!failed) return 0;
  const std::string field = failed->field.empty() ? "" : failed->field + ": ";
  Complain(field + failed->message);
  return 1;
}

int RunArray(const char* socket) {
  auto* const array = new tactus::torchscript::JobArray;  // its threads may outlive this
  const absl::Status connected = array->Connect(socket);
  if (!connected.ok()) {
    Complain(std::string(connected.message()));
    return kExitUnavailable;
  }
  array->Run();
  // No destructor: whoever still trains does so for nobody.
  ::_exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc == 3 ? argv[1] : "";
  if (mode != "--socket" && mode != "--array") {
    std::fprintf(
        stderr,
        "usage: tactus-worker --socket PATH\n"
        "       tactus-worker --array PATH\n"
        "Started by tactus-agent; PATH is the agent's Unix socket for this worker, or for the\n"
        "process of several.\n");
    return kExitUsage;
  }
  std::signal(SIGPIPE, SIG_IGN);
  mallopt(M_MMAP_THRESHOLD, kMapFromBytes);
  mallopt(M_TRIM_THRESHOLD, kHeapKeptBytes);
  return mode == "--array" ? RunArray(argv[2]) : RunOne(argv[2]);
}
