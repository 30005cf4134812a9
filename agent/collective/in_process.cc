#include "agent/collective/in_process.h"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>

#include "agent/collective/rank_sum.h"
#include "base/check.h"

namespace tactus::collective {
namespace {

constexpr int kNoRoot = -1;  // an all-reduce

// One collective that not all members have started.
struct Gathering {
  std::size_t length = 0;
  int root = kNoRoot;
  std::vector<std::span<float>> buffers = {};  // one a rank
  int arrived = 0;
};

// What the members of a group share. Every collective has a number: the count of those before it.
class Group {
 public:
  explicit Group(int size) : size_(size), started_(static_cast<std::size_t>(size)) {}

  int size() const { return size_; }

  // Rank's next collective; the last member to arrive does the arithmetic. Returns its number.
  std::uint64_t Start(int rank, std::span<float> buffer, int root) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t number = started_[static_cast<std::size_t>(rank)]++;
    if (!failure_.empty()) return number;
    if (number - finished_ == gatherings_.size()) {
      gatherings_.push_back({.length = buffer.size(), .root = root});
      gatherings_.back().buffers.resize(started_.size());
    }
    Gathering& gathering = gatherings_[number - finished_];
    TACTUS_CHECK(gathering.length == buffer.size() && gathering.root == root);
    gathering.buffers[static_cast<std::size_t>(rank)] = buffer;
    if (++gathering.arrived == size_) FinishFront();
    return number;
  }

  Progress Poll(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    return At(number);
  }

  // Waits for the collective's end; returns why it failed, or nothing.
  std::string Wait(std::uint64_t number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return At(number) != Progress::kRunning; });
    return At(number) == Progress::kFailed ? failure_ : "";
  }

  // Ends the group for all members; the first reason stays.
  void Fail(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = reason;
    gatherings_.clear();
    changed_.notify_all();
  }

 private:
  Progress At(std::uint64_t number) const {
    if (number < finished_) return Progress::kDone;
    return failure_.empty() ? Progress::kRunning : Progress::kFailed;
  }

  // All members start in the same order, so it is always the oldest that becomes complete.
  void FinishFront() {
    const Gathering& front = gatherings_.front();
    TACTUS_CHECK(front.arrived == size_);
    const std::span<float> first = front.buffers[static_cast<std::size_t>(std::max(front.root, 0))];
    if (front.root == kNoRoot) {
      std::vector<const float*> sources;
      for (const std::span<float> buffer : front.buffers) sources.push_back(buffer.data());
      SumInRankOrder(sources, first);
    }
    for (const std::span<float> buffer : front.buffers) {
      if (buffer.data() != first.data()) std::copy(first.begin(), first.end(), buffer.begin());
    }
    gatherings_.pop_front();
    ++finished_;
    changed_.notify_all();
  }

  const int size_;

  // Guarded by mutex_.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::uint64_t> started_;  // one a rank: collectives started
  std::uint64_t finished_ = 0;          // collectives done
  std::deque<Gathering> gatherings_;    // numbers finished_, finished_ + 1, ...
  std::string failure_;                 // why the group is over; empty while it is not
};

class InProcessCollective : public Collective {
 public:
  InProcessCollective(std::shared_ptr<Group> group, std::uint64_t number,
                      std::function<Instant()> now)
      : group_(std::move(group)), number_(number), now_(std::move(now)) {}
  ~InProcessCollective() override { group_->Wait(number_); }

  Progress Poll() override { return group_->Poll(number_); }

  Completion Wait() override {
    std::string failure = group_->Wait(number_);
    const Progress progress = failure.empty() ? Progress::kDone : Progress::kFailed;
    return {.progress = progress, .at = now_(), .reason = std::move(failure)};
  }

 private:
  const std::shared_ptr<Group> group_;  // shared with the members' transports
  const std::uint64_t number_;
  const std::function<Instant()> now_;
};

class InProcessTransport : public Transport {
 public:
  InProcessTransport(std::shared_ptr<Group> group, int rank, std::function<Instant()> now)
      : group_(std::move(group)), rank_(rank), now_(std::move(now)) {}
  ~InProcessTransport() override { Abort("the member has left"); }

  int rank() const override { return rank_; }
  int size() const override { return group_->size(); }

  std::unique_ptr<Collective> StartAllReduceSum(std::span<float> buffer) override {
    return Start(buffer, kNoRoot);
  }

  std::unique_ptr<Collective> StartBroadcast(std::span<float> buffer, int root) override {
    TACTUS_CHECK(root >= 0 && root < size());
    return Start(buffer, root);
  }

  void Abort(const std::string& reason) override {
    group_->Fail("rank " + std::to_string(rank_) + ": " + reason);
  }

 private:
  std::unique_ptr<Collective> Start(std::span<float> buffer, int root) {
    return std::make_unique<InProcessCollective>(group_, group_->Start(rank_, buffer, root), now_);
  }

  const std::shared_ptr<Group> group_;  // shared with the other members and with the handles
  const int rank_;
  const std::function<Instant()> now_;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> MakeInProcessGroup(int size, std::function<Instant()> now) {
  TACTUS_CHECK(size >= 1);
  const auto group = std::make_shared<Group>(size);
  std::vector<std::unique_ptr<Transport>> members;
  for (int rank = 0; rank < size; ++rank) {
    members.push_back(std::make_unique<InProcessTransport>(group, rank, now));
  }
  return members;
}

}  // namespace tactus::collective
