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
      adasum_(transport, device, segments, std::move(options.nodes)) {}

void Combination::Begin(Aggregation aggregation, std::span<float> buffer, WriteLanes write_lanes) {
  TACTUS_CHECK(!open_ && buffer.size() == length_ + lanes_);
  open_ = true;
  aggregation_ = aggregation;
  buffer_ = buffer;
  write_lanes_ = std::move(write_lanes);
  own_norm2_ = 0;
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
  if (end > offset) own_norm2_ += device_.SquaredNorm(stretch.first(end - offset));
  if (offset + stretch.size() == buffer_.size()) write_lanes_(own_norm2_, buffer_.last(lanes_));
}

void Combination::Finish() {
  TACTUS_CHECK(open_);
  if (aggregation_ == Aggregation::kAverage) return average_.FinishTail();
  own_norm2_ = device_.SquaredNorm(buffer_.first(length_));
  write_lanes_(own_norm2_, buffer_.last(lanes_));
  adasum_.Start(buffer_.first(length_), buffer_.last(lanes_));
}

collective::Progress Combination::Poll() {
  TACTUS_CHECK(open_);
  return aggregation_ == Aggregation::kAverage ? average_.Poll() : adasum_.Poll();
}

collective::Completion Combination::Wait() {
  TACTUS_CHECK(open_);
  open_ = false;
  if (aggregation_ == Aggregation::kAverage) return average_.Wait();
  collective::Completion completion = adasum_.Wait();
  norm2_sum_ = adasum_.norm2_sum();
  return completion;
}

std::uint64_t Combination::bytes() const {
  return aggregation_ == Aggregation::kAverage ? average_.bytes() : adasum_.bytes();
}

}  // namespace tactus::engine
