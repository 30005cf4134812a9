#include "simulator/group.h"

#include <algorithm>
#include <utility>

#include "agent/collective/rank_sum.h"
#include "base/check.h"

namespace tactus::simulator {
namespace {

const char* const kStuck = "a collective made no progress for 600 s";
const char* const kLeft = "a member left the group";

}  // namespace

// A member's handle of a collective.
class GroupCollective : public collective::Collective {
 public:
  GroupCollective(Group& group, int rank, std::uint64_t number)
      : group_(group), rank_(rank), number_(number) {}
  ~GroupCollective() override {
    if (Poll() == collective::Progress::kRunning) Wait();
    group_.Release(number_);
  }

  collective::Progress Poll() override { return group_.At(rank_, number_); }
  collective::Completion Wait() override { return group_.Wait(rank_, number_); }

 private:
  Group& group_;
  const int rank_;
  const std::uint64_t number_;
};

class GroupTransport : public collective::Transport {
 public:
  GroupTransport(Group& group, int rank) : group_(group), rank_(rank) {}
  ~GroupTransport() override { group_.Leave(rank_); }

  int rank() const override { return rank_; }
  int size() const override { return group_.size(); }

  std::unique_ptr<collective::Collective> StartAllReduceSum(std::span<float> buffer) override {
    return Start(buffer, Group::kNoRoot);
  }
  std::unique_ptr<collective::Collective> StartBroadcast(std::span<float> buffer,
                                                         int root) override {
    return Start(buffer, root);
  }
  void Abort(const std::string& reason) override { group_.Fail(reason); }

 private:
  std::unique_ptr<collective::Collective> Start(std::span<float> buffer, int root) {
    return std::make_unique<GroupCollective>(group_, rank_, group_.Start(rank_, buffer, root));
  }

  Group& group_;
  const int rank_;
};

Group::Group(Scheduler& scheduler, Network& network, Places places, const GroupOptions& options)
    : scheduler_(scheduler),
      network_(network),
      places_(std::move(places)),
      options_(options),
      members_(places_.hosts.size()) {
  scheduler_.After(kCollectiveTimeout, [this] { Watch(); });
}

// A collective that somebody has waited in for too long ends the group.
void Group::Watch() {
  if (!failure_.empty() || left_ == size()) return;
  const Instant now = scheduler_.now();
  Instant next = now + kCollectiveTimeout;
  for (const Gathering& gathering : gatherings_) {
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
      if (!gathering.waiting[rank]) continue;
      next = std::min(next, gathering.ready[rank] + kCollectiveTimeout);
    }
  }
  if (next <= now) return FailAt(now, kStuck);
  scheduler_.At(next, [this] { Watch(); });
}

std::unique_ptr<collective::Transport> Group::Join(int rank, Process& process) {
  members_[static_cast<std::size_t>(rank)].process = &process;
  return std::make_unique<GroupTransport>(*this, rank);
}

void Group::Fail(const std::string& reason) { FailAt(scheduler_.now() + kResetDelay, reason); }

void Group::FailAt(Instant time, const std::string& reason) {
  if (failed_at_ <= time) return;
  failure_ = reason;
  failed_at_ = time;
  for (const Gathering& gathering : gatherings_) {
    for (std::size_t rank = 0; rank < gathering.waiting.size(); ++rank) {
      if (gathering.waiting[rank]) members_[rank].process->WakeAt(time);
    }
  }
}

std::uint64_t Group::Start(int rank, std::span<float> buffer, int root) {
  const auto index = static_cast<std::size_t>(rank);
  const std::uint64_t number = members_[index].started++;
  Gathering& gathering = Open(number, buffer.size(), root);
  TACTUS_CHECK(gathering.length == buffer.size() && gathering.root == root);
  gathering.buffers[index] = buffer;
  gathering.ready[index] = scheduler_.now();
  ++gathering.arrived;
  if (number >= end_) Fail(kLeft);
  if (gathering.arrived == size() && failure_.empty()) Compute(gathering);
  return number;
}

void Group::Leave(int rank) {
  ++left_;
  end_ = std::min(end_, members_[static_cast<std::size_t>(rank)].started);
  const bool missed =
      std::ranges::any_of(members_, [this](const Member& member) { return member.started > end_; });
  if (missed) Fail(kLeft);
}

Group::Gathering& Group::Open(std::uint64_t number, std::size_t length, int root) {
  if (number - first_ == gatherings_.size()) {
    gatherings_.emplace_back();
    Gathering& fresh = gatherings_.back();
    if (!spare_.empty()) {
      fresh = std::move(spare_.back());
      spare_.pop_back();
    }
    fresh.length = length;
    fresh.root = root;
    fresh.arrived = fresh.released = 0;
    fresh.computed = false;
    fresh.buffers.assign(members_.size(), {});
    fresh.ready.assign(members_.size(), {});
    fresh.finished.assign(members_.size(), {});
    fresh.waiting.assign(members_.size(), false);
  }
  return gatherings_[number - first_];
}

collective::Progress Group::At(int rank, std::uint64_t number) const {
  using collective::Progress;
  const Gathering& gathering = gatherings_[number - first_];
  const auto index = static_cast<std::size_t>(rank);
  const Instant now = scheduler_.now();
  const Instant finished = gathering.computed ? gathering.finished[index] : Instant::max();
  if (finished <= now && finished <= failed_at_) return Progress::kDone;
  const bool killed = members_[index].process->killed();
  return killed || failed_at_ <= now ? Progress::kFailed : Progress::kRunning;
}

collective::Completion Group::Wait(int rank, std::uint64_t number) {
  const auto index = static_cast<std::size_t>(rank);
  Process& process = *members_[index].process;
  while (At(rank, number) == collective::Progress::kRunning) {
    Gathering& gathering = gatherings_[number - first_];
    const Instant end = gathering.computed ? gathering.finished[index] : Instant::max();
    gathering.waiting[index] = true;
    if (const Instant due = std::min(end, failed_at_); due != Instant::max()) {
      process.SleepUntil(due, WaitReason::kCollective);
    } else {
      process.SleepUntilWoken(WaitReason::kCollective);
    }
    gatherings_[number - first_].waiting[index] = false;
  }
  const collective::Progress progress = At(rank, number);
  const bool failed = progress == collective::Progress::kFailed;
  return {.progress = progress, .at = scheduler_.now(), .reason = failed ? failure_ : ""};
}

// Handles are let go in the order of their numbers by each member, so the oldest is free first.
void Group::Release(std::uint64_t number) {
  ++gatherings_[number - first_].released;
  while (!gatherings_.empty() && gatherings_.front().released == size()) {
    spare_.push_back(std::move(gatherings_.front()));
    gatherings_.pop_front();
    ++first_;
  }
}

void Group::Compute(Gathering& gathering) {
  // Who stands still sends nothing until it goes on.
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    gathering.ready[rank] = std::max(gathering.ready[rank], members_[rank].process->paused_until());
  }
  last_arrival_ = *std::ranges::max_element(gathering.ready);
  const Instant give_up = scheduler_.now() + kCollectiveTimeout;
  if (last_arrival_ >= give_up) return FailAt(give_up, kStuck);
  Combine(gathering);
  SendMessages(gathering);
  if (*std::ranges::max_element(gathering.finished) > give_up) FailAt(give_up, kStuck);
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    const Instant finished = gathering.finished[rank];
    if (gathering.waiting[rank] && finished <= give_up) members_[rank].process->WakeAt(finished);
  }
}

void Group::SendMessages(Gathering& gathering) {
  const double before = network_.bytes_sent();
  const CollectiveCall call{.bytes = Weight(static_cast<double>(gathering.length)),
                            .ready = gathering.ready,
                            .finished = gathering.finished};
  if (gathering.root == kNoRoot) {
    RunAllReduce(options_.algorithm, places_, call, network_);
  } else {
    RunBroadcast(options_.algorithm, places_, gathering.root, call, network_);
  }
  bytes_sent_ += network_.bytes_sent() - before;
  gathering.computed = true;
}

void Group::Combine(const Gathering& gathering) {
  const std::span<float> first =
      gathering.buffers[static_cast<std::size_t>(std::max(gathering.root, 0))];
  if (gathering.root == kNoRoot) {
    sources_.clear();
    for (const std::span<float> buffer : gathering.buffers) sources_.push_back(buffer.data());
    collective::SumInRankOrder(sources_, first);
  }
  for (const std::span<float> buffer : gathering.buffers) {
    if (buffer.data() != first.data()) std::copy(first.begin(), first.end(), buffer.begin());
  }
}

}  // namespace tactus::simulator
