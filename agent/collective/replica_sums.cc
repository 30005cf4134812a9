#include "agent/collective/replica_sums.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tactus::collective {

DeviceReplicaSums::DeviceReplicaSums(ReplicaSums sums, cuda::Device& device,
                                     cuda::SegmentTable segments)
    : sums_(std::move(sums)), device_(device), segments_(std::move(segments)) {
  if (!in_parts()) return;
  TACTUS_CHECK(sums_.counts.size() == segments_.size());
  down_ = device.MakeMark();
}

void DeviceReplicaSums::AddNorm(std::span<const float> stretch, std::size_t offset,
                                std::span<double> norm2) {
  if (!in_parts()) return device_.AddSquaredNorm(stretch, norm2);
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const std::size_t begin = std::max(offset, segments_[i].offset);
    const std::size_t end =
        std::min(offset + stretch.size(), segments_[i].offset + segments_[i].length);
    if (!sums_.counts[i] || begin >= end) continue;
    device_.AddSquaredNorm(stretch.subspan(begin - offset, end - begin), norm2);
  }
}

Completion DeviceReplicaSums::Add(std::span<double> row) {
  TACTUS_CHECK(in_parts());
  if (on_host_.size() < row.size()) {
    device_.Synchronize();
    on_host_ = device_.AllocateOnHost<double>(row.size());
  }
  const std::span<double> on_host = on_host_.span().first(row.size());
  device_.Copy(row, on_host);
  down_->Record();
  down_->Wait();
  const Completion completion = sums_.add(on_host);
  device_.Copy(on_host, row);
  return completion;
}

}  // namespace tactus::collective
