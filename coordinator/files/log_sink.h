// Takes what workers wrote from the agents' streams to the logs on disk.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "coordinator/files/log_store.h"
#include "coordinator/job/records.h"
#include "runtime/control_thread.h"
#include "tactus/agent/v1/session.pb.h"

namespace tactus::service {

// Logs hold up nobody: what the disk is too slow for is dropped. Used on the control thread alone,
// but for the last steps of what it posts to the files' thread.
class LogSink {
 public:
  // Pieces that wait for the disk.
  static constexpr std::size_t kWaitingBytesMax = 16u << 20;

  // All outlive the sink. `find`: the job's record while it is not over; null: none.
  struct Surroundings {
    std::function<const job::JobRecord*(const std::string& job)> find;
    runtime::ControlThread& files;
    LogStore& logs;
  };
  explicit LogSink(Surroundings surroundings) : around_(std::move(surroundings)) {}

  // Lines that the agent of `node` sent. Dropped when the worker is none of the job's on that node,
  // when they are too long, and when too much waits.
  void Take(const std::string& node, const agent::v1::LogLines& lines);

 private:
  // Who may write into a job's logs. Kept for a while after the job's end, when its workers' last
  // lines come.
  struct Writer {
    std::string node{};
    std::uint32_t rank = 0;
  };
  struct Known {
    std::uint64_t generation = 0;
    std::uint64_t revision = 0;
    std::map<WorkerId, Writer> writers{};
    std::uint64_t used = 0;
  };

  const Writer* Find(const std::string& job, WorkerId worker);
  void Learn(const job::JobRecord& record);

  const Surroundings around_;
  std::map<std::string, Known> jobs_;
  std::uint64_t clock_ = 0;
  std::uint64_t dropped_bytes_ = 0;  // because too much waited
  // Grows here and shrinks on the files' thread when a piece is written.
  std::atomic<std::size_t> waiting_bytes_ = 0;
};

}  // namespace tactus::service
