// Checkpoints beside training: copied at a round's edge, written by a thread beside it.

#pragma once

#include <atomic>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/worker/checkpoint_file.h"
#include "agent/worker/messages.h"
#include "agent/worker/writer_thread.h"
#include "cuda/ops/segments.h"

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
  // The thread outlives the writer.
  CheckpointWriter(WriterThread& thread, std::string directory, cuda::SegmentTable segments)
      : thread_(thread), directory_(std::move(directory)), segments_(std::move(segments)) {}
  // What is being written is given up, as by Abandon.
  ~CheckpointWriter() { Abandon(); }
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Nothing is being written, by others neither, and what was is told.
  bool idle() { return stage_ == Stage::kIdle && thread_.idle(); }

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

  absl::StatusOr<CheckpointedMessage> WriteFile();

  WriterThread& thread_;
  const std::string directory_;
  const cuda::SegmentTable segments_;
  std::stop_source stop_;

  // The thread's while it is writing, the caller's otherwise.
  std::atomic<Stage> stage_ = Stage::kIdle;
  Checkpoint checkpoint_;
  absl::StatusOr<CheckpointedMessage> message_;
};

}  // namespace tactus::worker
