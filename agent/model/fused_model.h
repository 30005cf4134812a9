// Several models of one shape, computed together: an array of jobs that differ in numbers alone.
//
// Each keeps parameters of its own, in the layout of a single model and wherever they are; which go
// together is told anew with each pass. What one holds, not-a-number included, has no influence on
// another's results.

#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/model/model.h"
#include "cuda/ops/segments.h"

namespace tactus::model {

// What a model brings to a pass. Parameters: [cuda::FlatLength(segments)], on the models' device.
struct FusedPart {
  std::span<const float> parameters{};
  Examples examples{};
};

// What a pass makes of one part: the sums over its samples.
struct FusedSums {
  double loss = 0;
  std::vector<const float*> gradients{};  // by segment, on the models' device
  std::shared_ptr<const void> memory{};   // theirs, and that of all parts of the pass
};

// Empty where models of these options can be computed together; else why not, "field: ...": only
// built-in ones without statistics of their batches can, bytes-lm and cifar-cnn, in float32 and
// with cross-entropy.
std::string WhyNotFused(const ModelOptions& options);

// Equal for models that can go through one pass: all of the options but seed, device and stream.
std::string FusedShapeOf(const ModelOptions& options);

// Whether the examples' indices, of a table's rows and of classes, are those of a model of these
// segments: of what lies behind them a wider layer would read another model's, and a GPU stops at
// what lies behind the last, which ends all of its process. Errors: InvalidArgument, at `data`.
absl::Status CheckIndices(const cuda::SegmentTable& segments, const Examples& examples);

// Not thread-safe; one thread from Open to the end.
class FusedModel {
 public:
  // segments: those of Model::Open with these options. What it does is queued on the options'
  // stream. Errors: InvalidArgument, WhyNotFused; as Model::Open, of the device.
  static absl::StatusOr<std::unique_ptr<FusedModel>> Open(const ModelOptions& options,
                                                          const cuda::SegmentTable& segments);

  virtual ~FusedModel() = default;

  // One pass of all parts, each over as many examples, of which there is one or more; returns what
  // it is to each, when that is done. Where all have the same inputs, by their bytes, these are
  // brought to the device once, and the first convolution is one for all.
  // Errors: CheckIndices, of any part; Internal with libtorch's message; ResourceExhausted, out of
  // memory.
  virtual absl::StatusOr<std::vector<FusedSums>> ForwardBackward(
      std::span<const FusedPart> parts) = 0;
};

}  // namespace tactus::model
