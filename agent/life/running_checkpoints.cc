#include "agent/life/running_checkpoints.h"

#include <utility>

namespace tactus::life {

RunningCheckpoints::RunningCheckpoints(engine::RoundEngine& engine, Mail& mail,
                                       std::unique_ptr<CheckpointStore> store,
                                       const Options& options)
    : engine_(engine),
      mail_(mail),
      generation_(options.generation),
      schedule_(options.every, options.mean, engine.mark()),
      store_(std::move(store)) {}

void RunningCheckpoints::AtEdge() {
  TellWritten();
  const bool trains = engine_.outcome() == engine::Outcome::kTraining && engine_.at_edge();
  if (!trains || !schedule_.Due(engine_.mark()) || !store_->idle()) return;
  if (!engine_.residuals_at_hand()) return engine_.RequestResiduals();
  Take();
}

void RunningCheckpoints::AtEnd() {
  TellWritten();
  if (schedule_.HasNew(engine_.mark()) && store_->idle()) Take();
}

void RunningCheckpoints::Finish() { Tell(store_->Abandon()); }

void RunningCheckpoints::GiveUp() { store_->Discard(); }

void RunningCheckpoints::TellWritten() { Tell(store_->Poll()); }

void RunningCheckpoints::Take() {
  store_->Write({.generation = generation_,
                 .rounds = engine_.rounds(),
                 .samples_global = engine_.samples_global(),
                 .epochs = engine_.ledger().epoch(),
                 .epoch_consumed = engine_.ledger().consumed(),
                 .train_loss = engine_.train_loss(),
                 .train_seconds = ToSeconds(engine_.train_time()),
                 .still_seconds = ToSeconds(engine_.gathering())});
  schedule_.Taken(engine_.mark());
}

void RunningCheckpoints::Tell(const std::optional<protocol::CheckpointedMessage>& written) {
  if (!written) return;
  schedule_.Observe(
      {.still_seconds = written->still_seconds, .beside_seconds = written->write_seconds});
  mail_.Send(*written);
}

}  // namespace tactus::life
