#include "agent/engine/combination.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tactus::engine {

using policies::Aggregation;

Combination::Combination(collective::Transport& transport, cuda::Device& device,
                         const cuda::SegmentTable& segments, CombinationOptions options)
    : device_(device),
      length_(cuda::FlatLength(segments)),
      lanes_(options.lanes),
      average_(transport, collective::MakeBuckets(segments, length_ + lanes_, options.bucket_bytes),
               [this](std::span<float> stretch) { BeforeReduce(stretch); }),
      adasum_(transport, device, segments, std::move(options.nodes)),
      norms_(device.AllocateSums(2)),
      norms_on_host_(device.AllocateOnHost<double>(2)),
      lanes_on_host_(device.AllocateOnHost<float>(options.lanes)) {}

void Combination::Begin(Aggregation aggregation, std::span<float> buffer, GiveLanes give_lanes,
                        std::span<const double> poison) {
  TACTUS_CHECK(!open_ && buffer.size() == length_ + lanes_);
  open_ = true;
  aggregation_ = aggregation;
  buffer_ = buffer;
  give_lanes_ = std::move(give_lanes);
  device_.Clear(norms_.span());
  if (!poison.empty()) device_.Copy(poison, own_norm2());
  if (aggregation_ == Aggregation::kAverage) average_.Begin(buffer);
}

void Combination::SegmentReady(std::size_t segment) {
  TACTUS_CHECK(open_ && aggregation_ == Aggregation::kAverage);
  average_.SegmentReady(segment);
}

// Called with each stretch of the buffer while it still holds this member's own.
void Combination::BeforeReduce(std::span<float> stretch) {
  const std::size_t offset = static_cast<std::size_t>(stretch.data() - buffer_.data());
  const std::size_t end = std::min(offset + stretch.size(), length_);
  if (end > offset) device_.AddSquaredNorm(stretch.first(end - offset), own_norm2());
  if (offset + stretch.size() == buffer_.size()) WriteLanes();
}

void Combination::WriteLanes() {
  device_.WriteLanes(give_lanes_(), own_norm2(), buffer_.last(lanes_));
}

void Combination::Finish() {
  TACTUS_CHECK(open_);
  if (aggregation_ == Aggregation::kAverage) return average_.FinishTail();
  device_.AddSquaredNorm(buffer_.first(length_), own_norm2());
  WriteLanes();
  adasum_.Start(buffer_.first(length_), buffer_.last(lanes_));
}

collective::Progress Combination::Poll() {
  TACTUS_CHECK(open_);
  return aggregation_ == Aggregation::kAverage ? average_.Poll() : adasum_.Poll();
}

collective::Completion Combination::Wait() {
  TACTUS_CHECK(open_);
  open_ = false;
  return aggregation_ == Aggregation::kAverage ? average_.Wait() : adasum_.Wait();
}

Combined Combination::Read() {
  TACTUS_CHECK(!open_ && !buffer_.empty());
  device_.AddSquaredNorm(buffer_.first(length_), norm2());
  device_.Copy(norms_.span(), norms_on_host_.span());
  device_.Copy(buffer_.last(lanes_), lanes_on_host_.span());
  device_.Synchronize();
  return {.lanes = ReadLanes(lanes_on_host_.span()),
          .norm2 = norms_on_host_.span()[1],
          .own_norm2 = norms_on_host_.span()[0],
          .parts_norm2 = aggregation_ == Aggregation::kAdasum ? adasum_.norm2_sum() : 0};
}

std::uint64_t Combination::bytes() const {
  return aggregation_ == Aggregation::kAverage ? average_.bytes() : adasum_.bytes();
}

}  // namespace tactus::engine
