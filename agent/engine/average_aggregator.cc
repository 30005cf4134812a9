#include "agent/engine/average_aggregator.h"

#include <algorithm>
#include <utility>

#include "policies/orthogonality.h"

namespace tactus::engine {

using collective::Bucket;
using collective::Completion;
using collective::Progress;

AverageAggregator::AverageAggregator(collective::Transport& transport, Encoding& encoding,
                                     collective::BucketPlan plan, std::size_t length,
                                     BeforeLeave before_leave)
    : encoding_(encoding),
      length_(length),
      reduction_(std::move(plan),
                 [this, &transport, before = std::move(before_leave)](std::span<float> stretch) {
                   before(stretch);
                   const auto offset = static_cast<std::size_t>(stretch.data() - buffer_.data());
                   const Piece piece = PieceAt(offset, stretch.size());
                   encoding_.Prepare(piece);
                   return encoding_.Exchange(transport, piece);
                 }) {}

Piece AverageAggregator::PieceAt(std::size_t offset, std::size_t length) const {
  const std::size_t begin = std::min(offset, length_);
  const std::size_t end = std::max(begin, std::min(offset + length, length_));
  return {.offset = begin,
          .values = buffer_.subspan(begin, end - begin),
          .lanes = buffer_.subspan(end, offset + length - end)};
}

void AverageAggregator::Begin(std::span<float> buffer) {
  buffer_ = buffer;
  reduction_.Begin(buffer);
}

Completion AverageAggregator::Wait() {
  Completion completion = reduction_.Wait();
  if (completion.progress == Progress::kFailed) return completion;
  for (const Bucket& bucket : reduction_.plan().buckets) {
    encoding_.Restore(PieceAt(bucket.offset, bucket.length));
  }
  return completion;
}

std::uint64_t AverageAggregator::bytes() const {
  std::uint64_t bytes = 0;
  for (const Bucket& bucket : reduction_.plan().buckets) {
    bytes += encoding_.Bytes(PieceAt(bucket.offset, bucket.length));
  }
  return bytes;
}

policies::UpdateFacts AverageAggregator::FactsOf(const Lanes& lanes, const Spread& spread,
                                                 double norm2) const {
  return {.samples = lanes.samples,
          .contributors = spread.contributors,
          .samples_gradient_norm2 = lanes.samples_gradient_norm2,
          .gradient_norm2 = norm2};
}

double AverageAggregator::Orthogonality(const Lanes& lanes, const Spread& spread,
                                        double norm2) const {
  return policies::Orthogonality(FactsOf(lanes, spread, norm2), spread.samples_squared);
}

}  // namespace tactus::engine
