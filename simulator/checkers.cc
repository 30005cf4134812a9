#include "simulator/checkers.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/check.h"

namespace tactus::simulator {
namespace {

// Rounds that members who died never close are forgotten when so many newer ones are there.
constexpr std::size_t kOpenRoundsMax = 8;

// A group is said to stand still when it closed no round for so many of its longest rounds.
constexpr int kStillRounds = 4;
constexpr std::uint64_t kKnownRounds = 5;

std::string Name(const GroupKey& key) {
  return "job " + std::to_string(key.job.value) + " generation " + std::to_string(key.generation);
}

}  // namespace

void Checkers::OnGroup(const GroupKey& key, std::size_t size, std::uint64_t train_samples) {
  Group& group = groups_[key];
  group.size = size;
  group.used.assign(train_samples, false);
}

void Checkers::OnPlan(const GroupKey& key, const policies::Plan& plan, Instant now) {
  Group& group = groups_.at(key);
  const auto [known, fresh] = group.plans.try_emplace(plan.version, plan);
  if (fresh && plan.reason.empty()) {
    Break(Name(key) + ": plan " + std::to_string(plan.version) + " has no reason", now);
  }
  if (!fresh && known->second != plan) {
    Break(Name(key) + ": members hold different plans " + std::to_string(plan.version), now);
  }
}

void Checkers::OnSamples(const GroupKey& key, std::uint64_t round,
                         std::span<const std::uint64_t> indices) {
  std::vector<std::uint64_t>& samples = groups_.at(key).rounds[round].samples;
  samples.insert(samples.end(), indices.begin(), indices.end());
}

void Checkers::OnRoundClosed(const GroupKey& key, const ClosedRound& closed, Instant now) {
  Group& group = groups_.at(key);
  Round& round = group.rounds[closed.round];
  if (round.closed == 0) {
    round.plan_version = closed.plan_version;
    round.parameters_hash = closed.parameters_hash;
    CommitSamples(group, key, closed, now);
    if (group.rounds_closed > 0) {
      group.longest_round = std::max(group.longest_round, now - group.last_closed);
    }
    ++group.rounds_closed;
    group.last_closed = now;
  }
  const std::string where = "round " + std::to_string(closed.round);
  if (round.plan_version != closed.plan_version) {
    Break(Name(key) + ": members ran " + where + " under plans " +
              std::to_string(round.plan_version) + " and " + std::to_string(closed.plan_version),
          now);
  }
  if (round.parameters_hash != closed.parameters_hash) {
    Break(Name(key) + ": parameters differ between members after " + where, now);
  }
  ++round.closed;
  if (round.closed == group.size) group.rounds.erase(closed.round);
  while (group.rounds.size() > kOpenRoundsMax) group.rounds.erase(group.rounds.begin());
}

void Checkers::CommitSamples(Group& group, const GroupKey& key, const ClosedRound& closed,
                             Instant now) {
  if (closed.epoch != group.epoch) NextEpoch(group, key, now);
  for (const std::uint64_t sample : std::exchange(group.rounds[closed.round].samples, {})) {
    if (sample >= group.used.size() || group.used[sample]) {
      Break(Name(key) + ": sample " + std::to_string(sample) + " was used twice in epoch " +
                std::to_string(group.epoch),
            now);
      continue;
    }
    group.used[sample] = true;
    ++group.used_count;
  }
}

void Checkers::NextEpoch(Group& group, const GroupKey& key, Instant now) {
  if (group.used_count != group.used.size()) {
    Break(Name(key) + ": epoch " + std::to_string(group.epoch) + " used " +
              std::to_string(group.used_count) + " of " + std::to_string(group.used.size()) +
              " samples",
          now);
  }
  ++group.epoch;
  group.used.assign(group.used.size(), false);
  group.used_count = 0;
}

void Checkers::Excuse(const GroupKey& key, Instant until) {
  const auto found = groups_.find(key);
  if (found == groups_.end()) return;
  found->second.excused_until = std::max(found->second.excused_until, until);
}

void Checkers::ExcuseAll(Instant until) {
  for (auto& [key, group] : groups_) {
    group.excused_until = std::max(group.excused_until, until);
  }
}

void Checkers::OnCoordinatorAway(Instant now) { away_since_ = std::min(away_since_, now); }

void Checkers::OnCoordinatorBack(Instant now) {
  const Instant since = std::exchange(away_since_, Instant::max());
  if (since == Instant::max()) return;
  for (const auto& [key, group] : groups_) {
    const bool known = group.rounds_closed >= kKnownRounds;
    if (!known || group.excused_until >= since) continue;
    // The round that was under way closes in any case; it is the next ones that count.
    if (now - std::max(since, group.last_closed) > kStillRounds * group.longest_round) {
      Break(Name(key) + ": no round was closed while the coordinator was away", now);
    }
  }
}

void Checkers::OnActions(const job::Actions& actions, Instant now) {
  for (const job::Action& action : actions) {
    if (const auto* persist = std::get_if<job::PersistJob>(&action)) {
      OnRecord(persist->record, now);
    } else if (const auto* decision = std::get_if<job::PublishDecision>(&action)) {
      if (decision->plan.reason.empty()) {
        Break("job " + std::to_string(decision->job.value) + ": plan " +
                  std::to_string(decision->plan.version) + " was decided without a reason",
              now);
      }
    }
  }
}

void Checkers::OnRecord(const job::JobRecord& record, Instant now) {
  Job& job = jobs_[record.id];
  const std::string name = "job " + std::to_string(record.id.value);
  if (job.final) Break(name + ": changed after its end", now);
  if (record.generation < job.generation) {
    Break(name + ": generation went back from " + std::to_string(job.generation) + " to " +
              std::to_string(record.generation),
          now);
  }
  if (record.revision <= job.revision) {
    Break(name + ": revision went from " + std::to_string(job.revision) + " to " +
              std::to_string(record.revision),
          now);
  }
  if (record.state_reason.empty()) Break(name + ": its state has no reason", now);
  job = {.generation = record.generation,
         .revision = record.revision,
         .final = job::IsFinal(record.state)};
}

void Checkers::OnRestart(const std::map<JobId, job::JobRecord>& durable) {
  jobs_.clear();
  for (const auto& [id, record] : durable) {
    jobs_[id] = {.generation = record.generation,
                 .revision = record.revision,
                 .final = job::IsFinal(record.state)};
  }
}

void Checkers::OnQueue(const char* what, std::size_t size, std::size_t bound, Instant now) {
  if (size <= bound) return;
  Break(
      std::string(what) + " holds " + std::to_string(size) + " of at most " + std::to_string(bound),
      now);
}

void Checkers::Break(std::string what, Instant now) {
  ++total_;
  if (violations_.size() < kViolationsMax) {
    violations_.push_back({.seconds = ToSeconds(now.time_since_epoch()), .what = std::move(what)});
  }
}

}  // namespace tactus::simulator
