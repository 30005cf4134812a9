// What the workers of the jobs wrote, on disk and bounded.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/id.h"

namespace tactus::service {

// A piece of a worker's output as it is kept.
struct LogPiece {
  std::uint64_t offset = 0;  // in the worker's output, of the first byte
  std::string text{};
};

// A worker that wrote something.
struct LoggedWorker {
  WorkerId worker{};
  std::uint32_t rank = 0;
  std::uint64_t end = 0;  // one past the last byte that came
};

// Of a worker, FOLDER/JOB/logs/worker-ID.log takes what comes until it is full; then it becomes
// worker-ID.log.1, in place of the one before. Each piece stands there behind a line "#OFFSET
// LENGTH". The workers' ranks stand in FOLDER/JOB/logs/ranks, a line "ID RANK" each, the last one
// counts. What a crash cut off is left out when a file is opened again. Nothing is synced: logs are
// for people. Blocking; one thread.
class LogStore {
 public:
  static constexpr std::size_t kPieceBytesMax = 64u << 10;
  // Streams that wait for more at once.
  static constexpr std::size_t kListenersMax = 256;

  // Other than the defaults in tests.
  struct Limits {
    std::uint64_t file_bytes = 1u << 20;  // of each of a worker's two
    std::uint64_t job_bytes = 64u << 20;  // above it, those who wrote most lose their oldest
    std::size_t workers = 4096;           // of a job; above it the oldest worker's go
  };

  explicit LogStore(std::string jobs_folder) : LogStore(std::move(jobs_folder), Limits{}) {}
  LogStore(std::string jobs_folder, const Limits& limits)
      : folder_(std::move(jobs_folder)), limits_(limits) {}

  // Keeps a piece; what of it came before is left out. `job` is a resource id that exists.
  // Errors: InvalidArgument, more than kPieceBytesMax; as the file system has them.
  struct Source {
    std::string job{};
    WorkerId worker{};
    std::uint32_t rank = 0;
  };
  absl::Status Append(const Source& source, const LogPiece& piece);

  // Who wrote, by id.
  std::vector<LoggedWorker> Workers(const std::string& job);

  // What is kept of a worker's output from `offset` on, oldest first; at most both files' worth.
  // Neighbours are joined, up to kPieceBytesMax.
  std::vector<LogPiece> Read(const std::string& job, WorkerId worker, std::uint64_t offset) const;

  // Removes all logs of a job.
  void Forget(const std::string& job);

  // Calls `changed` after each Append to the job; it must not call back. `key` is the listener.
  // False, and nothing changed, when there are kListenersMax.
  [[nodiscard]] bool Listen(const std::string& job, const void* key, std::function<void()> changed);
  void Unlisten(const void* key);

  // Calls every listener; from now on closed() is true and streams end.
  void Close();
  bool closed() const { return closed_; }

 private:
  struct Worker {
    std::uint32_t rank = 0;
    std::uint64_t end = 0;
    std::uint64_t bytes = 0;      // of the present file
    std::uint64_t old_bytes = 0;  // of the one before
  };
  struct Job {
    std::map<WorkerId, Worker> workers{};
    std::uint64_t bytes = 0;  // over all files
    std::uint64_t used = 0;   // when it was asked for last
  };
  struct Listener {
    std::string job{};
    std::function<void()> changed{};
  };

  std::string FolderOf(const std::string& job) const { return folder_ + "/" + job + "/logs"; }
  std::string PathOf(const std::string& job, WorkerId worker) const;
  Job& Load(const std::string& job);
  void ReadFolder(const std::string& name, Job& job) const;
  absl::StatusOr<Worker*> Admit(const Source& source, Job& job);
  void Rotate(const Source& source, Job& job, Worker& worker) const;
  void MakeRoom(const std::string& name, Job& job) const;
  void RemoveOld(const std::string& path, Job& job, Worker& worker) const;
  void RemoveAll(const std::string& path, Job& job, Worker& worker) const;

  const std::string folder_;
  const Limits limits_;
  std::map<std::string, Job> jobs_;  // those asked for lately
  std::uint64_t clock_ = 0;          // counts the questions
  std::map<const void*, Listener> listeners_;
  bool closed_ = false;
};

}  // namespace tactus::service
