// The order of what a program queues on its device and what the engine queues there.
//
// The two have streams of their own: a program may change its stream whenever it likes, as torch's
// programs do by torch.cuda.stream(), and none of the host's threads has to wait for a device
// because of that.

#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cuda/ops/stream.h"
#include "cuda/stream_events.h"

namespace tactus::sdk {

// Used by one thread at a time. Each call makes the device the calling thread's. Errors: Internal,
// CUDA's.
class StreamOrder {
 public:
  // device: CUDA's index. engine: a stream of it, which outlives this.
  static absl::StatusOr<std::unique_ptr<StreamOrder>> Open(int device, cuda::Stream engine);

  // What the program queues from now on is on that stream of the device; null, as at first: on
  // CUDA's default stream.
  void UseStream(cuda::Stream program) { program_ = program; }

  // What is queued on the engine's stream from now on runs behind all that is on the program's.
  absl::Status PutEngineBehind() { return Put(engine_, program_); }
  // And the other way round.
  absl::Status PutProgramBehind() { return Put(program_, engine_); }

 private:
  StreamOrder(int device, cuda::Stream engine, cuda::OwnedEvent event)
      : device_(device), engine_(engine), event_(std::move(event)) {}

  absl::Status Put(cuda::Stream behind, cuda::Stream first);

  const int device_;
  const cuda::Stream engine_;
  cuda::Stream program_ = nullptr;
  const cuda::OwnedEvent event_;  // who waits for it waits for what it marked then
};

}  // namespace tactus::sdk
