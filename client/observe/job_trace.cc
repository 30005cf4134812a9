#include "client/observe/job_trace.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "client/observe/round_gap.h"
#include "client/observe/trace_events.h"
#include "client/render/tables.h"
#include "client/text/text.h"

namespace tactus::client {
namespace {

constexpr int kWorkerSeriesMax = 64;  // of a counter
constexpr TraceTrack kJobTrack = {.process = 1, .thread = 1};

std::int64_t Nanoseconds(double seconds) { return TraceNanoseconds(SaneSeconds(seconds)); }

template <typename List>
std::int64_t DurationOf(const List& list, int rank) {
  return rank < list.size() ? Nanoseconds(list[rank]) : 0;
}

std::uint64_t Samples(const v1::Round& round, int rank) {
  return rank < round.worker_samples_size() ? round.worker_samples(rank) : 0;
}

// The group that applied a round: the newest whose first round is not behind it. Null: not on
// record.
const v1::RoundGroup* GroupOf(const v1::ListRoundsResponse& rounds, const v1::Round& round) {
  for (int i = rounds.groups_size() - 1; i >= 0; --i) {
    const v1::RoundGroup& group = rounds.groups(i);
    if (group.first_round() > round.round()) continue;
    return group.members_size() == round.worker_compute_seconds_size() ? &group : nullptr;
  }
  return nullptr;
}

// Which plans combine while they compute, by the decisions on record.
class DelayedPlans {
 public:
  explicit DelayedPlans(const v1::ListDecisionsResponse& decisions) {
    for (const v1::Decision& decision : decisions.decisions()) {
      if (decision.axis() != v1::AXIS_SYNCHRONIZATION) continue;
      since_[decision.plan_version()] = decision.to().starts_with("delayed");
    }
  }
  bool Has(std::uint64_t plan_version) const {
    const auto after = since_.upper_bound(plan_version);
    return after != since_.begin() && std::prev(after)->second;
  }

 private:
  std::map<std::uint64_t, bool> since_;  // by the first plan version of which it holds
};

// A round on the axis.
struct Placed {
  const v1::Round* round = nullptr;
  const v1::RoundGroup* group = nullptr;
  const v1::Round* before = nullptr;  // the round before, where the same group applied it
  bool before_delayed = false;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::uint64_t missing = 0;  // rounds between the one shown before and this one
  bool delayed = false;
};

std::vector<Placed> Place(const v1::ListRoundsResponse& rounds, const DelayedPlans& delayed) {
  std::vector<Placed> all;
  std::int64_t now = 0;
  for (const v1::Round& round : rounds.rounds()) {
    Placed placed{.round = &round,
                  .group = GroupOf(rounds, round),
                  .delayed = delayed.Has(round.plan_version())};
    if (!all.empty()) {
      const Placed& last = all.back();
      const RoundGap gap =
          GapBetween({.round = last.round->round(), .seconds = last.round->seconds()},
                     {.round = round.round(), .seconds = round.seconds()});
      placed.missing = gap.rounds;
      now += Nanoseconds(gap.seconds);
      if (placed.missing == 0 && last.group == placed.group) placed.before = last.round;
      placed.before_delayed = last.delayed;
    }
    placed.begin = now;
    placed.end = now += Nanoseconds(round.seconds());
    all.push_back(placed);
  }
  return all;
}

// What a worker did in a round, backwards from its end. All >= 0, together at most the round.
struct Phases {
  std::int64_t blocked = 0;
  std::int64_t compute = 0;
  std::int64_t optimizer = 0;  // at the round's begin
  double drawn = 1;            // of the measured lengths, <= 1
};

Phases PhasesOf(const Placed& placed, int rank) {
  Phases phases{.blocked = DurationOf(placed.round->worker_blocked_seconds(), rank),
                .compute = DurationOf(placed.round->worker_compute_seconds(), rank)};
  if (placed.before != nullptr) {
    phases.optimizer = DurationOf(placed.before->worker_update_seconds(), rank);
  }
  const std::int64_t room = placed.end - placed.begin;
  const std::int64_t sum = phases.blocked + phases.compute + phases.optimizer;
  if (sum <= room) return phases;
  phases.drawn = static_cast<double>(room) / static_cast<double>(sum);
  for (std::int64_t* const phase : {&phases.blocked, &phases.compute, &phases.optimizer}) {
    *phase = std::min(room, static_cast<std::int64_t>(phases.drawn * static_cast<double>(*phase)));
  }
  return phases;
}

// The round whose update is at the begin of a round: that of the round before, but while rounds are
// delayed that of the one before it.
std::uint64_t UpdatedRound(const Placed& placed) {
  const bool late = placed.before_delayed && placed.delayed;
  return placed.before->round() - (late ? std::min<std::uint64_t>(1, placed.before->round()) : 0);
}

// Who comes last waits for nobody, only for the bytes. Of a delayed round, which waits for no
// bytes, 0.
std::int64_t TransferWithin(const Placed& placed) {
  if (placed.delayed) return 0;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (int rank = 0; rank < placed.round->worker_compute_seconds_size(); ++rank) {
    least = std::min(least, PhasesOf(placed, rank).blocked);
  }
  return least;
}

// Of a span of which `drawn` of its length is drawn; to the nanosecond.
double MeasuredSeconds(std::int64_t length_ns, double drawn) {
  return std::round(static_cast<double>(length_ns) / drawn) / 1e9;
}

// Where the round of a decision begins or ends, if it is shown or in a hole between two that are. A
// first plan is there before its round; a later one follows what that round said.
std::optional<std::int64_t> TimeOf(const v1::Decision& decision, const std::vector<Placed>& all) {
  const auto found = std::ranges::lower_bound(
      all, decision.round(), {}, [](const Placed& placed) { return placed.round->round(); });
  if (found == all.end()) return std::nullopt;
  const bool at_begin = decision.from().empty();
  if (found->round->round() == decision.round()) return at_begin ? found->begin : found->end;
  if (found == all.begin()) return std::nullopt;
  const Placed& before = *std::prev(found);
  const std::uint64_t passed = decision.round() - before.round->round() - (at_begin ? 1 : 0);
  const double part = static_cast<double>(passed) / static_cast<double>(found->missing);
  const auto hole = static_cast<double>(found->begin - before.end);
  return before.end + static_cast<std::int64_t>(part * hole);
}

// Decisions of the rounds between two.
std::uint64_t DecisionsBetween(const Placed& before, const Placed& after,
                               const v1::ListDecisionsResponse& decisions) {
  const auto between = [&](const v1::Decision& decision) {
    return decision.round() > before.round->round() && decision.round() < after.round->round();
  };
  return static_cast<std::uint64_t>(std::ranges::count_if(decisions.decisions(), between));
}

class RecordedTrace {
 public:
  explicit RecordedTrace(const v1::Job& job) {
    events_.NameProcess(kJobTrack, "job " + ShortName(job.name()));
    events_.NameThread(kJobTrack, "decisions");
  }

  void AddRounds(const std::vector<Placed>& all, const v1::ListDecisionsResponse& decisions) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      NoteUnknown(all[i]);
      if (all[i].missing > 0) NoteMissing(all[i], all[i - 1], decisions);
      const bool new_plan =
          i == 0 || all[i - 1].round->plan_version() != all[i].round->plan_version();
      if (new_plan) {
        events_.AddInstant(kJobTrack, all[i].begin,
                           "plan " + std::to_string(all[i].round->plan_version()),
                           TraceArguments().Add("round", all[i].round->round()));
      }
      AddCounters(all[i]);
      AddWorkers(all[i], i + 1 < all.size() ? &all[i + 1] : nullptr);
    }
  }

  void AddDecisions(const std::vector<Placed>& all, const v1::ListDecisionsResponse& decisions) {
    for (const v1::Decision& decision : decisions.decisions()) {
      const std::optional<std::int64_t> at = TimeOf(decision, all);
      if (!at) continue;
      events_.AddInstant(kJobTrack, *at, AxisName(decision.axis()) + ": " + decision.to(),
                         TraceArguments()
                             .Add("plan", decision.plan_version())
                             .Add("round", decision.round())
                             .Add("from", decision.from())
                             .Add("to", decision.to())
                             .Add("predicted_gain", decision.predicted_gain())
                             .Add("measured_gain", decision.has_measured_gain()
                                                       ? decision.measured_gain()
                                                       : std::numeric_limits<double>::quiet_NaN())
                             .Add("reason", decision.reason()));
    }
  }

  void AddGroup(const v1::RoundGroup& group) {
    const bool on_devices = group.members(0).device().starts_with("cuda:");
    events_.AddObject("distributedInfo",
                      TraceArguments()
                          .Add("backend", std::string(on_devices ? "nccl" : "tcp"))
                          .Add("rank", std::uint64_t{0})
                          .Add("world_size", static_cast<std::uint64_t>(group.members_size())));
  }

  JobTrace Finish() {
    std::vector<std::string> remarks;
    if (missing_ > 0) {
      remarks.push_back(CountOf(missing_, "round") +
                        " within the range not on record: of long jobs older rounds are thinned");
    }
    if (untimed_ > 0) {
      remarks.push_back(CountOf(untimed_, "round") + " without times of the workers");
    }
    if (strange_ > 0) {
      remarks.push_back("the nodes of " + CountOf(strange_, "round") + " are not on record");
    }
    return {.text = events_.Finish(), .remarks = std::move(remarks)};
  }

 private:
  struct Worker {
    TraceTrack own{};
    std::string name{};
    std::uint64_t transfers = 0;     // thread of its delayed rounds' transfers; 0: none yet
    std::int64_t transfers_end = 0;  // of the last of them
  };

  void NoteUnknown(const Placed& placed) {
    const bool timed = placed.round->worker_compute_seconds_size() > 0;
    untimed_ += timed ? 0 : 1;
    strange_ += timed && placed.group == nullptr ? 1 : 0;
  }

  void NoteMissing(const Placed& placed, const Placed& before,
                   const v1::ListDecisionsResponse& decisions) {
    missing_ += placed.missing;
    TraceArguments arguments;
    arguments.Add("first", before.round->round() + 1).Add("last", placed.round->round() - 1);
    const std::uint64_t decided = DecisionsBetween(before, placed, decisions);
    if (decided > 0) arguments.Add("decisions_placed_by_their_rounds", decided);
    events_.AddInstant(kJobTrack, before.end, CountOf(placed.missing, "round") + " not on record",
                       arguments);
  }

  void AddCounters(const Placed& placed) {
    const v1::Round& round = *placed.round;
    events_.AddCounter(kJobTrack, placed.end, "loss", TraceArguments().Add("loss", round.loss()));
    const std::uint64_t steps = std::max<std::uint64_t>(1, round.steps());
    events_.AddCounter(kJobTrack, placed.begin, "batch size",
                       TraceArguments().Add("samples", round.samples() / steps));
    TraceArguments series;
    for (int rank = 0; rank < std::min(round.worker_samples_size(), kWorkerSeriesMax); ++rank) {
      series.Add("rank " + std::to_string(rank), Samples(round, rank));
    }
    events_.AddCounter(kJobTrack, placed.begin, "samples by worker", series);
  }

  void AddWorkers(const Placed& placed, const Placed* next) {
    const std::int64_t transfer = TransferWithin(placed);
    for (int rank = 0; rank < placed.round->worker_compute_seconds_size(); ++rank) {
      Worker& worker = WorkerOf(placed, rank);
      AddPhases(placed, rank, worker.own, transfer);
      if (placed.delayed) AddTransferBehind(placed, next, worker);
    }
  }

  Worker& WorkerOf(const Placed& placed, int rank) {
    const auto number = static_cast<std::uint64_t>(rank);
    const v1::RoundGroupMember* const member =
        placed.group == nullptr ? nullptr : &placed.group->members(rank);
    const std::string node = member == nullptr ? "nodes not on record" : "node " + member->node();
    const auto [found, fresh] =
        workers_.try_emplace({node, member == nullptr ? number : member->worker_id()});
    Worker& worker = found->second;
    if (!fresh) return worker;
    const auto [process, fresh_node] = nodes_.emplace(node, kJobTrack.process + 1 + nodes_.size());
    worker.own = {.process = process->second, .thread = ++threads_};
    worker.name = member == nullptr
                      ? "rank " + std::to_string(rank)
                      : member->device() + " worker " + std::to_string(member->worker_id());
    if (fresh_node) events_.NameProcess(worker.own, node);
    events_.NameThread(worker.own, worker.name);
    return worker;
  }

  void AddPhases(const Placed& placed, int rank, const TraceTrack& track, std::int64_t transfer) {
    const v1::Round& round = *placed.round;
    const Phases phases = PhasesOf(placed, rank);
    const std::int64_t computed = placed.end - phases.blocked;
    const std::int64_t arrived = placed.end - std::min(transfer, phases.blocked);
    const auto of_round = [](std::uint64_t number) {
      return TraceArguments().Add("round", number);
    };
    const auto add = [&](std::int64_t begin, std::int64_t end, const char* name,
                         TraceArguments arguments) {
      if (phases.drawn < 1) {
        arguments.Add("measured_seconds", MeasuredSeconds(end - begin, phases.drawn));
      }
      AddSpan(track, begin, end, name, arguments);
    };
    AddSpan(track, placed.begin, placed.end, "round " + std::to_string(round.round()),
            of_round(round.round())
                .Add("plan", round.plan_version())
                .Add("epoch", round.epoch())
                .Add("rank", static_cast<std::uint64_t>(rank)));
    if (placed.before != nullptr) {
      add(placed.begin, placed.begin + phases.optimizer, "optimizer",
          of_round(UpdatedRound(placed)));
    }
    add(computed - phases.compute, computed, "compute",
        of_round(round.round()).Add("samples", Samples(round, rank)));
    add(computed, arrived, "wait", of_round(round.round()));
    add(arrived, placed.end, "transfer", of_round(round.round()).Add("bytes", round.bytes()));
  }

  // A delayed round's gradients travel from its end on, below the next round, which waits for them.
  // Those of the last delayed one were waited for, within the round itself.
  void AddTransferBehind(const Placed& placed, const Placed* next, Worker& worker) {
    if (worker.transfers == 0) {
      worker.transfers = ++threads_;
      events_.NameThread({.process = worker.own.process, .thread = worker.transfers},
                         worker.name + " transfers");
    }
    const std::int64_t length = Nanoseconds(placed.round->transfer_seconds());
    const bool drained = next != nullptr && !next->delayed;
    std::int64_t begin = drained ? placed.end - std::min(length, placed.end) : placed.end;
    std::int64_t end = begin + length;
    if (drained) begin = std::max(begin, worker.transfers_end);
    if (!drained && next != nullptr) end = std::min(end, next->end);
    worker.transfers_end = std::max(worker.transfers_end, end);
    TraceArguments arguments;
    arguments.Add("round", placed.round->round()).Add("bytes", placed.round->bytes());
    if (end - begin < length) {
      arguments.Add("measured_seconds", MeasuredSeconds(length, 1));
    }
    AddSpan({.process = worker.own.process, .thread = worker.transfers}, begin, end, "transfer",
            arguments);
  }

  void AddSpan(const TraceTrack& track, std::int64_t begin, std::int64_t end,
               const std::string& name, const TraceArguments& arguments) {
    if (end <= begin) return;
    events_.AddSpan(track, {.begin_ns = begin, .length_ns = end - begin}, name, arguments);
  }

  TraceEvents events_;
  std::map<std::string, std::uint64_t> nodes_;                       // process of each
  std::map<std::pair<std::string, std::uint64_t>, Worker> workers_;  // by node and worker id
  std::uint64_t threads_ = kJobTrack.thread;
  // Rounds: not on record; without times of workers; of groups that are not on record.
  std::uint64_t missing_ = 0, untimed_ = 0, strange_ = 0;
};

}  // namespace

JobTrace TraceJob(const v1::Job& job, const v1::ListRoundsResponse& rounds,
                  const v1::ListDecisionsResponse& decisions) {
  const std::vector<Placed> placed = Place(rounds, DelayedPlans(decisions));
  RecordedTrace trace(job);
  trace.AddRounds(placed, decisions);
  trace.AddDecisions(placed, decisions);
  if (!placed.empty() && placed.back().group != nullptr &&
      placed.back().group->members_size() > 0) {
    trace.AddGroup(*placed.back().group);
  }
  return trace.Finish();
}

}  // namespace tactus::client
