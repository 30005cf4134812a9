#include "agent/engine/adasum_aggregator.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "policies/orthogonality.h"

namespace tactus::engine {
namespace {

std::vector<std::uint32_t> ApartIfOnOne(std::vector<std::uint32_t> nodes) {
  if (std::ranges::all_of(nodes, [&](auto node) { return node == nodes.front(); })) nodes.clear();
  return nodes;
}

}  // namespace

AdasumAggregator::AdasumAggregator(collective::Transport& transport, cuda::Device& device,
                                   const cuda::SegmentTable& segments,
                                   std::vector<std::uint32_t> nodes, BeforeLeave before_leave)
    : nodes_(ApartIfOnOne(std::move(nodes))),
      rank_(static_cast<std::size_t>(transport.rank())),
      length_(cuda::FlatLength(segments)),
      before_leave_(std::move(before_leave)),
      reduction_(transport, device, segments, nodes_) {}

// m b_i / sum of the b_j of the node, m its members: weights of mean 1.
void AdasumAggregator::SetBatchSizes(const std::vector<std::uint32_t>& sizes) {
  double sum = 0;
  double members = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i] != nodes_[rank_]) continue;
    sum += sizes[i];
    ++members;
  }
  weight_ = sum > 0 ? members * sizes[rank_] / sum : 1;
}

void AdasumAggregator::SegmentReady(std::size_t) { TACTUS_CHECK(by_segments()); }

void AdasumAggregator::Finish() {
  before_leave_(buffer_);
  reduction_.Start(buffer_.first(length_), buffer_.subspan(length_));
}

// AdaScale's moments are of mean gradients, which Adasum's result is none of.
policies::UpdateFacts AdasumAggregator::FactsOf(const Lanes& lanes, const Spread&, double) const {
  return {.samples = lanes.samples};
}

double AdasumAggregator::Orthogonality(const Lanes&, const Spread& spread, double norm2) const {
  const auto parts = static_cast<std::uint32_t>(reduction_.parts());
  return policies::Orthogonality({.combined_norm2 = norm2,
                                  .parts_norm2 = reduction_.norm2_sum(),
                                  .contributors = std::min(spread.contributors, parts)});
}

}  // namespace tactus::engine
