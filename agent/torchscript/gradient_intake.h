// The way of gradients from a pass into the flat buffer.
//
// libtorch leaves each segment's gradient where the operation that ended it put it. There it waits
// until the bucket that it belongs to is complete; then all of a bucket are taken over at once,
// with one launch (cuda/ops/gather.h), and their memory goes back. Where the bucket leaves for the
// other members right away, that launch takes its squared norm along.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "agent/collective/bucketing.h"
#include "agent/model/model.h"
#include "agent/worker/pass_sums.h"
#include "cuda/device.h"
#include "cuda/ops/gather.h"
#include "cuda/ops/segments.h"

namespace tactus::torchscript {

using worker::PassSums;

// Used in turn by the thread that runs passes and the one that calls TakeGradient.
class GradientIntake {
 public:
  struct Pass {
    bool adds = false;    // to what the buffer holds; otherwise what it holds is replaced
    bool leaves = false;  // gradients wait for Bring
  };

  // device and sums outlive it, and the model's passes run on the device's stream: what is taken is
  // read and freed in its order. bucket_bytes: of a take-over where nobody calls Bring. What waits
  // for Bring beyond two such buckets, because a segment of an earlier one has no gradient yet, is
  // taken over without it, so that gradients are not held twice.
  GradientIntake(cuda::Device& device, const cuda::SegmentTable& segments, PassSums& sums,
                 std::size_t bucket_bytes);

  void Begin(const Pass& pass);
  void Take(model::SegmentGradient gradient);

  // As engine::BringStretch. `stretch` is where whole segments are; of those that the pass has, all
  // were taken.
  bool Bring(std::span<float> stretch, std::span<double> norm2);

  // The pass is over: whatever waits comes into the buffer. Where the pass replaces and nothing was
  // taken, there are zeros.
  void End();
  // It has failed: what waits is given up, and what the buffer holds is of no use.
  void Drop();

 private:
  enum class State : std::uint8_t { kMissing, kWaiting, kOver };

  void Gather(std::span<float> stretch, std::span<double> norm2);
  // What is not over of the segments [first, last); zeros where a pass that replaces lacks it.
  void GatherRest(std::size_t first, std::size_t last);
  // Index of the first segment at this offset or behind.
  std::size_t FirstFrom(std::size_t offset) const;

  cuda::Device& device_;
  const cuda::SegmentTable segments_;
  PassSums& sums_;
  const collective::BucketPlan plan_;
  const std::size_t waiting_max_;  // floats

  Pass pass_;
  std::vector<State> states_;                      // one a segment, and below
  std::vector<model::SegmentGradient> gradients_;  // of those that wait
  std::vector<std::size_t> missing_;               // one a bucket: segments that are not taken
  std::vector<cuda::GatherPart> parts_;
  std::size_t waiting_ = 0;  // floats
};

}  // namespace tactus::torchscript
