// A worker process that several jobs train in.
//
// To the agent each job is a worker of its own, with its own socket, messages and files; they share
// the process and the passes (Fusion). The agent says on a line of its own whom to take in, and is
// told there who has ended:
//
//   down   start WORKER SOCKET
//   up     ended WORKER EXIT_CODE

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "agent/torchscript/fusion.h"
#include "base/descriptor.h"
#include "threads/mutex.h"

namespace tactus::torchscript {

// One thread, but for those of its jobs.
class JobArray {
 public:
  // Connects to the agent. Errors: Unavailable, with the path and the system's reason.
  absl::Status Connect(const std::string& path);

  // Takes jobs in until the agent hangs up. Jobs that still train then are of no use to anybody,
  // and their threads go on: the caller ends the process. Requires: Connect.
  void Run();

 private:
  void OnLine(const std::string& line);
  void Start(std::uint64_t worker, const std::string& socket);
  void End(std::uint64_t worker, int exit_code);
  // Threads that have ended go.
  void Reap();

  Fusion fusion_;
  Descriptor socket_;
  std::map<std::uint64_t, std::thread> threads_;

  threads::Mutex mutex_;
  std::vector<std::uint64_t> ended_ ABSL_GUARDED_BY(mutex_);  // not reaped yet
};

}  // namespace tactus::torchscript
