#include "agent/engine/combine/combination.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tactus::engine {

Combination::Combination(collective::Transport& transport, cuda::Device& device,
                         const cuda::SegmentTable& segments, CombinationOptions options)
    : transport_(transport),
      device_(device),
      length_(cuda::FlatLength(segments)),
      lanes_(options.lanes),
      loss_sum_(options.loss_sum),
      bring_(std::move(options.bring)),
      replica_(options.replica_sums, device, segments),
      average_(MakeAverage(
          transport, collective::MakeBuckets(segments, length_ + lanes_, options.bucket_bytes),
          length_, before_leave())),
      adasum_(MakeAdasum(
          transport, device, segments,
          {.nodes = std::move(options.nodes), .replica = std::move(options.replica_sums)},
          before_leave())),
      numbers_(device.AllocateSums(kNumbers)),
      numbers_on_host_(device.AllocateOnHost<double>(kNumbers)),
      lanes_on_host_(device.AllocateOnHost<float>(options.lanes)),
      copied_(device.MakeMark()) {
  TACTUS_CHECK(loss_sum_.size() == 1);
}

Aggregator& Combination::For(policies::Aggregation aggregation) {
  return aggregation == policies::Aggregation::kAdasum ? *adasum_ : *average_;
}

void Combination::SetBatchSizes(const std::vector<std::uint32_t>& sizes) {
  average_->SetBatchSizes(sizes);
  adasum_->SetBatchSizes(sizes);
}

void Combination::SetEncoding(Encoding& encoding) {
  TACTUS_CHECK(!open_);
  average_->SetEncoding(encoding);
}

void Combination::Begin(Aggregator& aggregator, std::span<float> buffer, TellLanes lanes,
                        const WindowSums& window) {
  TACTUS_CHECK(!open_ && buffer.size() == length_ + lanes_);
  open_ = true;
  followed_ = false;
  lost_.reset();
  aggregator_ = &aggregator;
  buffer_ = buffer;
  own_lanes_ = std::move(lanes);
  device_.Clear(numbers_.span());
  if (!window.poison.empty()) device_.Copy(window.poison, own_norm2());
  common_loss_ = window.first_loss.empty() ? loss_sum_ : window.first_loss;
  aggregator.Begin(buffer);
}

void Combination::SegmentReady(std::size_t segment) {
  TACTUS_CHECK(open_);
  aggregator_->SegmentReady(segment);
}

// What must be known of this member's own vector is taken here, as the sum takes its place: its
// norm, and with it the lanes, which leave with the last stretch and so are written when the norm
// is whole.
void Combination::BeforeLeave(std::span<float> stretch) {
  const std::size_t offset = static_cast<std::size_t>(stretch.data() - buffer_.data());
  const std::size_t end = std::min(offset + stretch.size(), length_);
  if (end > offset) {
    TakeOwnNorm(stretch.first(end - offset), offset);
  }
  if (offset + stretch.size() < buffer_.size()) return;
  device_.WriteLanes(own_lanes_(),
                     {.norm2 = own_norm2(), .loss = loss_sum_, .common_loss = common_loss_},
                     buffer_.last(lanes_));
}

void Combination::TakeOwnNorm(std::span<float> own, std::size_t offset) {
  const bool in_parts = replica_.in_parts();
  const bool found = bring_ && bring_(own, in_parts ? std::span<double>() : own_norm2());
  if (in_parts || !found) replica_.AddNorm(own, offset, own_norm2());
}

void Combination::Finish() {
  TACTUS_CHECK(open_);
  aggregator_->Finish();
  device_.Copy(loss_sum_, own_loss_sum());
  device_.Clear(loss_sum_);
}

collective::Progress Combination::Poll() {
  TACTUS_CHECK(open_);
  return aggregator_->Poll();
}

collective::Progress Combination::Follow(const cuda::RoundGate& gate) {
  TACTUS_CHECK(open_ && !followed_);
  const collective::Progress progress = aggregator_->WaitOnDevice();
  if (progress == collective::Progress::kFailed) return progress;
  if (!FindWholeNorm()) return collective::Progress::kFailed;
  QueueResults(gate, transport_.lost());
  followed_ = true;
  return progress;
}

// False: the group was lost meanwhile.
bool Combination::FindWholeNorm() {
  if (!replica_.in_parts()) return true;
  replica_.AddNorm(buffer_.first(length_), 0, norm2());
  const collective::Completion found = replica_.Add(norm2());
  if (found.progress == collective::Progress::kFailed) lost_ = found;
  return !lost_;
}

void Combination::Lose(collective::Completion lost) {
  TACTUS_CHECK(open_ && followed_);
  lost_ = std::move(lost);
}

// The copies come right behind the gate, so that the host has its numbers while the device still
// does what the gate let through.
void Combination::QueueResults(const cuda::RoundGate& gate, const std::uint32_t* lost) {
  // Where members have parts it was found before.
  if (!replica_.in_parts()) device_.AddSquaredNorm(buffer_.first(length_), norm2());
  const std::span<float> tail = buffer_.last(lanes_);
  const GateLanes lanes = GateLanesOf(tail);
  device_.GateRound(
      gate,
      {.norm2 = norm2(), .samples = lanes.samples, .nonfinite = lanes.nonfinite, .lost = lost},
      numbers_.span().subspan(kGate));
  device_.Copy(numbers_.span(), numbers_on_host_.span());
  device_.Copy(tail, lanes_on_host_.span());
  copied_->Record();
}

collective::Completion Combination::Wait() {
  if (!open_) return completion_;
  if (followed_) copied_->Wait();
  completion_ = aggregator_->Wait();
  if (lost_) completion_ = *lost_;
  open_ = false;
  if (followed_ && !lost_) AskTheGate();
  return completion_;
}

// The device has acted on what its gate saw, so the host has to see the same, even where the group
// came to its end between the gate and now. Why a group is lost, any collective of it tells.
void Combination::AskTheGate() {
  const bool lost = numbers_on_host_.span()[kGate + cuda::kRoundGateLost] != 0;
  if (lost && completion_.progress != collective::Progress::kFailed) {
    completion_.reason = transport_.StartBarrier()->Wait().reason;
  }
  if (!lost) completion_.reason.clear();
  completion_.progress = lost ? collective::Progress::kFailed : collective::Progress::kDone;
}

Combined Combination::Read() {
  TACTUS_CHECK(!open_ && !buffer_.empty());
  if (!followed_) {
    QueueResults({}, nullptr);
    copied_->Wait();
  }
  const std::span<const double> numbers = numbers_on_host_.span();
  return {.vector = buffer_.first(length_),
          .lanes = lanes(),
          .norm2 = numbers[kNorm2],
          .own_norm2 = numbers[kOwnNorm2],
          .own_loss_sum = numbers[kOwnLossSum],
          .scale = numbers[kGate + cuda::kGateScale],
          .applied = numbers[kGate + cuda::kGateOpen] != 0};
}

}  // namespace tactus::engine
