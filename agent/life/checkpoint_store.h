// Where the checkpoints of a job that trains go.

#pragma once

#include <optional>

#include "protocol/worker_messages.h"

namespace tactus::life {

// Writes one at a time, beside training. All calls: the training thread.
class CheckpointStore {
 public:
  // What is being written is given up.
  virtual ~CheckpointStore() = default;

  // Nothing is being written, and what was is told.
  virtual bool idle() = 0;

  // Copies what a group would go on from, and begins to write it; returns when it is copied. facts:
  // all but `file` and `write_seconds`, and of `still_seconds` what was before the copy.
  // Requires: idle().
  virtual void Write(protocol::CheckpointedMessage facts) = 0;

  // What is written and reads as it should, once; nothing: it is not known yet, there was none, or
  // it came to nothing, which costs that checkpoint alone.
  virtual std::optional<protocol::CheckpointedMessage> Poll() = 0;

  // The same, and nothing is written from now on: what is not whole yet is given up, so that nobody
  // waits for a disk.
  virtual std::optional<protocol::CheckpointedMessage> Abandon() = 0;

  // What is whole and was not told is given up, too.
  virtual void Discard() = 0;
};

}  // namespace tactus::life
