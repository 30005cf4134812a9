// The checkpoints of a job that trains, as rank 0 takes them.

#pragma once

#include <optional>
#include <span>
#include <string>

#include "agent/engine/round_engine.h"
#include "agent/model/model.h"
#include "agent/worker/agent_link.h"
#include "agent/worker/checkpoint_writer.h"
#include "base/time.h"
#include "cuda/device.h"
#include "policies/checkpoint_interval.h"

namespace tactus::worker {

// Copies what a group would go on from, at the edges where a checkpoint is due, and has it written.
// Training stands still for the copy alone. Training goes on, too, where one cannot be written: it
// is tried again an interval later. The training thread.
class RunningCheckpoints {
 public:
  // What is copied; outlives this.
  struct Source {
    engine::RoundEngine& engine;
    const model::Model& model;
    cuda::Device& device;
    std::span<const float> parameters;  // flat
  };
  struct Options {
    std::string directory{};          // of the job's output
    std::uint64_t generation = 0;     // of the group
    std::optional<Duration> every{};  // of training; nothing: chosen
    double mean = 0;                  // [s] between two losses of the group
  };

  // The thread outlives this.
  RunningCheckpoints(Source source, Options options, WriterThread& thread, AgentLink& link);

  // To be called whenever the engine may be at an edge.
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
  void Tell(const absl::StatusOr<CheckpointedMessage>& written);

  const Source source_;
  const std::uint64_t generation_;
  AgentLink& link_;
  const std::string directory_;
  policies::CheckpointSchedule schedule_;
  CheckpointWriter writer_;
};

}  // namespace tactus::worker
