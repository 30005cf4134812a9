// Adasum of the members' means, or of their nodes'. Its operator works on whole vectors, so they
// travel dense.

#pragma once

#include <cstdint>
#include <vector>

#include "agent/collective/adasum.h"
#include "agent/engine/aggregator.h"
#include "cuda/device.h"
#include "cuda/ops/segments.h"

namespace tactus::engine {

class AdasumAggregator : public Aggregator {
 public:
  // nodes: the node of each rank; empty: all apart, and so where all are on one node: a mean of all
  // would be no Adasum. transport and device outlive this.
  AdasumAggregator(collective::Transport& transport, cuda::Device& device,
                   const cuda::SegmentTable& segments, std::vector<std::uint32_t> nodes,
                   BeforeLeave before_leave);

  // The plan's samples of a step, by rank. Within a node Adasum takes the plain mean; for it to be
  // one over samples, each member is weighted by its part of them: by plan, as the members' counts
  // are not known yet.
  void SetBatchSizes(const std::vector<std::uint32_t>& sizes);

  double Divisor(double) const override { return 1; }
  double weight() const override { return weight_; }
  policies::UpdateFacts FactsOf(const Lanes& lanes, const Spread& spread,
                                double norm2) const override;
  double Orthogonality(const Lanes& lanes, const Spread& spread, double norm2) const override;

  void Begin(std::span<float> buffer) override { buffer_ = buffer; }
  bool by_segments() const override { return false; }
  void SegmentReady(std::size_t segment) override;
  void Finish() override;
  collective::Progress Poll() override { return reduction_.Poll(); }
  collective::Completion Wait() override { return reduction_.Wait(); }
  std::uint64_t bytes() const override { return reduction_.bytes(); }

 private:
  const std::vector<std::uint32_t> nodes_;
  const std::size_t rank_;
  const std::size_t length_;  // of the vector
  const BeforeLeave before_leave_;
  collective::AdasumReduction reduction_;
  double weight_ = 1;
  std::span<float> buffer_;  // the open one
};

}  // namespace tactus::engine
