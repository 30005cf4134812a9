// What a worker trains: a model, its data, and the passes over them.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/collective/transport.h"
#include "agent/engine/round_engine.h"
#include "agent/model/model.h"
#include "agent/tensors/safetensors.h"
#include "agent/worker/messages.h"
#include "agent/worker/model_parts.h"
#include "agent/worker/pass_sums.h"
#include "base/time.h"
#include "cuda/device.h"
#include "cuda/ops/segments.h"

namespace tactus::worker {

// Each reduction on a device costs some launches and a turn of two threads, and links between
// devices are fast. Source: PyTorch's DistributedDataParallel, bucket_cap_mb = 25.
inline constexpr std::size_t kDeviceBucketBytes = 25u << 20;

// Where it lives; all outlive it.
struct TraineeHome {
  const StartMessage& start;
  cuda::Device& device;
  // Exchanged between passes, each time with a Bind that follows.
  PassSums& sums;
  // The worker was told to go: asked between the steps of Open and TryOut that take long, of which
  // none is begun any more then.
  std::function<bool()> leaves = [] { return false; };
};

// What Open and TryOut return then.
inline absl::Status Left() { return absl::CancelledError("the worker was told to go"); }

// Passes since it was last asked that did not fit the device's memory and were repeated in pieces,
// and samples of a pass from then on; 0, 0: there were none.
struct OutOfMemory {
  std::uint32_t passes = 0;
  std::uint32_t pass_samples_max = 0;
};

// A worker calls it in this order: Open, Bind, TryOut, and then the rest as training has it. One
// thread. Errors are at the job's fields where there is one to blame (agent/data/field_error.h).
class Trainee {
 public:
  virtual ~Trainee() = default;

  // Errors: NotFound, InvalidArgument, ResourceExhausted; Left().
  virtual absl::Status Open(const TraineeHome& home) = 0;

  // Offsets are assigned (cuda::AssignOffsets).
  virtual const cuda::SegmentTable& segments() const = 0;
  virtual std::uint64_t train_samples() const = 0;
  virtual std::uint64_t validation_samples() const = 0;  // 0: there are none
  // Those that a subset is chosen from, of train_samples().
  virtual std::uint64_t data_samples() const { return train_samples(); }

  // Says of the options what is its own to say.
  virtual void Complete(engine::EngineOptions& options) = 0;

  // What the coordinator has to know of it that the job's file does not say; nothing: that says
  // all.
  virtual std::optional<protocol::ProgramFacts> facts() const { return std::nullopt; }

  // From now on `parameters`, [cuda::FlatLength(segments())], are its own; they become its present
  // weights. What it computes goes to the home's sums as they are now.
  virtual void Bind(std::span<float> parameters) = 0;

  // Proves that its parts go together, before anybody waits for it, and changes nothing lasting.
  // Returns how fast it is [samples/s]; 0: that is not known.
  virtual absl::StatusOr<double> TryOut() = 0;

  // Adds the gradients and losses of a batch that has samples, as RoundEngine wants them, or queues
  // that; may call its SegmentReady where the batch says so.
  virtual absl::Status Compute(const engine::Batch& batch, engine::RoundEngine& engine) = 0;

  // How it puts what it holds back of gradients into the sums, of which it replaces what a former
  // batch left. Empty: it adds them, to zeros where a sum begins.
  virtual engine::BringStretch Bringing() = 0;

  virtual Duration waited_for_data() const = 0;  // since it was opened
  virtual OutOfMemory TakeOutOfMemory() { return {}; }
  // In use of the device's memory, or of the host's by this process, of one that may share it with
  // other jobs [bytes]; 0: it has it for itself, or was asked a moment ago.
  virtual std::uint64_t TakeMemoryUsed() { return 0; }

  // Losses and right answers of validation samples, in evaluation mode; at most evaluation_batch()
  // of them. Errors: ResourceExhausted, out of memory, which fewer may not be.
  virtual absl::StatusOr<model::EvaluationSums> Evaluate(
      std::span<const std::uint64_t> indices) = 0;
  virtual void EndEvaluation() = 0;  // what it needed for it can go
  virtual std::uint32_t evaluation_batch() const = 0;

  // What samples of the training data are told apart by, without augmentation: the gradients of
  // their losses by the model's output at the present weights or, `by_inputs`, their inputs.
  // At most evaluation_batch() of them. Errors: as of model::Model::Proxies, and InvalidArgument.
  virtual absl::StatusOr<model::GradientProxies> Proxies(std::span<const std::uint64_t>, bool) {
    return absl::UnimplementedError("what is trained knows no subset of its samples");
  }

  // An epoch is over, training stands still, and all members hold the same: what a trainee that has
  // asked for such validations, and has no samples for them, does there with the others. Errors:
  // Unavailable, the group was lost.
  virtual absl::Status StandBetweenEpochs(collective::Transport&, const engine::RoundEngine&) {
    return absl::OkStatus();
  }

  // What a member of a mesh is to do with the others of it; null: the device has all of the model.
  // Where there is one, Compute and Evaluate are called without samples, too, TryOut passes over
  // none, and nobody calls CopyTensors and WriteModel.
  virtual ModelParts* parts() { return nullptr; }

  // What training changes on each member and is no parameter, such as running statistics.
  virtual std::vector<float> ReadBuffers() const = 0;
  virtual void WriteBuffers(std::span<const float> values) = 0;

  // Asked now and then while its worker waits for the other members of its group: why to leave it;
  // empty: to wait on.
  virtual std::string WhyGiveUp() { return {}; }

  // Memory of the device that it keeps for later and does not use goes back.
  virtual void ReleaseMemory() = 0;

  // Parameters and buffers by name, of whoever wrote them. Errors: at no field.
  virtual absl::Status LoadWeights(const std::string& path) = 0;
  // The opposite, into memory; waits.
  virtual absl::Status CopyTensors(tensors::TensorsCopy& copy) const = 0;
  // Writes what people take away into the folder, and returns its files' names there. Errors: the
  // file system's.
  virtual absl::StatusOr<std::vector<std::string>> WriteModel(const std::string& directory) = 0;
};

}  // namespace tactus::worker
