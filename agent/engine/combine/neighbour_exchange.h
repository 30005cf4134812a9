// Exchanges between neighbours: each member sends a vector to those who take it in, and finds by
// how much its own differs from what they have.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "agent/collective/conversation.h"
#include "agent/collective/transport.h"
#include "agent/engine/combine/aggregator.h"
#include "agent/engine/combine/lanes.h"
#include "base/time.h"
#include "cuda/device.h"
#include "policies/mixing.h"

namespace tactus::engine {

// For vectors z and mixing weights w of members i:
//
//   lanes    <- their sum over all members, by a reduction of their own
//   excess_i <- sum over j of w_ij (z_i - z_j), what z_i exceeds the mix by
//   vector   <- 0: nothing comes out that all have
//
// excess is zero to the bit where the neighbours' vectors are alike, and the sum over all members
// of weights that are symmetric is zero but for the order of additions: what is mixed does not
// drift. Terms are added in the order of ranks.
//
// A vector that is not finite is no part of that: its member says so instead of sending it, and to
// its neighbours it is as theirs. It gets the mean of theirs itself, by its weights.
//
// A member sends its vector to its neighbours alone, to all of them at once, so a slow link delays
// its two ends and nobody else in the same round. What all have to know goes ahead in a few
// numbers. One thread.
class NeighbourExchange : public VectorExchange, private collective::Conversation {
 public:
  // mean_gradients: EngineOptions::mean_gradients. What outlives it is as for MakeAverage.
  NeighbourExchange(collective::Transport& transport, cuda::Device& device, std::size_t length,
                    bool mean_gradients, BeforeLeave before_leave);

  // For the next Begin: the graph of all, and this member's vector in the device's memory, which
  // outlives the exchange. Equal graphs on all members.
  //
  // finite  [1] in the host's memory, to which the device has been told to copy whether all of the
  //         vector is: 0 where it is not. Outlives Finish().
  void Prepare(const policies::MixingGraph& graph, std::span<const float> vector,
               std::span<const double> finite);

  // ---- After Wait, where it did not fail

  // Whether this member's vector was finite: there is an excess, else a mean.
  bool finite() const { return finite_; }
  // The device's memory, until the next Begin.
  std::span<const float> excess() const { return result_.span(); }
  // Of the neighbours' vectors that are finite, likewise; empty: none is.
  std::span<const float> mean() const { return mean_weight_ > 0 ? result_.span() : Nothing(); }
  // How long it was since all had come until the neighbours' vectors were here.
  Duration taken() const { return taken_; }

  double Divisor(double samples) const override { return mean_gradients_ ? 1 : samples; }

  void Begin(std::span<float> buffer) override;
  void SegmentReady(std::size_t segment) override;
  void Finish() override;
  collective::Progress Poll() override;
  collective::Completion Wait() override;
  std::uint64_t bytes() const override { return bytes_; }

 private:
  // Conversation, of one turn.
  std::size_t turns() const override { return 1; }
  void Begin(std::size_t) override {}
  std::span<const std::byte> Outgoing(std::size_t turn, int peer) override;
  std::span<std::byte> Incoming(std::size_t turn, int peer) override;
  void End() override {}

  static std::span<const float> Nothing() { return {}; }
  void MakeRoom();
  void FindExcess();
  void FindMean();

  collective::Transport& transport_;
  cuda::Device& device_;
  const std::size_t length_;
  const std::uint32_t rank_;
  const bool mean_gradients_;
  const BeforeLeave before_leave_;

  std::vector<policies::Neighbour> neighbours_;  // whose vectors this member takes in
  std::vector<bool> receivers_;                  // by rank: who takes its vector in
  std::span<const float> vector_;
  std::span<const double> told_finite_;
  bool finite_ = true;
  double mean_weight_ = 0;  // of the neighbours that are in the mean
  std::span<float> buffer_;

  cuda::Array<float> outgoing_;                         // in the host's memory
  std::map<std::uint32_t, cuda::Array<float>> inbox_;   // likewise, by rank
  cuda::Buffer theirs_;                                 // one neighbour's
  cuda::Buffer result_;                                 // the excess, or the mean
  std::unique_ptr<collective::Collective> counting_;    // of the lanes
  std::unique_ptr<collective::Collective> exchanging_;  // null: it is over
  collective::Completion completion_;
  Duration taken_{};
  std::uint64_t bytes_ = 0;
};

}  // namespace tactus::engine
