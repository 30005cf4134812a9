#include "coordinator/job/stillness.h"

#include <algorithm>
#include <utility>

#include "coordinator/job/wording.h"

namespace tactus::job {
namespace {

// Of the seconds in which a worker says where it stands, so many unsaid are silence.
constexpr double kSilentSeconds = 5;
// Of a processor: more than the threads take that speak with the agent and with the peers.
constexpr double kComputesFrom = 0.05;

bool Progressed(const protocol::StandingMessage& former, const protocol::StandingMessage& present) {
  return former.batches != present.batches || former.bytes != present.bytes;
}

bool Computed(const protocol::StandingMessage& former, const protocol::StandingMessage& present,
              Duration apart) {
  const double seconds = present.processor_seconds - former.processor_seconds;
  return seconds > kComputesFrom * ToSeconds(apart);
}

}  // namespace

bool Moves(const protocol::StandingMessage& former, const protocol::StandingMessage& present,
           Duration apart) {
  if (present.stopped) return false;
  return present.storage || Progressed(former, present) || Computed(former, present, apart);
}

void Stillness::Look() {
  for (Member& member : members_) {
    if (member.present) member.former = member.present;
    member.present.reset();
  }
}

bool Stillness::Ask(std::uint32_t rank) { return !std::exchange(members_.at(rank).asked, true); }

void Stillness::Note(std::uint32_t rank, const protocol::StandingMessage& standing, Instant now) {
  members_.at(rank).present = Sighting{.standing = standing, .at = now};
  members_.at(rank).asked = false;
}

Standstill Stillness::Judge() const {
  using Kind = Standstill::Kind;
  const auto first_that = [this](auto is_so) -> std::optional<std::uint32_t> {
    for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
      const std::optional<Sighting>& present = members_[rank].present;
      if (present && is_so(present->standing)) return rank;
    }
    return std::nullopt;
  };
  using protocol::StandingMessage;
  const auto stopped = first_that([](const StandingMessage& one) { return one.stopped; });
  if (stopped) return {.kind = Kind::kStopped, .rank = *stopped};
  const auto silent =
      first_that([](const StandingMessage& one) { return one.silent_seconds > kSilentSeconds; });
  if (silent) return {.kind = Kind::kSilent, .rank = *silent};
  const auto waiting = first_that([](const StandingMessage& one) { return one.waits; });
  if (!waiting) return {};
  std::vector<bool> met(members_.size());
  for (std::uint32_t rank = *waiting; true;) {
    met[rank] = true;
    const std::optional<std::uint32_t> next = Awaited(rank);
    if (!next) break;
    if (!members_[*next].present) return {};
    if (!members_[*next].present->standing.waits) return JudgeAwaited(*next);
    if (met[*next]) return JudgePair(rank, *next);
    rank = *next;
  }
  const auto working = first_that([](const StandingMessage& one) { return !one.waits; });
  if (working) return JudgeAwaited(*working);
  const bool all =
      std::ranges::all_of(members_, [](const Member& one) { return one.present && one.former; });
  return {.kind = all && !AnyMoved() ? Kind::kTogether : Kind::kUnknown};
}

// Whom it waits for, as far as it knows; what it says is outside input.
std::optional<std::uint32_t> Stillness::Awaited(std::uint32_t rank) const {
  const std::vector<std::uint32_t>& awaits = members_[rank].present->standing.awaits;
  if (awaits.empty() || awaits.front() >= members_.size() || awaits.front() == rank) {
    return std::nullopt;
  }
  return awaits.front();
}

Standstill Stillness::JudgeAwaited(std::uint32_t rank) const {
  using Kind = Standstill::Kind;
  const Member& member = members_[rank];
  Kind kind = Kind::kStill;
  if (!member.former) {
    kind = Kind::kAwaited;
  } else if (Moved(member)) {
    kind = Kind::kSlow;
  } else if (Computed(member)) {
    kind = Kind::kBusy;
  } else if (member.present->standing.storage) {
    kind = Kind::kStorage;
  }
  return {.kind = kind, .rank = rank};
}

Standstill Stillness::JudgePair(std::uint32_t rank, std::uint32_t other) const {
  const bool moved = Moved(members_[rank]) || Moved(members_[other]);
  const auto [less, more] = std::minmax(rank, other);
  return {.kind = moved ? Standstill::Kind::kLoaded : Standstill::Kind::kLink,
          .rank = less,
          .other = more};
}

bool Stillness::Moved(const Member& member) const {
  if (!member.former || !member.present) return false;
  return Progressed(member.former->standing, member.present->standing);
}

bool Stillness::AnyMoved() const {
  return std::ranges::any_of(members_, [this](const Member& one) { return Moved(one); });
}

bool Stillness::Computed(const Member& member) const {
  return job::Computed(member.former->standing, member.present->standing,
                       member.present->at - member.former->at);
}

Standstill Stillness::Present() const {
  const Standstill seen = Judge();
  return seen.certain() ? seen : verdict_;
}

Standstill Stillness::Conclude(Instant now) {
  const Standstill verdict = Judge();
  if (AnyMoved()) since_ = now;
  const bool again = verdict_.certain() && verdict_.rank == verdict.rank;
  if (!verdict.certain()) {
    certain_since_.reset();
  } else if (!again || !certain_since_) {
    certain_since_ = now;
  }
  verdict_ = verdict;
  unanswered_ = std::ranges::none_of(members_, [](const Member& one) { return !!one.present; });
  ++looks_;
  return verdict;
}

bool Stillness::Over(const Patience& patience, Instant now) const {
  if (certain_since_ && now - *certain_since_ >= patience.certain) return true;
  return looks_ > 1 && now - since_ >= patience.doubtful;
}

std::string WordsOf(const Standstill& standstill, const std::vector<MemberRecord>& members) {
  using Kind = Standstill::Kind;
  if (standstill.kind == Kind::kUnknown) return "no worker says whom it waits for";
  const std::string name = WorkerName(members[standstill.rank]);
  const std::string other = WorkerName(members[standstill.other]);
  switch (standstill.kind) {
    case Kind::kStopped:
      return name + " stands still: its process is stopped";
    case Kind::kSilent:
      return name + " stands still: its process runs and says nothing";
    case Kind::kStill:
      return name + " stands still: others wait for it, and it takes no processor time";
    case Kind::kStorage:
      return "others wait for " + name + ", which waits for its disk";
    case Kind::kTogether:
      return "all workers wait in one collective";
    case Kind::kBusy:
      return "others wait for " + name + ", which computes and ends no batch";
    case Kind::kSlow:
      return "others wait for " + name + ", which computes";
    case Kind::kLink:
      return name + " and " + other + " wait for one another, and nothing comes through";
    case Kind::kLoaded:
      return name + " and " + other + " wait for one another, and bytes move";
    default:
      return "others wait for " + name;
  }
}

}  // namespace tactus::job
