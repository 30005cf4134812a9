// The checkpoints of a job that trains, as rank 0 takes them.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "agent/engine/round_engine.h"
#include "agent/life/checkpoint_store.h"
#include "agent/life/mail.h"
#include "base/time.h"
#include "policies/checkpoint_interval.h"

namespace tactus::life {

// Has what a group would go on from copied at the edges where a checkpoint is due, and tells of it
// when it is written. Training stands still for the copy alone. Training goes on, too, where one
// cannot be written: it is tried again an interval later. One thread.
class RunningCheckpoints {
 public:
  struct Options {
    std::uint64_t generation = 0;     // of the group
    std::optional<Duration> every{};  // of training; nothing: chosen
    double mean = 0;                  // [s] between two losses of the group
  };

  // Engine and mail outlive this.
  RunningCheckpoints(engine::RoundEngine& engine, Mail& mail,
                     std::unique_ptr<CheckpointStore> store, const Options& options);

  // To be called whenever the engine may be at an edge. Where encodings have left something with
  // the other members, they are asked for it first: the checkpoint is then a round later.
  void AtEdge();

  // The stop condition holds, and the evaluation and the result are still to be made: rounds that
  // no checkpoint has are copied as soon as the thread has time, so that a loss in between
  // costs no training. To be called now and then meanwhile, while parameters stay as they are.
  void AtEnd();

  // Training is over: what is written is told of, what is not is given up. What comes now, the
  // checkpoint of a suspension or the word that the group is lost, waits for no disk.
  void Finish();

  // The result is there, which takes the place of every checkpoint: what was not told of is given
  // up.
  void GiveUp();

 private:
  void TellWritten();
  void Take();
  void Tell(const std::optional<protocol::CheckpointedMessage>& written);

  engine::RoundEngine& engine_;
  Mail& mail_;
  const std::uint64_t generation_;
  policies::CheckpointSchedule schedule_;
  const std::unique_ptr<CheckpointStore> store_;
};

}  // namespace tactus::life
