#include "simulator/group.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <utility>

#include "agent/collective/mesh_costs.h"
#include "agent/collective/operation.h"
#include "base/check.h"
#include "policies/median.h"

namespace tactus::simulator {
namespace {

const char* const kLeft = "a member left the group";

// A conversation of which it is noted how much is sent, as only the messages themselves tell.
class NotedConversation : public collective::Conversation {
 public:
  // turns: what each member sends each other one, by turn; the rows of `rank` are written.
  NotedConversation(collective::Conversation& own, std::size_t rank, std::vector<Messages>& turns)
      : own_(own), rank_(rank), turns_(turns) {}

  std::size_t turns() const override { return own_.turns(); }
  void Begin(std::size_t turn) override { own_.Begin(turn); }
  std::span<const std::byte> Outgoing(std::size_t turn, int peer) override {
    const std::span<const std::byte> message = own_.Outgoing(turn, peer);
    turns_[turn][rank_][static_cast<std::size_t>(peer)] = static_cast<double>(message.size());
    return message;
  }
  std::span<std::byte> Incoming(std::size_t turn, int peer) override {
    return own_.Incoming(turn, peer);
  }
  void End() override { own_.End(); }
  std::size_t FixedBytes(std::size_t turn) const override { return own_.FixedBytes(turn); }

 private:
  collective::Conversation& own_;
  const std::size_t rank_;
  std::vector<Messages>& turns_;
};

}  // namespace

// A member's handle of a collective.
class GroupCollective : public collective::Collective {
 public:
  GroupCollective(Group& group, int rank, const collective::Operation& operation)
      : group_(group), rank_(rank), part_{.operation = operation} {
    group_.Start(rank_, part_);
  }
  ~GroupCollective() override {
    if (Poll() == collective::Progress::kRunning) Wait();
    group_.Release(rank_, part_);
  }

  collective::Progress Poll() override { return group_.At(rank_, part_); }
  collective::Completion Wait() override { return group_.Wait(rank_, part_); }

 private:
  Group& group_;
  const int rank_;
  Group::Part part_;  // written by the group
};

class GroupTransport : public collective::Transport {
 public:
  GroupTransport(Group& group, int rank) : group_(group), rank_(rank) {}
  ~GroupTransport() override { group_.Leave(rank_); }

  int rank() const override { return rank_; }
  int size() const override { return group_.size(); }

  std::unique_ptr<collective::Collective> Start(const collective::Operation& operation) override {
    return std::make_unique<GroupCollective>(group_, rank_, operation);
  }
  double TakeLinkRate() override { return group_.TakeLinkRate(rank_); }
  collective::Awaiting awaiting() override { return group_.AwaitingOf(rank_); }
  std::vector<int> failed() override { return group_.FailedFor(rank_); }
  void Abort(const std::string& reason) override { group_.Fail(reason); }

 private:
  Group& group_;
  const int rank_;
};

Group::Group(Scheduler& scheduler, Network& network, Places places, const GroupOptions& options)
    : scheduler_(scheduler),
      network_(network),
      places_(std::move(places)),
      options_(options),
      members_(places_.hosts.size()),
      everybody_(places_.hosts.size()) {
  std::iota(everybody_.begin(), everybody_.end(), 0);
}

std::unique_ptr<collective::Transport> Group::Join(int rank, Process& process) {
  MemberOf(rank).process = &process;
  return std::make_unique<GroupTransport>(*this, rank);
}

void Group::Fail(const std::string& reason) { FailAt(scheduler_.now() + kResetDelay, reason); }

void Group::FailAt(Instant time, const std::string& reason) {
  if (failed_at_ <= time) return;
  failure_ = reason;
  failed_at_ = time;
  for (const Member& member : members_) {
    if (member.awaited != nullptr) member.process->WakeAt(time);
  }
}

void Group::Start(int rank, Part& part) {
  Member& member = MemberOf(rank);
  part.started = scheduler_.now();
  if (member.gone || member.process->killed() || !failure_.empty()) return;
  member.next.push_back(&part);
  if (member.next.size() == 1) Arrive(rank);
}

// The first to leave is the one whose connections the others see closed.
std::vector<int> Group::FailedFor(int rank) const {
  if (failed_at_ > scheduler_.now()) return {};
  std::vector<int> failed;
  for (const auto& [one, other] : broken_) {
    if (one == rank) failed.push_back(other);
  }
  if (failed.empty() && left_ && *left_ != rank) failed.push_back(*left_);
  return failed;
}

void Group::Break(std::size_t from, std::size_t to) {
  const auto joined_on = [this](int rank, std::size_t host) {
    const Member& member = MemberOf(rank);
    return places_.hosts[static_cast<std::size_t>(rank)] == host && member.process != nullptr &&
           !member.gone;
  };
  const std::size_t before = broken_.size();
  for (const int one : everybody_) {
    for (const int other : everybody_) {
      if (joined_on(one, from) && joined_on(other, to)) broken_.emplace(one, other);
    }
  }
  if (broken_.size() > before) Fail("a connection was lost");
}

void Group::Leave(int rank) {
  if (!left_) left_ = rank;
  SetGone(MemberOf(rank));
  if (std::ranges::any_of(everybody_, [this](int other) { return Misses(other); })) Fail(kLeft);
}

void Group::SetGone(Member& member) {
  if (!std::exchange(member.gone, true)) ++gone_;
}

std::vector<float> Group::MeanOfParameters() const {
  std::vector<double> sum;
  double members = 0;
  for (const Member& member : members_) {
    if (member.gone || member.parameters.empty()) continue;
    sum.resize(member.parameters.size());
    std::ranges::transform(sum, member.parameters, sum.begin(), std::plus<>());
    ++members;
  }
  TACTUS_CHECK(members > 0);
  std::vector<float> mean(sum.size());
  std::ranges::transform(sum, mean.begin(),
                         [&](double value) { return static_cast<float>(value / members); });
  return mean;
}

// Whether the next collective of `rank` lacks a member for ever.
bool Group::Misses(int rank) const {
  const Member& member = MemberOf(rank);
  if (gone_ == 0 || member.next.empty()) return false;
  const Operation& operation = member.next.front()->operation;
  const auto lost = [](const Member& other) { return other.gone && other.next.empty(); };
  return operation.kind == Kind::kExchange ? lost(MemberOf(operation.partner))
                                           : std::ranges::any_of(members_, lost);
}

collective::Progress Group::At(int rank, const Part& part) const {
  using collective::Progress;
  const Instant now = scheduler_.now();
  if (part.finished <= now && part.finished <= failed_at_) return Progress::kDone;
  const bool killed = MemberOf(rank).process->killed();
  return killed || failed_at_ <= now ? Progress::kFailed : Progress::kRunning;
}

collective::Completion Group::Wait(int rank, const Part& part) {
  Member& member = MemberOf(rank);
  while (At(rank, part) == collective::Progress::kRunning) {
    member.awaited = &part;
    if (const Instant due = std::min(part.finished, failed_at_); due != Instant::max()) {
      member.process->SleepUntil(due, WaitReason::kCollective);
    } else {
      member.process->SleepUntilWoken(WaitReason::kCollective);
    }
    member.awaited = nullptr;
  }
  const Instant now = scheduler_.now();
  if (At(rank, part) == collective::Progress::kDone) return {.finished = part.finished, .at = now};
  return {.progress = collective::Progress::kFailed,
          .finished = std::min(failed_at_, now),
          .at = now,
          .reason = failure_};
}

// Of bytes that are on their way nobody but the links knows how many have come: the time stands for
// them, unless they never will.
collective::Awaiting Group::AwaitingOf(int rank) const {
  const Member& member = MemberOf(rank);
  const Instant now = scheduler_.now();
  const bool travels = member.free_from > now;
  collective::Awaiting awaiting{.collective = travels || !member.next.empty()};
  if (travels && member.free_from != kNever) {
    awaiting.bytes_moved = static_cast<std::uint64_t>(now.time_since_epoch().count());
  }
  const auto absent = [&](int other) {
    const std::deque<Part*>& next = MemberOf(other).next;
    return other != rank && (travels || next.empty() || !next.front()->arrived);
  };
  if (!member.next.empty() && member.next.front()->operation.kind == Kind::kExchange) {
    awaiting.peers = {member.next.front()->operation.partner};
  } else if (awaiting.collective) {
    std::ranges::copy_if(everybody_, std::back_inserter(awaiting.peers), absent);
  }
  return awaiting;
}

// A member that lets go of what was not computed has failed: it takes part in nothing any more.
void Group::Release(int rank, const Part& part) {
  if (part.computed) return;
  Member& member = MemberOf(rank);
  SetGone(member);
  member.next.clear();
}

// A collective has become the next one of `rank`: computes it, and what comes after it, as far as
// all who take part have come.
void Group::Arrive(int rank) {
  arrived_.assign(1, rank);
  while (!arrived_.empty()) {
    const int next = arrived_.back();
    arrived_.pop_back();
    if (Misses(next)) return Fail(kLeft);
    const std::span<const int> ranks = Meet(next);
    if (ranks.empty()) continue;
    Compute(ranks);
    if (!failure_.empty()) return;
    for (const int each : ranks) {
      if (!MemberOf(each).next.empty()) arrived_.push_back(each);
    }
  }
}

// The ranks of the next collective of `rank`, which it has just come to, in rising order; none
// while somebody has not come.
std::span<const int> Group::Meet(int rank) {
  Part& part = *MemberOf(rank).next.front();
  const Operation& own = part.operation;
  part.arrived = true;
  if (own.kind != Kind::kExchange) {
    if (++met_ < members_.size()) return {};
    met_ = 0;
    return everybody_;
  }
  const std::deque<Part*>& others = MemberOf(own.partner).next;
  if (others.empty() || !others.front()->arrived) return {};
  const Operation& other = others.front()->operation;
  if (other.kind != Kind::kExchange || other.partner != rank) return {};
  pair_ = {std::min(rank, own.partner), std::max(rank, own.partner)};
  return pair_;
}

void Group::Compute(std::span<const int> ranks) {
  parts_.clear();
  times_.clear();
  last_arrival_ = Instant::min();
  for (const int rank : ranks) {
    const Member& member = MemberOf(rank);
    parts_.push_back(member.next.front());
    // Who stands still sends nothing until it goes on.
    const Instant came = std::max(parts_.back()->started, member.process->paused_until());
    last_arrival_ = std::max(last_arrival_, came);
    times_.push_back(std::max(came, member.free_from));
  }
  Combine();
  Send(ranks);
  const bool of_all = ranks.size() > 1 && ranks.size() == members_.size();
  const double own = BytesOf(parts_.front()->operation, ranks.front()) / ranks.size();
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    Member& member = MemberOf(ranks[i]);
    member.measured = member.measured || (of_all && own >= collective::kMeasuredMin);
    parts_[i]->computed = true;
    parts_[i]->finished = member.free_from = times_[i];
    member.next.pop_front();
    const bool ends = times_[i] != kNever;
    if (member.awaited == parts_[i] && ends) member.process->WakeAt(times_[i]);
  }
}

// As a mesh measures it (collective::LinkMeter), of which it gets as much as the links give.
double Group::TakeLinkRate(int rank) {
  if (!std::exchange(MemberOf(rank).measured, false)) return 0;
  const std::size_t to = places_.hosts[static_cast<std::size_t>(rank)];
  std::vector<double> rates;
  for (const int other : everybody_) {
    const std::size_t from = places_.hosts[static_cast<std::size_t>(other)];
    if (other != rank) rates.push_back(network_.Rate(from, to));
  }
  return policies::Median(std::move(rates)) /
         static_cast<double>(std::ranges::count(places_.hosts, to));
}

// The member's own operation.
double Group::BytesOf(const Operation& operation, int rank) const {
  const auto elements = static_cast<double>(operation.buffer.size());
  return MemberOf(rank).of_parameters(operation.buffer) ? Weight(elements)
                                                        : sizeof(float) * elements;
}

// What goes on only when a cut has healed stands in no queue that others use until then: queues
// know no gaps.
void Group::Send(std::span<const int> ranks) {
  const Instant heals = network_.HealsAfter(scheduler_.now());
  if (heals == kNever) return SendMessages(ranks, network_);
  Network passed = network_;
  SendMessages(ranks, passed);
  const auto late = [heals](Instant time) { return time >= heals && time != kNever; };
  if (std::ranges::none_of(times_, late)) network_ = std::move(passed);
}

void Group::SendMessages(std::span<const int> ranks, Network& network) {
  const Operation& operation = parts_.front()->operation;
  const double before = network.bytes_sent();
  CollectiveCall call{
      .bytes = BytesOf(operation, ranks.front()), .ready = times_, .finished = times_};
  switch (operation.kind) {
    case Kind::kBarrier:
      call.bytes = sizeof(float);
      [[fallthrough]];
    case Kind::kAllReduceSum:
      RunAllReduce(options_.algorithm, places_, call, network);
      break;
    case Kind::kBroadcast:
      RunBroadcast(options_.algorithm, places_, operation.partner, call, network);
      break;
    case Kind::kExchange:
      SendPair(ranks, network);
      break;
    case Kind::kConversation:
      SendTurns(call, network);
      break;
    case Kind::kRootSum:
    case Kind::kAllGather:
      TACTUS_CHECK(false);  // they are conversations
  }
  bytes_sent_ += network.bytes_sent() - before;
}

void Group::SendPair(std::span<const int> ranks, Network& network) {
  PairCall call;
  for (std::size_t i = 0; i < call.times.size(); ++i) {
    const std::size_t bytes = parts_[i]->operation.outgoing.size();
    call.hosts[i] = places_.hosts[static_cast<std::size_t>(ranks[i])];
    call.bytes[i] = Weight(static_cast<double>(bytes) / sizeof(float));
    call.times[i] = times_[i];
  }
  RunPairExchange(call, network);
  std::ranges::copy(call.times, times_.begin());
}

// Where all send all others something, their messages differ little: each is sent as their mean.
// Where some send others nothing, they go one by one.
void Group::SendTurns(CollectiveCall call, Network& network) {
  const auto members = static_cast<double>(members_.size());
  for (std::size_t turn = 0; turn < turns_.size(); ++turn) {
    Messages& messages = turns_[turn];
    double sum = 0;
    double sent = 0;
    for (std::vector<double>& of_member : messages) {
      for (double& bytes : of_member) {
        // What short vectors stand for is longer than they are; what comes with them is not.
        const double fixed = std::min(bytes, static_cast<double>(fixed_[turn]));
        sent += bytes > 0 ? 1 : 0;
        bytes = fixed + Weight((bytes - fixed) / sizeof(float));
        sum += bytes;
      }
    }
    const double pairs = members * (members - 1);
    if (sent < pairs) {
      RunMessages(places_, messages, call, network);
      continue;
    }
    call.bytes = pairs > 0 ? sum / pairs : 0;
    RunAllToAll(places_, call, network);
  }
}

void Group::Combine() {
  operations_.clear();
  for (const Part* const part : parts_) operations_.push_back(part->operation);
  if (operations_.front().kind != Kind::kConversation) return collective::CarryOut(operations_);
  const std::size_t members = members_.size();
  turns_.assign(operations_.front().conversation->turns(),
                Messages(members, std::vector<double>(members)));
  std::vector<NotedConversation> noted;
  noted.reserve(operations_.size());
  for (Operation& operation : operations_) {
    noted.emplace_back(*operation.conversation, noted.size(), turns_);
    operation.conversation = &noted.back();
  }
  collective::CarryOut(operations_);
  fixed_.clear();
  for (std::size_t turn = 0; turn < turns_.size(); ++turn) {
    fixed_.push_back(noted.front().FixedBytes(turn));
  }
}

}  // namespace tactus::simulator
