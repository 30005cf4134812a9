#include "agent/engine/combine/combination.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tactus::engine {

Combination::Combination(collective::Transport& transport, cuda::Device& device,
                         const cuda::SegmentTable& segments, Encoding& encoding,
                         CombinationOptions options)
    : device_(device),
      length_(cuda::FlatLength(segments)),
      lanes_(options.lanes),
      average_(
          MakeAverage(transport, encoding,
                      collective::MakeBuckets(segments, length_ + lanes_, options.bucket_bytes),
                      length_, [this](std::span<float> stretch) { BeforeLeave(stretch); })),
      adasum_(MakeAdasum(transport, device, segments, std::move(options.nodes),
                         [this](std::span<float> stretch) { BeforeLeave(stretch); })),
      norms_(device.AllocateSums(2)),
      norms_on_host_(device.AllocateOnHost<double>(2)),
      lanes_on_host_(device.AllocateOnHost<float>(options.lanes)) {}

Aggregator& Combination::For(policies::Aggregation aggregation) {
  return aggregation == policies::Aggregation::kAdasum ? *adasum_ : *average_;
}

void Combination::SetBatchSizes(const std::vector<std::uint32_t>& sizes) {
  average_->SetBatchSizes(sizes);
  adasum_->SetBatchSizes(sizes);
}

void Combination::Begin(Aggregator& aggregator, std::span<float> buffer,
                        std::span<const double> poison) {
  TACTUS_CHECK(!open_ && buffer.size() == length_ + lanes_);
  open_ = true;
  aggregator_ = &aggregator;
  buffer_ = buffer;
  device_.Clear(norms_.span());
  if (!poison.empty()) device_.Copy(poison, own_norm2());
  aggregator.Begin(buffer);
}

void Combination::SegmentReady(std::size_t segment) {
  TACTUS_CHECK(open_);
  aggregator_->SegmentReady(segment);
}

// What must be known of this member's own vector is taken here, as the sum takes its place: its
// norm, and with it the lanes, which leave with the last stretch and so are written when the norm
// is whole.
void Combination::BeforeLeave(std::span<float> stretch) {
  const std::size_t offset = static_cast<std::size_t>(stretch.data() - buffer_.data());
  const std::size_t end = std::min(offset + stretch.size(), length_);
  if (end > offset) device_.AddSquaredNorm(stretch.first(end - offset), own_norm2());
  if (offset + stretch.size() < buffer_.size()) return;
  device_.WriteLanes(own_lanes_, own_norm2(), buffer_.last(lanes_));
}

void Combination::Finish(std::vector<cuda::LaneValue> lanes) {
  TACTUS_CHECK(open_);
  own_lanes_ = std::move(lanes);
  aggregator_->Finish();
}

collective::Progress Combination::Poll() {
  TACTUS_CHECK(open_);
  return aggregator_->Poll();
}

collective::Completion Combination::Wait() {
  if (open_) completion_ = aggregator_->Wait();
  open_ = false;
  return completion_;
}

Combined Combination::Read() {
  TACTUS_CHECK(!open_ && !buffer_.empty());
  device_.AddSquaredNorm(buffer_.first(length_), norm2());
  device_.Copy(norms_.span(), norms_on_host_.span());
  device_.Copy(buffer_.last(lanes_), lanes_on_host_.span());
  device_.Synchronize();
  return {.vector = buffer_.first(length_),
          .lanes = lanes(),
          .norm2 = norms_on_host_.span()[1],
          .own_norm2 = norms_on_host_.span()[0]};
}

}  // namespace tactus::engine
