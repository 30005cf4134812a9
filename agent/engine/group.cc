#include "agent/engine/group.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tactus::engine {
namespace {

// Neighbours are one range: each is a copy to the host and one back.
std::vector<cuda::FlatRange> CopiesOf(const collective::ReplicaSums& sums,
                                      const cuda::SegmentTable& segments) {
  std::vector<cuda::FlatRange> copies;
  if (sums.copies.empty()) return copies;
  TACTUS_CHECK(sums.copies.size() == segments.size());
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (!sums.copies[i]) continue;
    const bool joins =
        !copies.empty() && copies.back().offset + copies.back().length == segments[i].offset;
    if (!joins) copies.push_back({.offset = segments[i].offset, .length = 0});
    copies.back().length += segments[i].length;
  }
  return copies;
}

}  // namespace

Group::Group(Member& member, collective::Transport& transport, GroupBuffers buffers,
             policies::Plan plan)
    : member_(member),
      transport_(transport),
      gradients_(buffers.gradients),
      loss_sum_(buffers.loss_sum),
      replica_sums_(std::move(buffers.replica_sums)),
      replaced_(buffers.bring != nullptr),
      registers_(buffers.registered),
      registered_(buffers.registered),
      synchronizers_(AllSynchronizers(member, *this)),
      combination_(transport, member.device, member.segments,
                   {.bucket_bytes = member.options.bucket_bytes,
                    .lanes = LaneCount(static_cast<std::size_t>(transport.size())),
                    .nodes = member.options.nodes,
                    .loss_sum = loss_sum_,
                    .bring = std::move(buffers.bring),
                    .replica_sums = replica_sums_}),
      plan_(std::move(plan)) {
  TACTUS_CHECK(policies::Fits(plan_, size()));
  TACTUS_CHECK(size() % member.options.replica_members == 0);
  TACTUS_CHECK(gradients_.size() == member.parameters.size() + LaneCount(size()));
  const bool placed = member.options.nodes.size() == size();
  EncodedMembers encoded{.copies = CopiesOf(replica_sums_, member.segments)};
  if (placed) encoded.nodes = member.options.nodes;
  member.encodings.Meet(std::move(encoded));
  FollowPlan();
}

Synchronizer& Group::synchronizer() const {
  const auto found = std::ranges::find_if(
      synchronizers_, [&](const auto& each) { return each->Runs(round_plan()); });
  TACTUS_CHECK(found != synchronizers_.end());
  return **found;
}

StepSizes Group::step() const {
  const std::vector<std::uint32_t>& sizes = round_plan().batch_sizes;
  const std::size_t first = replica() * member_.options.replica_members;
  StepSizes step{.micro_batch = member_.options.micro_batch};
  for (std::size_t i = first; i < first + member_.options.replica_members; ++i) {
    step.step += sizes[i];
    if (i < rank()) step.before += sizes[i];
    if (i > rank()) step.behind += sizes[i];
  }
  return step;
}

std::vector<std::uint64_t> Group::ReplicaSizes(const policies::Plan& plan) const {
  std::vector<std::uint64_t> sizes(replicas());
  for (std::size_t i = 0; i < plan.batch_sizes.size(); ++i) {
    sizes[i / member_.options.replica_members] += plan.batch_sizes[i];
  }
  return sizes;
}

void Group::Resume(ResumedWindow window) {
  resumed_ = std::move(window);
  combination_.SetBatchSizes(resumed_->plan.batch_sizes);
}

void Group::EndResumed() {
  if (!std::exchange(resumed_, {})) return;
  combination_.SetBatchSizes(plan_.batch_sizes);
}

bool Group::Offer(policies::Plan plan) {
  const std::uint64_t known = plan_.version + plans_waiting_.size();
  // One that is known already does no harm; one that leaves a gap must not be voted for.
  if (plan.version <= known) return true;
  if (plan.version != known + 1 || !policies::Fits(plan, size())) return false;
  return plans_waiting_.Push(std::move(plan));
}

void Group::AdoptNextPlan() {
  plan_ = plans_waiting_.Pop();
  FollowPlan();
}

void Group::FollowPlan() {
  SetShares();
  combination_.SetEncoding(member_.encodings.For(plan_.encoding));
  RegisterGradients();
}

// What Adasum's exchanges send is in the gradients, what they receive is not: one end would be
// registered and the other not. Members come by a plan at the same round, with nothing under way.
void Group::RegisterGradients() {
  const bool wanted = registers_ && plan_.aggregation == policies::Aggregation::kAverage;
  if (wanted == registered_) return;
  registered_ = wanted;
  if (!wanted) {
    transport_.Deregister();
  } else if (!transport_.Register(gradients_)) {
    transport_.Abort("the gradients could not be registered again");
  }
}

void Group::SetShares() {
  std::vector<std::uint64_t> shares = ReplicaSizes(plan_);
  for (std::uint64_t& share : shares) share *= plan_.period;
  member_.ledger.SetShares(std::move(shares), replica());
  combination_.SetBatchSizes(plan_.batch_sizes);
}

// Lanes are nobody else's.
void Group::ClearBuffer() {
  member_.device.Fill(0, replaced_ ? gradients_.subspan(member_.parameters.size()) : gradients_);
}

void Group::ClearVector() {
  if (!replaced_) member_.device.Fill(0, vector());
}

collective::Completion Group::Average(std::span<float> values) {
  member_.device.Copy(values, vector());
  collective::Completion completion = transport_.StartAllReduceSum(vector())->Wait();
  if (completion.progress == collective::Progress::kDone) {
    member_.device.Scale(1 / static_cast<float>(replicas()), vector());
    member_.device.Copy(vector(), values);
  }
  ClearVector();
  return completion;
}

collective::Completion Group::Distribute(std::size_t root, std::span<const float> values) {
  // On all members that have any: where they have parts, each gets that of its place, maybe of one
  // of the root's replica that is not the root (ReplicaTransport).
  if (rank() == root || !values.empty()) member_.device.Copy(values, vector());
  return transport_.StartBroadcast(vector(), static_cast<int>(root))->Wait();
}

}  // namespace tactus::engine
