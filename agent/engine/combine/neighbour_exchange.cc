#include "agent/engine/combine/neighbour_exchange.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"

namespace tactus::engine {

using collective::Completion;
using collective::Progress;

namespace {

// A member with nothing to give says so in place of its vector's first number.
constexpr float kNothing = std::numeric_limits<float>::quiet_NaN();
bool Gives(std::span<const float> message) { return std::isfinite(message.front()); }

}  // namespace

NeighbourExchange::NeighbourExchange(collective::Transport& transport, cuda::Device& device,
                                     std::size_t length, bool mean_gradients,
                                     BeforeLeave before_leave)
    : transport_(transport),
      device_(device),
      length_(length),
      rank_(static_cast<std::uint32_t>(transport.rank())),
      mean_gradients_(mean_gradients),
      before_leave_(std::move(before_leave)) {}

void NeighbourExchange::Prepare(const policies::MixingGraph& graph, std::span<const float> vector,
                                std::span<const double> finite) {
  TACTUS_CHECK(graph.size() == static_cast<std::size_t>(transport_.size()));
  TACTUS_CHECK(vector.size() == length_ && finite.size() == 1 && !exchanging_);
  neighbours_.clear();
  std::ranges::copy_if(graph[rank_], std::back_inserter(neighbours_),
                       [this](const policies::Neighbour& one) { return one.rank != rank_; });
  receivers_.assign(graph.size(), false);
  const std::vector<std::vector<std::uint32_t>> receivers = policies::ReceiversOf(graph);
  for (const std::uint32_t receiver : receivers[rank_]) {
    receivers_[receiver] = true;
  }
  vector_ = vector;
  told_finite_ = finite;
}

void NeighbourExchange::Begin(std::span<float> buffer) {
  TACTUS_CHECK(!exchanging_ && vector_.size() == length_);
  buffer_ = buffer;
}

void NeighbourExchange::SegmentReady(std::size_t) { TACTUS_CHECK(by_segments()); }

void NeighbourExchange::MakeRoom() {
  if (result_.size() == 0) result_ = device_.Allocate(length_);
  if (theirs_.size() == 0) theirs_ = device_.Allocate(length_);
  if (outgoing_.size() == 0) outgoing_ = device_.AllocateOnHost<float>(length_);
  for (const policies::Neighbour& one : neighbours_) {
    cuda::Array<float>& inbox = inbox_[one.rank];
    if (inbox.size() == 0) inbox = device_.AllocateOnHost<float>(length_);
  }
}

// Both are started at once, so that who has come late alone is what the first one waits for.
void NeighbourExchange::Finish() {
  before_leave_(buffer_);
  MakeRoom();
  device_.Copy(vector_, outgoing_.span());
  device_.Synchronize();
  finite_ = told_finite_.front() != 0;
  if (!finite_) outgoing_.span().front() = kNothing;
  const std::span<float> lanes = buffer_.subspan(length_);
  bytes_ = lanes.size_bytes() +
           length_ * sizeof(float) * static_cast<std::size_t>(std::ranges::count(receivers_, true));
  counting_ = transport_.StartAllReduceSum(lanes);
  exchanging_ = transport_.StartConversation(*this);
}

std::span<const std::byte> NeighbourExchange::Outgoing(std::size_t, int peer) {
  if (!receivers_[static_cast<std::size_t>(peer)]) return {};
  return std::as_bytes(std::span<const float>(outgoing_.span()));
}

std::span<std::byte> NeighbourExchange::Incoming(std::size_t, int peer) {
  const auto rank = static_cast<std::uint32_t>(peer);
  const bool sends = std::ranges::count(neighbours_, rank, &policies::Neighbour::rank) > 0;
  return sends ? std::as_writable_bytes(inbox_.at(rank).span()) : std::span<std::byte>();
}

Progress NeighbourExchange::Poll() {
  return exchanging_ ? Progress::kRunning : completion_.progress;
}

Completion NeighbourExchange::Wait() {
  if (!exchanging_) return completion_;
  const Completion counted = counting_->Wait();
  completion_ = exchanging_->Wait();
  counting_.reset();
  exchanging_.reset();
  if (counted.progress == Progress::kFailed) completion_ = counted;
  if (completion_.progress == Progress::kFailed) return completion_;
  taken_ = std::max(Duration{}, completion_.finished - counted.finished);
  device_.Fill(0, result_.span());
  if (finite_) {
    FindExcess();
  } else {
    FindMean();
  }
  device_.Fill(0, buffer_.first(length_));
  return completion_;
}

void NeighbourExchange::FindExcess() {
  for (const policies::Neighbour& one : neighbours_) {
    const std::span<const float> message = inbox_.at(one.rank).span();
    if (!Gives(message)) continue;
    device_.Copy(message, theirs_.span());
    const std::span<float> difference = buffer_.first(length_);
    device_.ParameterDelta(vector_, theirs_.span(), difference);
    device_.Axpy(static_cast<float>(one.weight), difference, result_.span());
  }
}

void NeighbourExchange::FindMean() {
  mean_weight_ = 0;
  for (const policies::Neighbour& one : neighbours_) {
    if (Gives(inbox_.at(one.rank).span())) mean_weight_ += one.weight;
  }
  for (const policies::Neighbour& one : neighbours_) {
    const std::span<const float> message = inbox_.at(one.rank).span();
    if (!Gives(message)) continue;
    device_.Copy(message, theirs_.span());
    const auto share = static_cast<float>(one.weight / mean_weight_);
    device_.Axpy(share, theirs_.span(), result_.span());
  }
}

}  // namespace tactus::engine
