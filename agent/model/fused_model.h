// Several models of one shape, computed together: an array of jobs that differ in numbers alone.
//
// Each keeps parameters of its own, a row of one buffer in the layout of a single model: a row is
// what that model would have by itself, and goes wherever its parameters go. What one row holds,
// not-a-number included, has no influence on another's results.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/model/model.h"
#include "cuda/ops/segments.h"

namespace tactus::model {

// A row a model: row i begins at i * stride. On the models' device.
struct Rows {
  std::span<float> values{};
  std::size_t stride = 0;  // [elements] >= cuda::FlatLength(segments), a multiple of 16

  std::span<float> Row(std::size_t i) const { return values.subspan(i * stride, stride); }
};

// Not thread-safe; one thread from Open to the end.
class FusedModel {
 public:
  // Of a built-in model without running statistics, in float32: bytes-lm and cifar-cnn. seeds: of
  // the initial weights, one a model, in place of the options'; those are what Model::Open gives
  // for it.
  // Errors: as Model::Open; InvalidArgument, "model.builtin: ..." or "model.precision: ...", of
  // what cannot be fused.
  static absl::StatusOr<std::unique_ptr<FusedModel>> Open(const ModelOptions& options,
                                                          std::span<const std::uint64_t> seeds);

  virtual ~FusedModel() = default;

  virtual std::size_t models() const = 0;
  // Of one; offsets are assigned (cuda::AssignOffsets).
  virtual const cuda::SegmentTable& segments() const = 0;
  virtual std::optional<std::uint32_t> context() const = 0;  // as Model

  // Writes the initial weights into the rows, and computes with what they hold from now on. The
  // memory outlives this.
  virtual void Bind(Rows parameters) = 0;

  // One pass of some of the models, each over as many examples; `examples` one for each. Adds to
  // each row of `gradients` the sum over its samples of their gradients, and to its number in
  // `losses`, [models()], that of their losses. Where all have the same memory as inputs, it is
  // read once.
  // models: rising. Errors: Internal with libtorch's message; ResourceExhausted, out of memory;
  // nothing was added then.
  virtual absl::Status ForwardBackward(std::span<const std::size_t> models,
                                       std::span<const Examples> examples, Rows gradients,
                                       std::span<double> losses) = 0;

  // As Model::Evaluate, of each.
  virtual absl::StatusOr<std::vector<EvaluationSums>> Evaluate(
      std::span<const std::size_t> models, std::span<const Examples> examples) = 0;
};

}  // namespace tactus::model
