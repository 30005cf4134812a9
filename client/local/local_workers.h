// The workers of a job that run on this machine, found as anybody finds processes.

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace tactus::client {

struct LocalWorker {
  pid_t pid = 0;
  std::uint64_t id = 0;  // WorkerProgress.worker_id
};

// Whose they are.
struct WorkersOf {
  std::string job{};          // the last part of its name
  std::string coordinator{};  // as their agent was told, letter by letter
};

// By what an agent starts them with, tactus-worker or a program of the user's: the job's name and a
// socket that is named by the worker's id, in the environment of a process that leads a session;
// and by whom their agent, which started them, was told to obey: its --coordinator, or
// TACTUS_COORDINATOR. Another coordinator may have a job of this name, with workers of these ids.
// Sorted by id. `proc` is where the kernel tells of processes, /proc. Those of other users show
// that to nobody but root, and are not found; nor is a program that writes over its environment, as
// the usual ways of giving oneself another name do, nor a job in a process of several.
std::vector<LocalWorker> FindLocalWorkers(const std::string& proc, const WorkersOf& of);

// To all of its process group, such as a program that a shell's script started and its processes
// that read samples.
// Errors: PermissionDenied; NotFound, it has ended, or its process id is another's now.
absl::Status SignalWorker(const std::string& proc, const WorkersOf& of, const LocalWorker& worker,
                          int signal);

}  // namespace tactus::client
