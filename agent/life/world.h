// The world in which a worker lives: devices, data and files, or models of them.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/collective/transport.h"
#include "agent/engine/round_engine.h"
#include "agent/engine/validations.h"
#include "agent/life/checkpoint_store.h"
#include "agent/life/failure.h"
#include "base/time.h"
#include "policies/plan.h"
#include "protocol/worker_messages.h"

namespace tactus::life {

// What the worker says of itself when it has loaded.
struct Loaded {
  protocol::ReadyMessage ready{};
  std::optional<Duration> checkpoints_every{};  // of training; nothing: chosen
  bool keeps_best = false;                      // the result is what had the least validation loss
  std::uint64_t rounds = 0;                     // applied before, in what it goes on from
};

// How the members find each other.
struct Meeting {
  // Gives the worker's own endpoint to the coordinator and waits for everybody's, by rank; empty:
  // none will come.
  std::function<std::vector<std::string>(std::string own)> exchange;
  // Why to stop waiting for the others; empty: wait on.
  std::function<std::string()> give_up;
};

// A group that has met. All of it is the world's, and stays until the group is left.
struct Met {
  engine::RoundEngine& engine;  // has not begun
  collective::Transport& transport;
  std::span<float> parameters;
};

// What the members have chosen, the same on each but for the time.
struct SubsetChoice {
  std::optional<engine::Subset> subset{};  // nothing: what was chosen before stays
  Instant end{};                           // on this member's clock
  std::string facts{};                     // for a person
};

// Life calls these in their order, and blocks in them. Where the process is over, though its code
// still runs, each is without effect and those that can fail do. One thread.
class World {
 public:
  virtual ~World() = default;

  // Opens device, model and data, and what is gone on from. That may take long: `leaves` is asked
  // in between, and where it says so, what is returned counts for nothing and comes soon.
  virtual OrFailure<Loaded> Load(const std::function<bool()>& leaves) = 0;

  // Connects with the others and makes the engine, of a member that has all that it had made in
  // former groups. A failure of the group: it came to nothing; any other: it never could, with this
  // worker.
  virtual OrFailure<Met> Meet(const protocol::GroupMessage& group, const Meeting& meeting) = 0;

  // The group that was met last, or came to nothing, is left: what is its own goes, so that the
  // others learn of it; the member and all that it has made stays.
  virtual void LeaveGroup() = 0;

  // Begins the engine, and whatever is kept beside it; in a further group, that goes on.
  virtual void BeginTraining() = 0;

  // Where this member's checkpoints go; of rank 0 alone, once training has begun.
  virtual std::unique_ptr<CheckpointStore> OpenCheckpoints() = 0;

  // Loss and gradients of a batch; an empty one, of a member that only takes part, is done at once.
  // A failure of the group: the pass needs other members, who are lost.
  virtual OrFailure<engine::StepResult> Compute(const engine::Batch& batch) = 0;

  // The engine has taken the step of that batch.
  virtual void OnStep(const engine::Batch& batch) = 0;

  // A round was applied, which is about to be reported: adds what the engine does not know. newest:
  // the parameters are those after this round, not after one that was applied with it.
  virtual void Complete(protocol::ReportMessage& message, bool newest) = 0;

  // It is reported.
  virtual void OnReported(const policies::Report& report) = 0;

  // The engine is at an edge and trains on; a checkpoint, if one was due, is copied.
  virtual void AtEdge() = 0;

  // Training is over, whatever its outcome.
  virtual void EndTraining() = 0;

  // Somebody other than the agent asked this process to end.
  virtual bool AskedToEnd() = 0;

  virtual engine::HashedParameters HashParameters() = 0;

  // Makes the buffers that training changes on each member the same on all, as the mean over
  // `own_samples`.
  virtual std::optional<Failure> AgreeOnBuffers(double own_samples) = 0;

  // The validation loss over all members; samples = 0: there is nothing to validate with. `beside`
  // is to be called now and then meanwhile.
  virtual OrFailure<engine::Validation> Validate(const std::function<void()>& beside) = 0;

  // The same while training stands still, with the means of the buffers that training changes on
  // each member: training goes on with each one's own. samples = 0: what is trained has used the
  // standstill for itself, and there is nothing to tell.
  virtual OrFailure<engine::Validation> ValidateAtEdge() = 0;

  // The members choose together which samples epochs are made of from here on, at an edge, from the
  // parameters that they have in common.
  virtual OrFailure<SubsetChoice> ChooseSubset() = 0;

  // What was just validated, at an edge or at the end, is the best so far: it is kept, to take the
  // place of another that was. Returns when it is. Of rank 0 alone.
  virtual Instant KeepBest() = 0;

  // It was told of. Of rank 0 alone.
  virtual void OnValidated(const protocol::ValidatedMessage& message) = 0;

  // Parameters and buffers become what KeepBest kept. Of rank 0 alone, at the end.
  virtual void TakeBest() = 0;

  // Writes the result and returns its files, in the output directory.
  virtual OrFailure<std::vector<std::string>> KeepResult(
      const protocol::FinishedMessage& finished, const protocol::EvaluatedMessage& evaluated) = 0;

  // Writes what another group may go on from, as protocol::kCheckpointFile.
  virtual std::optional<Failure> KeepCheckpoint() = 0;
};

}  // namespace tactus::life
