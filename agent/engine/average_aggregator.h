// The mean over samples: encoded pieces of the members' sums are added up, bucket by bucket.

#pragma once

#include "agent/collective/bucketing.h"
#include "agent/engine/aggregator.h"
#include "agent/engine/encoding.h"

namespace tactus::engine {

class AverageAggregator : public Aggregator {
 public:
  // length: of the vector, with which a buffer begins; the lanes are behind it. The plan is of the
  // whole buffer. transport and encoding outlive this.
  AverageAggregator(collective::Transport& transport, Encoding& encoding,
                    collective::BucketPlan plan, std::size_t length, BeforeLeave before_leave);

  double Divisor(double samples) const override { return samples; }
  double weight() const override { return 1; }
  policies::UpdateFacts FactsOf(const Lanes& lanes, const Spread& spread,
                                double norm2) const override;
  double Orthogonality(const Lanes& lanes, const Spread& spread, double norm2) const override;

  void Begin(std::span<float> buffer) override;
  bool by_segments() const override { return true; }
  void SegmentReady(std::size_t segment) override { reduction_.SegmentReady(segment); }
  void Finish() override { reduction_.FinishTail(); }
  collective::Progress Poll() override { return reduction_.Poll(); }
  collective::Completion Wait() override;
  std::uint64_t bytes() const override;

 private:
  Piece PieceAt(std::size_t offset, std::size_t length) const;

  Encoding& encoding_;
  const std::size_t length_;
  std::span<float> buffer_;  // the open one, or the last
  collective::BucketedReduction reduction_;
};

}  // namespace tactus::engine
