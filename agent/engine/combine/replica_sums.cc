#include "agent/engine/combine/replica_sums.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tactus::engine {

CountedNorms::CountedNorms(ReplicaSums sums, cuda::Device& device, cuda::SegmentTable segments)
    : sums_(std::move(sums)), device_(device), segments_(std::move(segments)) {
  if (!in_parts()) return;
  TACTUS_CHECK(sums_.counts.size() == segments_.size());
  on_host_ = device.AllocateOnHost<double>(1);
  down_ = device.MakeMark();
}

void CountedNorms::AddOf(std::span<const float> stretch, std::size_t offset,
                         std::span<double> norm2) {
  TACTUS_CHECK(in_parts());
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const std::size_t begin = std::max(offset, segments_[i].offset);
    const std::size_t end =
        std::min(offset + stretch.size(), segments_[i].offset + segments_[i].length);
    if (!sums_.counts[i] || begin >= end) continue;
    device_.AddSquaredNorm(stretch.subspan(begin - offset, end - begin), norm2);
  }
}

collective::Completion CountedNorms::FindWhole(std::span<const float> vector,
                                               std::span<double> norm2) {
  AddOf(vector, 0, norm2);
  device_.Copy(norm2, on_host_.span());
  down_->Record();
  down_->Wait();
  const collective::Completion completion = sums_.add(on_host_.span());
  device_.Copy(on_host_.span(), norm2);
  return completion;
}

}  // namespace tactus::engine
