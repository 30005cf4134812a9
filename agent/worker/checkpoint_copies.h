// Copies of what a group that trains would go on from, on their way to the disk.

#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "agent/engine/round_engine.h"
#include "agent/life/checkpoint_store.h"
#include "agent/worker/checkpoint_file.h"
#include "agent/worker/checkpoint_writer.h"
#include "agent/worker/mesh_member.h"
#include "agent/worker/trainee.h"
#include "cuda/device.h"

namespace tactus::worker {

// Copies from the device, and has it written by a CheckpointWriter. Says in the log why one came to
// nothing. The training thread.
class CheckpointCopies : public life::CheckpointStore {
 public:
  // What is copied; outlives this.
  struct Source {
    engine::RoundEngine& engine;
    const Trainee& trainee;
    cuda::Device& device;
    std::span<const float> parameters;            // flat
    const std::shared_ptr<const BestCopy>& best;  // as it is when that is done
    const MeshMember* mesh = nullptr;  // that has gathered what it has a part of; null: none
  };

  // directory: of the job's output. The thread outlives this.
  CheckpointCopies(Source source, std::string directory, WriterThread& thread);

  bool idle() override { return writer_.idle(); }
  void Write(CheckpointedMessage facts) override;
  std::optional<CheckpointedMessage> Poll() override;
  std::optional<CheckpointedMessage> Abandon() override;
  void Discard() override;

 private:
  const Source source_;
  const std::string directory_;
  CheckpointWriter writer_;
};

}  // namespace tactus::worker
