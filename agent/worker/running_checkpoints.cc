#include "agent/worker/running_checkpoints.h"

#include <filesystem>
#include <iostream>
#include <system_error>
#include <utility>

#include "agent/worker/clock.h"

namespace tactus::worker {

RunningCheckpoints::RunningCheckpoints(Source source, Options options, WriterThread& thread,
                                       AgentLink& link)
    : source_(source),
      generation_(options.generation),
      link_(link),
      directory_(std::move(options.directory)),
      schedule_(options.every, options.mean, source.engine.mark()),
      writer_(thread, directory_, source.model.segments()) {}

void RunningCheckpoints::AtEdge() {
  TellWritten();
  const engine::RoundEngine& engine = source_.engine;
  const bool trains = engine.outcome() == engine::Outcome::kTraining && engine.at_edge();
  if (trains && schedule_.Due(engine.mark()) && writer_.idle()) Take();
}

void RunningCheckpoints::AtEnd() {
  TellWritten();
  if (schedule_.HasNew(source_.engine.mark()) && writer_.idle()) Take();
}

void RunningCheckpoints::TellWritten() {
  if (const auto written = writer_.Poll()) Tell(*written);
}

void RunningCheckpoints::GiveUp() {
  const auto written = writer_.Abandon();
  if (!written || !written->ok()) return;
  std::error_code ignored;  // the folder is swept in any case
  std::filesystem::remove(directory_ + "/" + (*written)->file, ignored);
}

void RunningCheckpoints::Finish() {
  const auto written = writer_.Abandon();
  if (written && written->ok()) Tell(*written);
}

// What the device still has to do of the round is no part of the stillness.
void RunningCheckpoints::Take() {
  source_.device.Synchronize();
  const Instant begin = Now();
  engine::RoundEngine& engine = source_.engine;
  Checkpoint& checkpoint = writer_.checkpoint();
  checkpoint.parameters.resize(source_.parameters.size());
  source_.device.Copy(source_.parameters, checkpoint.parameters);
  engine.CopyState(checkpoint.state);
  checkpoint.buffers = source_.model.ReadBuffers();
  writer_.Write({.generation = generation_,
                 .rounds = engine.rounds(),
                 .samples_global = engine.samples_global(),
                 .epochs = engine.ledger().epoch(),
                 .epoch_consumed = engine.ledger().consumed(),
                 .train_loss = engine.train_loss(),
                 .train_seconds = ToSeconds(engine.train_time()),
                 .still_seconds = ToSeconds(Now() - begin)});
  schedule_.Taken(engine.mark());
}

void RunningCheckpoints::Tell(const absl::StatusOr<CheckpointedMessage>& written) {
  if (!written.ok()) {
    std::cerr << "no checkpoint this time: " << written.status().message() << '\n';
    return;
  }
  schedule_.Observe(
      {.still_seconds = written->still_seconds, .beside_seconds = written->write_seconds});
  link_.Send(*written);
}

}  // namespace tactus::worker
