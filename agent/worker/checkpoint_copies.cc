#include "agent/worker/checkpoint_copies.h"

#include <filesystem>
#include <iostream>
#include <system_error>
#include <utility>

#include "agent/worker/clock.h"

namespace tactus::worker {

CheckpointCopies::CheckpointCopies(Source source, std::string directory, WriterThread& thread)
    : source_(source),
      directory_(std::move(directory)),
      writer_(thread, directory_,
              source.mesh == nullptr ? source.trainee.segments()
                                     : source.mesh->parts().dense_segments()) {}

// What the device still has to do of the round is no part of the stillness.
void CheckpointCopies::Write(CheckpointedMessage facts) {
  source_.device.Synchronize();
  const Instant begin = Now();
  Checkpoint& checkpoint = writer_.checkpoint();
  checkpoint.parameters.resize(source_.parameters.size());
  source_.device.Copy(source_.parameters, checkpoint.parameters);
  source_.engine.CopyState(checkpoint.state);
  checkpoint.residuals = source_.engine.TakeResiduals();
  checkpoint.buffers = source_.trainee.ReadBuffers();
  checkpoint.best = source_.best;
  if (source_.mesh != nullptr) source_.mesh->MakeWhole(checkpoint);
  facts.still_seconds += ToSeconds(Now() - begin);
  writer_.Write(std::move(facts));
}

std::optional<CheckpointedMessage> CheckpointCopies::Poll() {
  const auto written = writer_.Poll();
  if (!written) return std::nullopt;
  if (written->ok()) return **written;
  std::cerr << "no checkpoint this time: " << written->status().message() << '\n';
  return std::nullopt;
}

std::optional<CheckpointedMessage> CheckpointCopies::Abandon() {
  const auto written = writer_.Abandon();
  return written && written->ok() ? std::optional(**written) : std::nullopt;
}

void CheckpointCopies::Discard() {
  const std::optional<CheckpointedMessage> written = Abandon();
  std::error_code ignored;  // the folder is swept in any case
  if (written) std::filesystem::remove(directory_ + "/" + written->file, ignored);
}

}  // namespace tactus::worker
