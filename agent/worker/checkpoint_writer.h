// Checkpoints beside training: copied at a round's edge, written by a thread of their own.

#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/worker/checkpoint_file.h"
#include "agent/worker/messages.h"
#include "cuda/ops/segments.h"
#include "threads/mutex.h"

namespace tactus::worker {

// Has one checkpoint in memory, whose space is used for the next one: who is idle may fill it, and
// one that is due before the former is written waits. The thread writes it to
//
//   DIRECTORY/checkpoints/GENERATION-ROUNDS.safetensors
//
// which appears whole and durable or not at all, then reads it back from the disk and checks it.
// All calls: the training thread.
class CheckpointWriter {
 public:
  CheckpointWriter(std::string directory, cuda::SegmentTable segments);
  // What is being written is given up, as by Abandon.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Nothing is being written, and what was is told.
  bool idle();

  // What Write writes. Requires: idle().
  Checkpoint& checkpoint() { return checkpoint_; }

  // Begins to write it, and returns. facts: all but `file` and `write_seconds`. Requires: idle().
  void Write(CheckpointedMessage facts);

  // What came of the last Write, once; nothing: it is not known yet, or there was none.
  // Errors: as of WriteCheckpoint and CheckCheckpoint.
  std::optional<absl::StatusOr<CheckpointedMessage>> Poll();

  // The same, after a wait where one is being written.
  std::optional<absl::StatusOr<CheckpointedMessage>> Wait();

  // The same, and nothing is written from now on: what is not whole yet is given up, within the
  // time that the disk takes for a piece of a file. Errors: Cancelled, also of every later Write.
  std::optional<absl::StatusOr<CheckpointedMessage>> Abandon();

 private:
  enum class Stage { kIdle, kWriting, kDone };

  void Run();
  absl::StatusOr<CheckpointedMessage> WriteFile();
  std::optional<absl::StatusOr<CheckpointedMessage>> TakeDone()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string directory_;
  const cuda::SegmentTable segments_;
  std::stop_source stop_;

  threads::Mutex mutex_;
  threads::Condition changed_;
  Stage stage_ ABSL_GUARDED_BY(mutex_) = Stage::kIdle;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;

  // The thread's while it is writing, the caller's otherwise.
  Checkpoint checkpoint_;
  absl::StatusOr<CheckpointedMessage> message_;

  std::thread thread_;  // last: runs over all the above
};

}  // namespace tactus::worker
