#include "agent/collective/in_process.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "threads/mutex.h"

namespace tactus::collective {
namespace {

using Kind = Operation::Kind;

// A member's part in a collective. It stays where it is until the collective is done.
struct Part {
  Operation operation = {};
  std::uint64_t number = 0;  // collectives that this member started before
  Instant finished = {};     // once it is done or has failed
};

// What the members of a group share. A collective is done when it is the next one of all who take
// part in it.
class Group {
 public:
  Group(int size, std::function<Instant()> now)
      : now_(std::move(now)), size_(size), members_(static_cast<std::size_t>(size)) {}

  int size() const { return size_; }

  // The member's next collective; whoever makes it complete does the arithmetic.
  void Start(int rank, Part& part) {
    const threads::MutexLock lock(mutex_);
    Member& member = MemberOf(rank);
    part.number = member.started++;
    part.finished = failed_at_;
    if (!failure_.empty()) return;
    member.waiting.push_back(&part);
    if (member.waiting.size() == 1) Arrive(rank);
  }

  Progress Poll(int rank, const Part& part) {
    const threads::MutexLock lock(mutex_);
    return At(rank, part);
  }

  // Waits for the collective's end.
  Completion Wait(int rank, const Part& part) {
    const threads::MutexLock lock(mutex_);
    while (At(rank, part) == Progress::kRunning) changed_.Wait(mutex_);
    const Progress progress = At(rank, part);
    return {.progress = progress,
            .finished = part.finished,
            .at = now_(),
            .reason = progress == Progress::kFailed ? failure_ : ""};
  }

  // Ends the group for all members; the first reason stays.
  void Fail(const std::string& reason) {
    const threads::MutexLock lock(mutex_);
    if (!failure_.empty()) return;
    failure_ = reason;
    failed_at_ = now_();
    for (Member& member : members_) {
      for (Part* const part : member.waiting) part->finished = failed_at_;
      member.waiting.clear();
    }
    changed_.NotifyAll();
  }

 private:
  struct Member {
    std::uint64_t started = 0;
    std::uint64_t finished = 0;
    std::deque<Part*> waiting = {};  // numbers finished, finished + 1, ...
  };

  Member& MemberOf(int rank) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return members_[static_cast<std::size_t>(rank)];
  }

  Progress At(int rank, const Part& part) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (part.number < MemberOf(rank).finished) return Progress::kDone;
    return failure_.empty() ? Progress::kRunning : Progress::kFailed;
  }

  // A collective has become the next one of `rank`: performs it, and what comes after it, as far as
  // all who take part have come.
  void Arrive(int rank) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<int> arrived = {rank};
    while (!arrived.empty()) {
      const int next = arrived.back();
      arrived.pop_back();
      const std::vector<int> members = WhoTakesPart(next);
      if (members.empty()) continue;
      Perform(members);
      for (const int member : members) {
        Finish(MemberOf(member));
        if (!MemberOf(member).waiting.empty()) arrived.push_back(member);
      }
    }
    changed_.NotifyAll();
  }

  // The members of the next collective of `rank`, in rank order; none if it is not the next of
  // all of them, or is done.
  std::vector<int> WhoTakesPart(int rank) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (MemberOf(rank).waiting.empty()) return {};
    const Operation& own = MemberOf(rank).waiting.front()->operation;
    std::vector<int> members;
    if (own.kind == Kind::kExchange) {
      members = {std::min(rank, own.partner), std::max(rank, own.partner)};
    } else {
      members.resize(members_.size());
      std::iota(members.begin(), members.end(), 0);
    }
    const auto has_come = [&](int member) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      const std::deque<Part*>& waiting = MemberOf(member).waiting;
      if (waiting.empty()) return false;
      const Operation& other = waiting.front()->operation;
      const bool exchange = other.kind == Kind::kExchange;
      if (own.kind != Kind::kExchange) return !exchange;
      return member == rank || (exchange && other.partner == rank);
    };
    return std::ranges::all_of(members, has_come) ? members : std::vector<int>();
  }

  void Perform(const std::vector<int>& members) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<Operation> operations;
    for (const int member : members) {
      operations.push_back(MemberOf(member).waiting.front()->operation);
    }
    CarryOut(operations);
  }

  void Finish(Member& member) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    member.waiting.front()->finished = now_();
    member.waiting.pop_front();
    ++member.finished;
  }

  const std::function<Instant()> now_;
  const int size_;

  threads::Mutex mutex_;
  threads::Condition changed_;
  std::vector<Member> members_ ABSL_GUARDED_BY(mutex_);  // by rank
  std::string failure_ ABSL_GUARDED_BY(mutex_);  // why the group is over; empty while it is not
  Instant failed_at_ ABSL_GUARDED_BY(mutex_) = {};
};

class InProcessCollective : public Collective {
 public:
  InProcessCollective(std::shared_ptr<Group> group, int rank, const Operation& operation)
      : group_(std::move(group)), rank_(rank), part_{.operation = operation} {
    group_->Start(rank_, part_);
  }
  ~InProcessCollective() override { group_->Wait(rank_, part_); }

  Progress Poll() override { return group_->Poll(rank_, part_); }
  Completion Wait() override { return group_->Wait(rank_, part_); }

 private:
  const std::shared_ptr<Group> group_;  // shared with the members' transports
  const int rank_;
  Part part_;  // written by the group
};

class InProcessTransport : public Transport {
 public:
  InProcessTransport(std::shared_ptr<Group> group, int rank)
      : group_(std::move(group)), rank_(rank) {}
  ~InProcessTransport() override { Abort("the member has left"); }

  int rank() const override { return rank_; }
  int size() const override { return group_->size(); }

  std::unique_ptr<Collective> Start(const Operation& operation) override {
    return std::make_unique<InProcessCollective>(group_, rank_, operation);
  }

  void Abort(const std::string& reason) override {
    group_->Fail("rank " + std::to_string(rank_) + ": " + reason);
  }

 private:
  const std::shared_ptr<Group> group_;  // shared with the other members and with the handles
  const int rank_;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> MakeInProcessGroup(int size, std::function<Instant()> now) {
  TACTUS_CHECK(size >= 1);
  const auto group = std::make_shared<Group>(size, std::move(now));
  std::vector<std::unique_ptr<Transport>> members;
  for (int rank = 0; rank < size; ++rank) {
    members.push_back(std::make_unique<InProcessTransport>(group, rank));
  }
  return members;
}

}  // namespace tactus::collective
