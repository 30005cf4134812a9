#include "agent/engine/combine/leader_exchange.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "agent/engine/combine/tiers.h"
#include "base/check.h"

namespace tactus::engine {
namespace {

using collective::Completion;
using collective::Progress;

// Of a member in the tally: its loss, of how many steps, and what is sound.
constexpr std::size_t kScoreLength = 3;
// The sum of these: its parameters are, and its lanes bring its losses.
constexpr std::uint32_t kSound = 1;
constexpr std::uint32_t kTold = 2;

}  // namespace

LeaderExchange::LeaderExchange(collective::Transport& transport, cuda::Device& device,
                               std::size_t length, std::vector<std::uint32_t> nodes,
                               BeforeLeave before_leave)
    : transport_(transport),
      device_(device),
      length_(length),
      rank_(static_cast<std::size_t>(transport.rank())),
      nodes_(std::move(nodes)),
      tiered_(TiersOf(nodes_).any()),
      before_leave_(std::move(before_leave)) {
  TACTUS_CHECK(nodes_.size() == static_cast<std::size_t>(transport.size()));
}

std::span<const float> LeaderExchange::of_node() const {
  return has_node_leader_ ? node_leader_.span() : std::span<const float>();
}

void LeaderExchange::Begin(std::span<float> buffer) {
  TACTUS_CHECK(!counting_);
  buffer_ = buffer;
  has_node_leader_ = false;
  leaders_ = {};
}

void LeaderExchange::SegmentReady(std::size_t) { TACTUS_CHECK(by_segments()); }

void LeaderExchange::Finish() {
  before_leave_(buffer_);
  WriteTally();
  bytes_ = tally_.size() * sizeof(float);
  counting_ = transport_.StartAllReduceSum(tally_.span());
}

// A loss that is no number would be one of everybody's in a sum.
void LeaderExchange::WriteTally() {
  const std::size_t lanes = buffer_.size() - length_;
  if (tally_.size() == 0) tally_ = device_.Allocate(lanes + kScoreLength * size());
  device_.Fill(0, tally_.span());
  device_.Copy(buffer_.subspan(length_), tally_.span().first(lanes));
  const LeaderScore& score = turn_.score;
  const bool sound = score.sound && std::isfinite(score.loss);
  const std::vector<float> own = {
      sound ? static_cast<float>(score.loss) : 0, static_cast<float>(score.steps),
      static_cast<float>((sound ? kSound : 0) + (turn_.loss_told ? kTold : 0))};
  device_.Copy(own, tally_.span().subspan(lanes + kScoreLength * rank_, kScoreLength));
}

void LeaderExchange::ReadTally() {
  const std::size_t lanes = buffer_.size() - length_;
  std::vector<float> scores(kScoreLength * size());
  device_.Copy(tally_.span().first(lanes), buffer_.subspan(length_));
  device_.Copy(tally_.span().subspan(lanes), scores);
  device_.Synchronize();
  std::vector<LeaderScore> told;
  loss_told_.assign(size(), false);
  for (std::size_t rank = 0; rank < size(); ++rank) {
    const std::span<const float> score = std::span(scores).subspan(kScoreLength * rank);
    const auto marks = static_cast<std::uint32_t>(score[2]);
    told.push_back({.loss = score[0],
                    .steps = static_cast<std::uint32_t>(score[1]),
                    .sound = (marks & kSound) != 0});
    loss_told_[rank] = (marks & kTold) != 0;
  }
  leaders_ = FindLeaders(told, nodes_, turn_.least_steps);
  lost_ = std::ranges::none_of(told, &LeaderScore::sound);
}

double LeaderExchange::SamplesTold(const Lanes& lanes) const {
  double samples = 0;
  for (std::size_t rank = 0; rank < size(); ++rank) {
    if (loss_told_[rank]) samples += lanes.member_samples[rank];
  }
  return samples;
}

Progress LeaderExchange::Poll() { return counting_ ? Progress::kRunning : completion_.progress; }

Completion LeaderExchange::Wait() {
  if (!counting_) return completion_;
  completion_ = counting_->Wait();
  counting_.reset();
  if (completion_.progress == Progress::kFailed) return completion_;
  ReadTally();
  if (tiered_) {
    const Completion followed = FollowNode();
    if (followed.progress == Progress::kFailed) return completion_ = followed;
  }
  const Completion followed = FollowGroup();
  if (followed.progress == Progress::kFailed || followed.at > completion_.at) {
    completion_ = followed;
  }
  return completion_;
}

// The vector is each member's own still.
Completion LeaderExchange::FollowNode() {
  const std::optional<std::size_t> leader = leaders_.of_nodes[rank_];
  Completion completion = completion_;
  if (!leader) return completion;
  std::vector<std::unique_ptr<collective::Collective>> exchanges;
  if (*leader == rank_) {
    for (std::size_t rank = 0; rank < size(); ++rank) {
      if (rank == rank_ || nodes_[rank] != nodes_[rank_]) continue;
      exchanges.push_back(
          transport_.StartExchange(static_cast<int>(rank), std::as_bytes(vector()), {}));
      bytes_ += length_ * sizeof(float);
    }
  } else {
    if (node_leader_.size() == 0) node_leader_ = device_.Allocate(length_);
    exchanges.push_back(transport_.StartExchange(static_cast<int>(*leader), {},
                                                 std::as_writable_bytes(node_leader_.span())));
    has_node_leader_ = true;
  }
  for (const auto& exchange : exchanges) {
    completion = exchange->Wait();
    if (completion.progress == Progress::kFailed) return completion;
  }
  return completion;
}

Completion LeaderExchange::FollowGroup() {
  const std::optional<std::size_t>& leader = leaders_.of_group;
  if (turn_.of_group && leader) {
    bytes_ += length_ * sizeof(float);
    return transport_.StartBroadcast(vector(), static_cast<int>(*leader))->Wait();
  }
  // The members' own differ, and what comes out does not.
  device_.Fill(lost_ ? std::numeric_limits<float>::quiet_NaN() : 0, vector());
  return completion_;
}

void PullTowards(cuda::Device& device, std::span<const float> leader, double share,
                 std::span<float> scratch, std::span<float> parameters) {
  if (leader.empty() || share == 0) return;
  device.ParameterDelta(leader, parameters, scratch);
  device.Axpy(static_cast<float>(share), scratch, parameters);
}

}  // namespace tactus::engine
