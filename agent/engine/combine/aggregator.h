// Aggregation: how the members' vectors become one, and in which unit they travel.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "agent/collective/bucketing.h"
#include "agent/collective/replica_sums.h"
#include "agent/collective/transport.h"
#include "agent/engine/combine/encoding.h"
#include "agent/engine/combine/lanes.h"
#include "cuda/device.h"
#include "cuda/ops/segments.h"
#include "policies/adascale.h"

namespace tactus::engine {

// One way to aggregate, used by Combination for one buffer after the other. One thread.
//
// Member i has n_i samples in a round, N is their sum; g_i is its mean gradient, or what its local
// steps changed, and g the group's. What travels is a multiple of these:
//
//             member i puts in    comes out
//   average   n_i g_i             N g
//   Adasum    w_i g_i             g            w_i: its weight in its node's mean
//   both      w_i D(n_i) g_i      D(N) g
class Aggregator {
 public:
  // Called with a stretch of the open buffer right before it leaves, while it still holds this
  // member's own; with all of them in order, and the lanes in the last.
  using BeforeLeave = std::function<void(std::span<float> stretch)>;

  virtual ~Aggregator() = default;

  // ---- The unit

  // The samples of a step that the plan in force gives to each rank.
  virtual void SetBatchSizes(const std::vector<std::uint32_t>&) {}

  // D(samples), > 0 where samples are.
  virtual double Divisor(double samples) const = 0;
  // w_i of this member, >= 0; of mean 1 within a node.
  virtual double weight() const = 0;

  // What g_i, or n_i g_i, is multiplied by before it is put in. samples: n_i, > 0 for the latter.
  float FactorOfMean(float samples) const {
    return static_cast<float>(weight() * Divisor(static_cast<double>(samples)));
  }
  float FactorOfSum(float samples) const { return FactorOfMean(samples) / samples; }

  // ---- What the result tells

  // What the learning rate learns from an update by a gradient with ||g||^2 = norm2.
  virtual policies::UpdateFacts FactsOf(const Lanes& lanes, const Spread& spread,
                                        double norm2) const = 0;
  // How far the members agreed; see policies/orthogonality.h. After Combination::Read.
  virtual double Orthogonality(const Lanes& lanes, const Spread& spread, double norm2) const = 0;

  // ---- The way, as Combination has it: Begin, SegmentReady, Finish, Poll, Follow,
  //      Wait

  // In which form vectors travel from the next Begin on; it outlives this. Where they always
  // travel dense it is not used.
  virtual void SetEncoding(Encoding&) {}
  virtual void Begin(std::span<float> buffer) = 0;
  // Whether segments leave one by one as they become ready, by collectives that are all under way
  // when Finish returns. Otherwise the vector leaves as a whole, in a row of collectives of which
  // Poll and Wait start the later ones: no other may be started on the transport meanwhile.
  virtual bool by_segments() const = 0;
  // How many segments, from the front, may leave while the lanes are not final yet.
  virtual std::size_t early_segments() const { return 0; }
  virtual void SegmentReady(std::size_t segment) = 0;  // requires by_segments()
  // Where members have parts, this and Poll may wait for the replica, and no collective of its
  // groups may be started between Finish and Wait.
  virtual void Finish() = 0;
  virtual collective::Progress Poll() = 0;
  // Collective::WaitOnDevice of all that is under way and still to come; after Finish, before Wait.
  virtual collective::Progress WaitOnDevice() = 0;
  virtual collective::Completion Wait() = 0;
  virtual std::uint64_t bytes() const = 0;  // payload of one buffer
};

// An exchange of whole vectors that makes no sum of gradients: none tells of their noise, or of how
// far members agree.
class VectorExchange : public Aggregator {
 public:
  double weight() const override { return 1; }
  policies::UpdateFacts FactsOf(const Lanes& lanes, const Spread&, double) const override {
    return {.samples = lanes.samples};
  }
  double Orthogonality(const Lanes&, const Spread&, double) const override { return 0; }
  bool by_segments() const override { return false; }
  // The host has a part in it, so it waits.
  collective::Progress WaitOnDevice() override { return Wait().progress; }
};

// The mean over samples: encoded pieces of the members' sums are added up, bucket by bucket. The
// vector is the first `length` elements of what the plan is of. transport outlives it; without
// SetEncoding they are dense.
std::unique_ptr<Aggregator> MakeAverage(collective::Transport& transport,
                                        collective::BucketPlan plan, std::size_t length,
                                        Aggregator::BeforeLeave before_leave);

struct AdasumOptions {
  // The node of each rank; empty: all apart. Replicas of members that have parts always are.
  std::vector<std::uint32_t> nodes{};
  collective::ReplicaSums replica{};
};

// Adasum of the members' means, or of their nodes' or replicas'. Its operator is of whole vectors,
// so they travel dense; where members have parts, those of a place meet in the transport's
// of_parts(). transport and device outlive it.
std::unique_ptr<Aggregator> MakeAdasum(collective::Transport& transport, cuda::Device& device,
                                       const cuda::SegmentTable& segments, AdasumOptions options,
                                       Aggregator::BeforeLeave before_leave);

}  // namespace tactus::engine
