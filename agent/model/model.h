// The model: forward, backward, evaluation, files. The one header that stands before libtorch.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/data/dataset.h"
#include "agent/tensors/safetensors.h"
#include "cuda/ops/segments.h"
#include "cuda/ops/stream.h"

namespace tactus::model {

// The numbers in which a model computes. Parameters, gradients and losses are float32 in any case.
enum class Precision {
  kFloat32,
  kBfloat16,  // where libtorch's autocast holds it to be safe, in forward passes and their
              // gradients
};

// Over how many devices a replica is split, and how.
enum class MeshKind {
  kNone,  // a device has the whole model
  k1d,    // within each block: Megatron's
  k2d,    // activations and parameters, over as many rows of devices as columns: Optimus
};
inline constexpr std::uint32_t kMeshDevicesMax = 1024;
struct MeshOptions {
  MeshKind kind = MeshKind::kNone;
  std::uint32_t devices = 1;  // of one replica
};

// What to build or load, and its loss: a job file's `model`; and where it is to live.
struct ModelOptions {
  std::string builtin = {};            // "bytes-lm", "cifar-cnn", "resnet18", or empty
  std::string torchscript = {};        // path, or empty; exactly one of the two is set
  std::string loss = "cross_entropy";  // "cross_entropy", "mse" or the path of a TorchScript module
  std::string output = {};  // of several, the one that the loss takes: a key, or a place from 0
  // Sizes of a built-in; a size that it does not have is refused.
  std::optional<std::uint32_t> width = {};
  std::optional<std::uint32_t> heads = {};
  std::optional<std::uint32_t> layers = {};
  std::optional<std::uint32_t> context = {};
  std::optional<std::uint32_t> classes = {};
  std::optional<std::uint32_t> channels = {};
  // Of bytes-lm alone: a block's activations are computed again in the backward pass instead of
  // kept, and the mesh. PartitionedModel (agent/model/parallel) opens what asks for either, and
  // Model::Open is not called with it.
  bool recompute = false;
  MeshOptions mesh = {};
  Precision precision = Precision::kFloat32;
  std::uint64_t seed = 1;        // initial weights of a built-in; random numbers of training
  int threads = 1;               // of libtorch within this process, >= 1
  std::string device = "cpu:0";  // or "cuda:N"
  // Of that device, and outliving the model: all that it does is queued there. Null on the host,
  // and for CUDA's default stream.
  cuda::Stream stream = nullptr;
};

// A micro-batch in host memory; the spans must live during the call. What is pinned must also stay
// as it is until the device has done what the call queued (cuda::Mark), other memory need not.
struct Examples {
  std::uint64_t count = 0;
  std::vector<data::TensorSpec> input_specs = {};  // the model's arguments
  data::TensorSpec target_spec = {};
  std::span<const std::byte> inputs = {};  // each at its place: data::PlacesOf
  std::span<const std::byte> targets = {};
  // [count] by which a sample's loss, and so its gradient, is multiplied; empty: 1.
  std::span<const float> weights = {};
};

// Vectors by whose distances the distances between samples' gradients are bounded.
struct GradientProxies {
  static constexpr std::size_t kWidthMax = 65536;

  std::vector<float> values{};           // [samples, width] row-major
  std::size_t width = 0;                 // in [1, kWidthMax]
  std::vector<std::uint32_t> classes{};  // of each sample, below class_count
  std::uint32_t class_count = 1;
};

// Sums over the samples of an evaluation.
struct EvaluationSums {
  double loss_sum = 0;
  double correct_sum = 0;     // right answers; of a sample with many positions, the share of them
  bool has_accuracy = false;  // false: the loss has no notion of a right answer
  std::uint64_t samples = 0;
};

// The gradient of a segment by one pass, in memory of libtorch's on the model's device. Whoever has
// it gives the memory back by destroying it, from whatever is queued on the model's stream later.
struct SegmentGradient {
  using Memory = std::unique_ptr<void, void (*)(void*)>;

  std::size_t segment = 0;
  const float* values = nullptr;  // [the segment's length]; null: the pass has none, they are zeros
  Memory memory{nullptr, [](void*) {}};
};

// Called during ForwardBackward when the gradient of a segment is complete; on a CUDA device, when
// all that completes it is queued on the model's stream. The thread is libtorch's own there, while
// the one that called ForwardBackward waits: the two never run at once.
using TakeGradient = std::function<void(SegmentGradient gradient)>;

// One model on one device. Parameters are views into a flat buffer owned by the caller, on that
// device. On a CUDA device operations are queued, and the stream's order is the
// order of the calls; those that return numbers wait. Not thread-safe; one thread from Open to the
// end (libtorch keeps per-thread state).
class Model {
 public:
  // Builds or loads the model. The segment table stands in reverse order of the parameters'
  // registration, so that backward passes complete a flat gradient buffer from its front;
  // parameters that need no gradient are not in it.
  //
  // Errors, at the field (agent/data/field_error.h), "model.torchscript: ...": NotFound,
  // InvalidArgument (does not load, unknown built-in, option out of range, no parameter to train, a
  // parameter that is not float32); of "workers.device": NotFound, no such device or a libtorch
  // without CUDA. ResourceExhausted, out of memory.
  static absl::StatusOr<std::unique_ptr<Model>> Open(const ModelOptions& options);

  virtual ~Model() = default;

  // Offsets are assigned (cuda::AssignOffsets).
  virtual const cuda::SegmentTable& segments() const = 0;

  // Copies the present weights into `parameters` and makes the model's views of the buffer from now
  // on; losses are then added to the one number of `loss_sum`. The buffer holds at least
  // cuda::FlatLength(segments()) elements, 64-byte aligned; both outlive the model. Stops the
  // process when the device fails.
  virtual void Bind(std::span<float> parameters, std::span<double> loss_sum) = 0;

  // Runs one micro-batch at the present weights without changing anything lasting (buffers and
  // random numbers come back as they were), to see that input, output, target and loss fit
  // together. It takes no more memory than ForwardBackward. Waits until it is done. Requires Bind.
  // Errors: InvalidArgument beginning with the field to blame ("model.loss: ...", "data: ...";
  // "model.precision: ..." for what works in float32 alone); ResourceExhausted, out of memory.
  virtual absl::Status TryOut(const Examples& examples) = 0;

  // Hands over the SUM over samples of the per-sample gradients, and adds that of their losses, in
  // float64, to the sum of losses; a sample's loss is the mean over its positions. `take` is called
  // once for each segment, in the order in which backward completes them, when the losses are
  // added. On a CUDA device the pass is queued and not waited for. Requires Bind.
  // Errors: Internal with libtorch's message, ResourceExhausted, out of memory. After either the
  // sum may hold the pass's losses, `take` may have been called for some segments, and the model
  // can be used as before.
  virtual absl::Status ForwardBackward(const Examples& examples, const TakeGradient& take) = 0;

  // Gives memory of the device back that libtorch keeps for later and nobody uses; takes a while,
  // as it waits for the device. Nothing on the host.
  virtual void ReleaseCachedMemory() = 0;

  // The gradients of the samples' losses by the model's output, in evaluation mode: with
  // cross_entropy the softmax of the logits less the target, whose class it is of; of a sample with
  // many positions their sum, and all are of one class, as are those of other losses. For `count`
  // >= 1. Errors: InvalidArgument, "data.subset.craig: ...": the loss takes other than one tensor,
  // or that is too wide; Internal, ResourceExhausted as ForwardBackward.
  virtual absl::StatusOr<GradientProxies> Proxies(const Examples& examples) = 0;

  // Losses and right answers at the present weights, in evaluation mode (dropout off, running
  // statistics).
  virtual absl::StatusOr<EvaluationSums> Evaluate(const Examples& examples) = 0;

  // Floating-point buffers (running statistics), flattened in registration order. Those that held a
  // non-finite value when the model was opened are constants, such as a mask of -inf, and left out.
  // Both wait; both stop the process when the device fails.
  virtual std::vector<float> ReadBuffers() const = 0;
  virtual void WriteBuffers(std::span<const float> values) = 0;

  // Bytes of context that a built-in text model takes; empty for others.
  virtual std::optional<std::uint32_t> context() const = 0;

  // Writes the model as TorchScript in evaluation mode, readable by torch.jit.load, beside and then
  // renamed. Its tensors are the host's, wherever it was trained.
  // Errors: as the file system has them.
  virtual absl::Status SaveTorchScript(const std::string& path) const = 0;

  // Writes parameters and buffers as safetensors, beside and then renamed.
  virtual absl::Status SaveSafetensors(const std::string& path) const = 0;

  // Copies to the host what SaveSafetensors writes, for WriteSafetensors by another thread. Waits.
  // Errors: Unimplemented, a tensor's type is not one of the format's.
  virtual absl::Status CopyTensors(tensors::TensorsCopy& copy) const = 0;

  // The opposite of SaveSafetensors: takes parameters and buffers from such a file, which must have
  // each of them by its name, type and shape.
  // Errors: ReadSafetensors'; InvalidArgument, with the names and both shapes of those that differ.
  virtual absl::Status LoadSafetensors(const std::string& path) = 0;
};

}  // namespace tactus::model
