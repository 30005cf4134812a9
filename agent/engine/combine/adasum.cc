// Adasum of the members' means, or of their nodes' or replicas'.

#include "agent/collective/adasum.h"

#include <algorithm>
#include <utility>

#include "agent/engine/combine/aggregator.h"
#include "base/check.h"
#include "policies/orthogonality.h"

namespace tactus::engine {
namespace {

using collective::Completion;
using collective::Progress;

// Members of a single node meet as if each were one: a mean of all would be no Adasum.
std::vector<std::uint32_t> ApartIfOnOne(std::vector<std::uint32_t> nodes) {
  if (std::ranges::all_of(nodes, [&](auto node) { return node == nodes.front(); })) nodes.clear();
  return nodes;
}

// A replica's vector is a mean over its samples already.
std::vector<std::uint32_t> NodesOf(AdasumOptions& options) {
  if (options.replica.in_parts()) return {};
  return ApartIfOnOne(std::move(options.nodes));
}

// Where members have parts and no group of those who have the same one, nothing can be combined.
collective::Transport& Between(collective::Transport& transport, bool in_parts) {
  collective::Transport* const of_parts = in_parts ? transport.of_parts() : nullptr;
  return of_parts != nullptr ? *of_parts : transport;
}

class Adasum : public Aggregator {
 public:
  Adasum(collective::Transport& transport, cuda::Device& device, const cuda::SegmentTable& segments,
         AdasumOptions options, BeforeLeave before_leave)
      : transport_(transport),
        in_parts_(options.replica.in_parts()),
        nodes_(NodesOf(options)),
        rank_(static_cast<std::size_t>(transport.rank())),
        length_(cuda::FlatLength(segments)),
        before_leave_(std::move(before_leave)),
        reduction_(Between(transport, in_parts_), device, segments, nodes_,
                   std::move(options.replica)) {}

  // m b_i / sum of the b_j of the node, m its members: a node's vector is the plain mean of its
  // members', and with this weight one over samples; by plan, as the members' counts are not known
  // when they leave.
  void SetBatchSizes(const std::vector<std::uint32_t>& sizes) override {
    double sum = 0;
    double members = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i] != nodes_[rank_]) continue;
      sum += sizes[i];
      ++members;
    }
    weight_ = sum > 0 ? members * sizes[rank_] / sum : 1;
  }

  double Divisor(double) const override { return 1; }
  double weight() const override { return weight_; }

  // AdaScale's moments are of mean gradients, which Adasum's result is none of.
  policies::UpdateFacts FactsOf(const Lanes& lanes, const Spread&, double) const override {
    return {.samples = lanes.samples};
  }
  double Orthogonality(const Lanes&, const Spread& spread, double norm2) const override {
    const auto parts = static_cast<std::uint32_t>(reduction_.parts());
    return policies::Orthogonality({.combined_norm2 = norm2,
                                    .parts_norm2 = reduction_.norm2_sum(),
                                    .contributors = std::min(spread.contributors, parts)});
  }

  void Begin(std::span<float> buffer) override {
    TACTUS_CHECK(!in_parts_ || transport_.of_parts() != nullptr);
    buffer_ = buffer;
  }
  bool by_segments() const override { return false; }
  void SegmentReady(std::size_t) override { TACTUS_CHECK(by_segments()); }
  void Finish() override {
    before_leave_(buffer_);
    reduction_.Start(buffer_.first(length_), buffer_.subspan(length_));
  }
  Progress Poll() override { return reduction_.Poll(); }
  Progress WaitOnDevice() override { return reduction_.WaitOnDevice(); }
  // Of groups of parts one may fail alone, and members of the others would wait for this one.
  Completion Wait() override {
    Completion completion = reduction_.Wait();
    if (in_parts_ && completion.progress == Progress::kFailed) transport_.Abort(completion.reason);
    return completion;
  }
  std::uint64_t bytes() const override { return reduction_.bytes(); }

 private:
  collective::Transport& transport_;
  const bool in_parts_;
  const std::vector<std::uint32_t> nodes_;
  const std::size_t rank_;
  const std::size_t length_;  // of the vector
  const BeforeLeave before_leave_;
  collective::AdasumReduction reduction_;
  double weight_ = 1;
  std::span<float> buffer_;  // the open one
};

}  // namespace

std::unique_ptr<Aggregator> MakeAdasum(collective::Transport& transport, cuda::Device& device,
                                       const cuda::SegmentTable& segments, AdasumOptions options,
                                       Aggregator::BeforeLeave before_leave) {
  return std::make_unique<Adasum>(transport, device, segments, std::move(options),
                                  std::move(before_leave));
}

}  // namespace tactus::engine
