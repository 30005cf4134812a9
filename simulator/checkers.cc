#include "simulator/checkers.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/check.h"

namespace tactus::simulator {
namespace {

// Rounds that members who died never close are forgotten when so many newer ones are there.
constexpr std::size_t kOpenRoundsMax = 8;

// A group is said to stand still when it closed no round for so many of its longest rounds: more
// than the slow phase of a device takes.
constexpr int kStillRounds = 16;
constexpr std::uint64_t kKnownRounds = 5;

// Of a checkpoint's word on its way and of the records before it, and for an agent to dial again.
constexpr Duration kOnTheWay = Seconds(5);

// To go on after a kill takes so many of the longest rounds so far: the one that is under way where
// a member finds out, the state that members take over, which weighs a few rounds' reductions, and
// the next round.
constexpr int kRoundsToGoOn = 8;

std::string Name(const GroupKey& key) {
  return "job " + std::to_string(key.job.value) + " generation " + std::to_string(key.generation);
}

}  // namespace

void Checkers::OnGroup(const GroupKey& key, std::size_t size, std::uint64_t train_samples,
                       const ChosenSamples& chosen) {
  Group& group = groups_[key];
  group.size = size;
  group.train_samples = train_samples;
  group.chosen = chosen;
}

void Checkers::OnBegun(const GroupKey& key, const std::string& checkpoint, Instant now) {
  Group& group = groups_.at(key);
  if (group.checkpoint) {
    if (*group.checkpoint != checkpoint && !regroups_.contains(key)) {
      Break(Name(key) + ": members go on from different checkpoints", now);
    }
    return;
  }
  group.checkpoint = checkpoint;
  group.begun = group.last_closed = now;
  if (const auto regroup = regroups_.find(key); regroup != regroups_.end()) {
    return Continue(key, regroup->second, now);
  }
  kills_.erase(key.job);
  if (!checkpoint.empty()) group.progress = checkpoints_.at(checkpoint);
}

// Of a group that was lost, some member may have closed a round that nobody who is left has.
void Checkers::Continue(const GroupKey& key, const Regrouped& regrouped, Instant now) {
  const std::uint64_t rounds = regrouped.rounds;
  auto former = groups_.find(key);
  do {
    if (former == groups_.begin() || (--former)->first.job != key.job) {
      return Break(Name(key) + ": goes on where no group was", now);
    }
  } while (!former->second.checkpoint);  // it never began
  former->second.continued = true;
  const bool behind = !regrouped.on_purpose && former->second.progress.rounds != rounds;
  const Progress& progress = behind ? former->second.former : former->second.progress;
  if (progress.rounds != rounds) {
    Break(Name(key) + ": goes on from round " + std::to_string(rounds) + ", the group before had " +
              std::to_string(former->second.progress.rounds),
          now);
  }
  Group& group = groups_.at(key);
  group.progress = progress;
  group.former = former->second.former;  // that of those who have not taken over yet
  const Kill* const kill = KillOf(key.job);
  const bool known = former->second.rounds_ever >= kKnownRounds;
  if (kill == nullptr || !known || regrouped.on_purpose || !regrouped.without_killed) return;
  // What newcomers take over may weigh as much as very many rounds whose gradients are encoded; and
  // who evaluates, or keeps what it has learned, finds out afterwards.
  if (regrouped.with_newcomers || former->second.excused_until > kill->at) return;
  // Those who are left share the work of all.
  const double more = std::max(1.0, static_cast<double>(former->second.size) /
                                        static_cast<double>(std::max<std::size_t>(group.size, 1)));
  const double longest = ToSeconds(former->second.longest_ever);
  group.gap = Gap{.since = kill->at, .most = kill->most + Seconds(more * kRoundsToGoOn * longest)};
}

void Checkers::OnKilled(JobId job, WorkerId worker, Duration most, Instant now) {
  Kill& kill = kills_[job];
  kill.at = now;
  kill.most = most;
  kill.workers.insert(worker);
}

void Checkers::OnKilledBetweenGroups(JobId job, WorkerId worker, Instant now) {
  const auto kill = kills_.find(job);
  if (kill == kills_.end()) return;
  kill->second.at = now;
  kill->second.workers.insert(worker);
}

void Checkers::Disturb(JobId job, Instant until) {
  Instant& disturbed = disturbed_jobs_.try_emplace(job, until).first->second;
  disturbed = std::max(disturbed, until);
}

// Null: none that nothing else is wrong beside.
const Checkers::Kill* Checkers::KillOf(JobId job) const {
  const auto kill = kills_.find(job);
  if (kill == kills_.end() || disturbed_until_ >= kill->second.at) return nullptr;
  const auto disturbed = disturbed_jobs_.find(job);
  const bool excused = disturbed != disturbed_jobs_.end() && disturbed->second >= kill->second.at;
  return excused ? nullptr : &kill->second;
}

void Checkers::CheckSurvivors(const job::JobRecord& record, const Job& before, Instant now) {
  const Kill* const kill = KillOf(record.id);
  // Who is asked to leave its devices to another job leaves with a loss as well, also where that
  // job wants them no more.
  const bool wanted = before.wanted || std::ranges::any_of(jobs_, [&record](const auto& other) {
                        return other.first != record.id && !other.second.final;
                      });
  if (kill == nullptr || wanted) return;
  for (const WorkerId worker : before.members) {
    const auto is_it = [worker](const job::MemberRecord& one) { return one.worker == worker; };
    if (kill->workers.contains(worker) || std::ranges::any_of(record.members, is_it)) continue;
    Break("job " + std::to_string(record.id.value) + ": regrouped without worker " +
              std::to_string(worker.value) + ", to which nothing happened",
          now);
  }
}

// Before its first round is counted.
void Checkers::CheckGap(const GroupKey& key, Group& group, Instant now) {
  const std::optional<Gap> gap = std::exchange(group.gap, {});
  if (!gap) return;
  const Kill* const kill = KillOf(key.job);
  const bool same = kill != nullptr && kill->at == gap->since;
  const Duration most = gap->most + kRoundsToGoOn * LongestBeside(key.job, gap->since);
  if (same && now - gap->since > most) {
    Break(Name(key) + ": closed no round for " + std::to_string(ToSeconds(now - gap->since)) +
              " s after a worker was killed, at most " + std::to_string(ToSeconds(most)) +
              " s may be",
          now);
  }
  if (same) kills_.erase(key.job);
}

// Of the rounds that other jobs have closed since: on links that are shared, what a group sends may
// wait for what they send.
Duration Checkers::LongestBeside(JobId job, Instant since) const {
  Duration longest{};
  for (const auto& [key, group] : groups_) {
    if (key.job != job && group.last_closed >= since)
      longest = std::max(longest, group.longest_ever);
  }
  return longest;
}

// Where rounds overlap, others may have closed one that this member has not.
void Checkers::OnCheckpoint(const GroupKey& key, const WrittenCheckpoint& checkpoint, Instant now) {
  Group& group = groups_.at(key);
  const bool ahead = group.progress.rounds != checkpoint.rounds;
  const Progress& progress = ahead ? group.former : group.progress;
  if (progress.rounds != checkpoint.rounds) {
    Break(Name(key) + ": a checkpoint of " + std::to_string(checkpoint.rounds) +
              " rounds was copied after " + std::to_string(group.progress.rounds),
          now);
  }
  if (!checkpoints_.try_emplace(checkpoint.id, progress).second) {
    Break(Name(key) + ": two checkpoints have one name", now);
  }
  group.copied[checkpoint.id] = now;
  if (checkpoint.of_end) group.end = checkpoint.id;
}

void Checkers::OnCheckpointsDue(const GroupKey& key, Duration within) {
  groups_.at(key).checkpoint_within = within;
}

void Checkers::HoldUpCheckpoints(Instant until) {
  held_up_until_ = std::max(held_up_until_, until);
}

void Checkers::OnPlan(const GroupKey& key, const policies::Plan& plan, Instant now) {
  Group& group = groups_.at(key);
  const auto [known, fresh] = group.plans.try_emplace(plan.version, plan);
  if (fresh) {
    // Its rounds may be longer than any before.
    group.rounds_closed = 0;
    group.longest_round = {};
  }
  if (fresh && plan.reason.empty()) {
    Break(Name(key) + ": plan " + std::to_string(plan.version) + " has no reason", now);
  }
  if (!fresh && known->second != plan) {
    Break(Name(key) + ": members hold different plans " + std::to_string(plan.version), now);
  }
}

void Checkers::OnSamples(const GroupKey& key, const UsedSamples& samples) {
  auto& used = groups_.at(key).rounds[samples.round].samples[samples.epoch];
  used.insert(used.end(), samples.indices.begin(), samples.indices.end());
}

void Checkers::OnRoundClosed(const GroupKey& key, const ClosedRound& closed, Instant now) {
  Group& group = groups_.at(key);
  Round& round = group.rounds[closed.round];
  if (round.closed == 0) {
    if (group.continued) {
      Break(Name(key) + ": round " + std::to_string(closed.round) +
                " was applied after the next group had begun",
            now);
    }
    CheckGap(key, group, now);
    round.plan_version = closed.plan_version;
    CommitSamples(group, key, closed, now);
    if (group.rounds_closed > 0) {
      group.longest_round = std::max(group.longest_round, now - group.last_closed);
    }
    group.longest_ever = std::max(group.longest_ever, now - group.last_closed);
    ++group.rounds_closed;
    ++group.rounds_ever;
    group.last_closed = now;
  }
  const std::string where = "round " + std::to_string(closed.round);
  if (round.plan_version != closed.plan_version) {
    Break(Name(key) + ": members ran " + where + " under plans " +
              std::to_string(round.plan_version) + " and " + std::to_string(closed.plan_version),
          now);
  }
  if (!round.parameters_hash) round.parameters_hash = closed.parameters_hash;
  const bool differs = closed.parameters_hash && round.parameters_hash != closed.parameters_hash;
  if (differs && !group.flipped) {
    Break(Name(key) + ": parameters differ between members after " + where, now);
  }
  ++round.closed;
  if (round.closed == group.size) group.rounds.erase(closed.round);
  while (group.rounds.size() > kOpenRoundsMax) group.rounds.erase(group.rounds.begin());
}

void Checkers::CommitSamples(Group& group, const GroupKey& key, const ClosedRound& closed,
                             Instant now) {
  Progress& progress = group.progress;
  group.former = progress;
  if (closed.round != progress.rounds) {
    Break(Name(key) + ": round " + std::to_string(closed.round) + " was closed, not " +
              std::to_string(progress.rounds),
          now);
  }
  progress.rounds = closed.round + 1;
  while (progress.epoch < closed.epoch) EndEpoch(group, key, now);
  const auto samples = std::exchange(group.rounds[closed.round].samples, {});
  const ChosenSamples& chosen = group.chosen;
  for (const auto& [epoch, indices] : samples) {
    Epoch& used = progress.epochs[epoch];
    if (used.used.empty()) used.used.assign(std::max(group.train_samples, chosen.of), false);
    const bool anew = chosen.of > 0 && epoch > 0;
    for (const std::uint64_t sample : indices) {
      const bool known = epoch >= progress.epoch && sample < used.used.size();
      if (!known || (used.used[sample] && !anew)) {
        Break(Name(key) + ": sample " + std::to_string(sample) + " was used twice in epoch " +
                  std::to_string(epoch),
              now);
        continue;
      }
      used.used[sample] = true;
      ++used.count;
    }
  }
}

void Checkers::EndEpoch(Group& group, const GroupKey& key, Instant now) {
  Progress& progress = group.progress;
  const std::uint64_t count = progress.epochs[progress.epoch].count;
  if (count != group.train_samples) {
    Break(Name(key) + ": epoch " + std::to_string(progress.epoch) + " used " +
              std::to_string(count) + " of " + std::to_string(group.train_samples) + " samples",
          now);
  }
  progress.epochs.erase(progress.epoch);
  ++progress.epoch;
}

void Checkers::OnFlipped(const GroupKey& key) {
  if (const auto found = groups_.find(key); found != groups_.end()) found->second.flipped = true;
}

// What was seen of rounds before is of parameters that some held.
void Checkers::OnRepaired(const GroupKey& key) {
  const auto found = groups_.find(key);
  if (found == groups_.end()) return;
  found->second.flipped = false;
  for (auto& [number, round] : found->second.rounds) round.parameters_hash.reset();
}

void Checkers::Excuse(const GroupKey& key, Instant until) {
  const auto found = groups_.find(key);
  if (found == groups_.end()) return;
  found->second.excused_until = std::max(found->second.excused_until, until);
}

// Of groups to come, too.
void Checkers::ExcuseAll(Instant until) { excused_until_ = std::max(excused_until_, until); }

void Checkers::OnCoordinatorAway(Instant now) { away_since_ = std::min(away_since_, now); }

void Checkers::OnCoordinatorBack(Instant now) {
  const Instant since = std::exchange(away_since_, Instant::max());
  if (since == Instant::max()) return;
  // On a link that is shared, a round may wait for the transfer of another job's.
  Duration longest{};
  for (const auto& [key, group] : groups_) {
    longest = std::max(longest, group.longest_ever);
    // One that is in its first round, of which nobody knows how long it takes, has been so far.
    const bool first = group.checkpoint && group.rounds_ever == 0 && !group.lost;
    if (first && group.end.empty()) longest = std::max(longest, now - group.begun);
  }
  for (const auto& [key, group] : groups_) {
    const bool known = group.rounds_closed >= kKnownRounds;
    if (!known || std::max(group.excused_until, excused_until_) >= since) continue;
    // The round that was under way closes in any case; it is the next ones that count.
    const Duration patience = std::max(kStillRounds * group.longest_round, 2 * longest);
    if (now - std::max(since, group.last_closed) > patience) {
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
    } else if (const auto* record = std::get_if<job::PersistDecision>(&action)) {
      if (record->decision.reason.empty()) {
        Break("job " + std::to_string(record->job.value) + ": a decision of plan " +
                  std::to_string(record->decision.plan_version) + " has no reason",
              now);
      }
    }
  }
}

Checkers::Job Checkers::AsRecorded(const job::JobRecord& record) {
  Job job{.generation = record.generation,
          .revision = record.revision,
          .final = job::IsFinal(record.state),
          .regroups = record.regroups,
          .resizes = record.resizes};
  for (const job::MemberRecord& member : record.members) job.members.push_back(member.worker);
  for (const job::MemberRecord& joiner : record.joiners) job.joiners.push_back(joiner.worker);
  return job;
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
  CheckAttempts(record, now);
  const auto on_harmed = [this](const job::MemberRecord& member) {
    return harmed_hosts_.contains(member.node);
  };
  if (record.state == job::JobState::kFailed && !harmed_.contains(record.id) &&
      std::ranges::none_of(record.members, on_harmed)) {
    Break(name + ": failed though nothing happened to its workers: " + record.state_reason, now);
  }
  const bool lost = record.suspension && record.suspension->lost;
  if (lost && !job.lost) CheckLoss(record, now);
  const bool regrouped = record.regroups > job.regroups || record.resizes > job.resizes;
  if (regrouped) CheckRegroup(record, job, now);
  const bool wanted = job.wanted && record.generation == job.generation;
  job = AsRecorded(record);
  job.lost = lost;
  job.wanted = wanted;
  if (record.state != job::JobState::kQueued) return;
  for (auto& [id, other] : jobs_) other.wanted |= id != record.id;
}

void Checkers::CheckRegroup(const job::JobRecord& record, const Job& before, Instant now) {
  const std::string name = "job " + std::to_string(record.id.value);
  if (record.generation != before.generation + 1) Break(name + ": regrouped out of turn", now);
  auto at = before.members.begin();
  bool new_ones = false;
  for (const job::MemberRecord& member : record.members) {
    if (std::ranges::find(before.joiners, member.worker) != before.joiners.end()) {
      new_ones = true;
      continue;
    }
    at = std::find(at, before.members.end(), member.worker);
    if (at == before.members.end() || new_ones) {
      return Break(name + ": regrouped with worker " + std::to_string(member.worker.value) +
                       ", which was not in the group or had another place",
                   now);
    }
  }
  std::uint64_t rounds = 0;
  for (const job::LostMember& member : record.lost) {
    rounds = std::max(rounds, member.message.rounds);
  }
  const bool on_purpose = record.resizes > before.resizes;
  if (!on_purpose) CheckSurvivors(record, before, now);
  const auto kill = kills_.find(record.id);
  const auto killed = [&](const job::MemberRecord& one) {
    return kill != kills_.end() && kill->second.workers.contains(one.worker);
  };
  regroups_[{.job = record.id, .generation = record.generation}] = {
      .rounds = rounds,
      .on_purpose = on_purpose,
      .without_killed = std::ranges::none_of(record.members, killed),
      .with_newcomers = new_ones};
}

void Checkers::OnStored(const job::JobRecord& record) {
  const auto group = groups_.find({.job = record.id, .generation = record.generation});
  if (group != groups_.end() && record.checkpoint && !group->second.end.empty()) {
    group->second.end_stored |= record.checkpoint->sha256 == group->second.end;
  }
}

// The copy is taken at the first edge after it is due: a round later at most. What holds up the
// coordinator holds up a checkpoint on its way.
void Checkers::CheckLoss(const job::JobRecord& record, Instant now) {
  const auto found = groups_.find({.job = record.id, .generation = record.generation});
  // Later attempts that do not come to a group of their own lose no rounds.
  if (found == groups_.end() || std::exchange(found->second.lost, true)) return;
  const Group& group = found->second;
  if (group.end_stored && (!record.checkpoint || record.checkpoint->sha256 != group.end)) {
    Break(Name(found->first) + ": lost rounds in its ending that a checkpoint on record has", now);
  }
  if (!group.checkpoint_within) return;
  const auto kept =
      record.checkpoint ? group.copied.find(record.checkpoint->sha256) : group.copied.end();
  const Instant since = kept == group.copied.end() ? group.begun : kept->second;
  if (held_up_until_ >= since - kOnTheWay) return;
  const Duration lost = group.last_closed - since;
  const Duration most = *group.checkpoint_within + 2 * group.longest_ever + kOnTheWay;
  if (lost <= most) return;
  Break(Name(found->first) + ": lost " + std::to_string(ToSeconds(lost)) +
            " s of training with its group, at most " + std::to_string(ToSeconds(most)) +
            " s may be",
        now);
}

void Checkers::CheckAttempts(const job::JobRecord& record, Instant now) {
  const std::string name = "job " + std::to_string(record.id.value);
  for (std::size_t i = 1; i < record.attempts.size(); ++i) {
    const job::AttemptRecord& former = record.attempts[i - 1];
    const job::AttemptRecord& attempt = record.attempts[i];
    if (attempt.first_round <= former.rounds && attempt.first_samples <= former.samples &&
        attempt.number == former.number + 1 && former.end_time != 0) {
      continue;
    }
    Break(name + ": attempt " + std::to_string(attempt.number) + " goes on from round " +
              std::to_string(attempt.first_round) + ", the one before it had done " +
              std::to_string(former.rounds),
          now);
  }
  if (record.fruitless <= record.settings.retries || job::IsFinal(record.state)) return;
  Break(name + ": lost " + std::to_string(record.fruitless) + " attempts in a row and may lose " +
            std::to_string(record.settings.retries),
        now);
}

void Checkers::OnRestart(const std::map<JobId, job::JobRecord>& durable) {
  jobs_.clear();
  for (const auto& [id, record] : durable) {
    jobs_[id] = AsRecorded(record);
  }
  // Groups that were formed and are not on record never were; their numbers are given again.
  std::erase_if(regroups_, [&durable](const auto& regroup) {
    const auto record = durable.find(regroup.first.job);
    return record != durable.end() && regroup.first.generation > record->second.generation;
  });
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
