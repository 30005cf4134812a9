#include "tests/coordinator/job/world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "coordinator/job/attempts.h"
#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

constexpr std::uint64_t kJobsMax = 6;
constexpr std::uint64_t kWorldSamples = 1000;

}  // namespace

World::World(std::uint64_t seed, Tally& tally, WorldListener listener)
    : tally_(tally),
      listener_(std::move(listener)),
      rng_(seed),
      cluster_(std::make_unique<Cluster>(kWallOffset)) {
  if (listener_.on_start) listener_.on_start({}, At(seconds_), {});
  const std::uint64_t nodes = 1 + rng_.Below(4);
  for (std::uint64_t i = 0; i < nodes; ++i) {
    agents_["n" + std::to_string(i)] = {.devices = 1 + static_cast<int>(rng_.Below(3))};
  }
}

void World::Step() {
  seconds_ += rng_.Uniform() * 0.5;
  const std::uint64_t dice = rng_.Below(1000);
  if (dice < 30) {
    Submit();
  } else if (dice < 42) {
    Cancel();
  } else if (dice < 52) {
    Pause();
  } else if (dice < 58) {
    Update();
  } else if (dice < 64) {
    Mark();
  } else if (dice < 70) {
    BreakOrMend();
  } else if (dice < 120) {
    Join();
  } else if (dice < 130) {
    LoseOrKillAgent();
  } else if (dice < 140) {
    SayNonsense();
  } else if (dice < 150) {
    Restart();
  } else if (dice < 200) {
    Tick();
  } else if (dice < 260) {
    StoreFile();
  } else if (dice < 264) {
    LeaveOrGo();
  } else if (dice < 284) {
    Revert();
  } else {
    MoveWorker();
  }
}

void World::Drain() {
  for (auto& [name, agent] : agents_) {
    agent.faults.clear();
    agent.leave.reset();
    Join(name);
  }
  const std::map<JobId, JobRecord> jobs = store_;
  for (const auto& [id, record] : jobs) {
    Give(JobCancelled{.job = id, .reason = "the end", .discard = true});
  }
  for (int i = 0; i < 100; ++i) {
    const std::map<WorkerId, Worker> running = workers_;
    for (const auto& [id, worker] : running) {
      if (worker.told_to_end) Exit(id, -1, 15);
    }
    Tick();
  }
  EXPECT_TRUE(workers_.empty());
  EXPECT_TRUE(cluster_->Jobs().empty());
  for (const auto& [id, record] : store_) EXPECT_TRUE(IsFinal(record.state)) << record.name;
  for (const auto& [name, agent] : agents_) {
    for (int i = 0; i < agent.devices; ++i) {
      EXPECT_EQ(cluster_->membership().HolderOf(name, "cpu:" + std::to_string(i)), nullptr);
    }
  }
}

void World::Give(const Event& event) {
  const Actions actions = cluster_->Step(event, At(seconds_));
  if (listener_.on_step) listener_.on_step(event, At(seconds_), actions);
  Apply(actions);
}

void World::Restart() {
  cluster_ = std::make_unique<Cluster>(kWallOffset);
  wake_.reset();
  probes_.clear();
  for (auto& [name, agent] : agents_) {
    agent.connected = agent.known = false;
    agent.waiting.clear();
    agent.fresh = true;  // to this coordinator
  }
  std::vector<JobRecord> unfinished;
  for (const auto& [id, record] : store_) {
    if (!IsFinal(record.state)) unfinished.push_back(record);
  }
  TakenUp taken_up{.records = unfinished};
  for (const auto& [id, memory] : memories_) {
    cluster_->RestoreMemory(memory);
    taken_up.memories.push_back(memory);
  }
  for (const auto& [key, prior] : priors_) {
    cluster_->RestorePrior(prior);
    taken_up.priors.push_back(prior);
  }
  for (const auto& [name, mark] : marks_) {
    cluster_->RestoreNode(mark);
    taken_up.nodes.push_back(mark);
  }
  Actions all;
  for (const JobRecord& record : unfinished) {
    const Actions actions = cluster_->Restore(record, At(seconds_));
    all.insert(all.end(), actions.begin(), actions.end());
  }
  if (listener_.on_start) listener_.on_start(taken_up, At(seconds_), all);
  Apply(all);
}

void World::Apply(const Actions& actions) {
  for (const Action& action : actions) {
    std::visit([this](const auto& one) { Check(one); }, action);
  }
}

// ---- What the cluster may do

void World::Check(const PersistJob& action) {
  const auto before = store_.find(action.record.id);
  if (before != store_.end()) {
    EXPECT_FALSE(IsFinal(before->second.state)) << "persisted after its end";
    EXPECT_EQ(action.record.revision, before->second.revision + 1);
  }
  EXPECT_FALSE(action.record.state_reason.empty());
  const bool waited =
      before != store_.end() && before->second.state_reason.starts_with("the coord");
  const JobState state = action.record.state;
  tally_.resumed += waited && state == JobState::kRunning ? 1 : 0;
  tally_.succeeded += state == JobState::kSucceeded ? 1 : 0;
  tally_.failed += state == JobState::kFailed ? 1 : 0;
  tally_.cancelled_with_result += state == JobState::kCancelled && action.record.result ? 1 : 0;
  if (state == JobState::kStarting) {
    const std::size_t size = action.record.members.size();
    EXPECT_GE(size, action.record.settings.workers_min);
    EXPECT_LE(size, action.record.settings.workers_max);
    std::size_t& last = sizes_[action.record.id];
    tally_.grown += last != 0 && size > last ? 1 : 0;
    tally_.shrunk += size < last ? 1 : 0;
    last = size;
  }
  if (before != store_.end()) CheckRegroup(action.record, before->second);
  CheckAttempts(action.record, before == store_.end() ? nullptr : &before->second);
  tally_.excused += state == JobState::kQueued &&
                            action.record.state_reason.starts_with("goes on") &&
                            action.record.state_reason.find("(retry") == std::string::npos
                        ? 1
                        : 0;
  if (before != store_.end() && action.record.suspensions > before->second.suspensions) {
    tally_.suspended += action.record.checkpoint ? 1 : 0;
    tally_.paused += state == JobState::kPaused ? 1 : 0;
    tally_.drained += action.record.state_reason.ends_with("is drained") ? 1 : 0;
    for (const auto& [id, worker] : workers_) {
      EXPECT_TRUE(worker.job != action.record.id || !agents_.at(worker.node).connected ||
                  cluster_->membership().IsStray(id))
          << "queued again with a worker";
    }
  }
  store_[action.record.id] = action.record;
}

void World::CheckAttempts(const JobRecord& record, const JobRecord* before) {
  EXPECT_LE(record.attempts.size(), kAttemptsMax);
  const JobState state = record.state;
  const std::uint32_t allowed = record.settings.retries;
  if (state == JobState::kFailed && record.fruitless > 1) ++tally_.given_up;
  EXPECT_LE(record.fruitless, allowed + (IsFinal(state) ? 1 : 0)) << "tried too often";
  for (std::size_t i = 1; i < record.attempts.size(); ++i) {
    const AttemptRecord& former = record.attempts[i - 1];
    const AttemptRecord& attempt = record.attempts[i];
    EXPECT_EQ(attempt.number, former.number + 1);
    EXPECT_NE(former.end_time, 0);
    EXPECT_FALSE(former.reason.empty());
    EXPECT_GE(former.rounds, former.first_round);
    EXPECT_GE(former.samples, former.first_samples);
    EXPECT_LE(attempt.first_round, former.rounds) << "goes on from what nobody did";
  }
  if (before == nullptr) return;
  if (state == JobState::kQueued && record.retry_time != 0) {
    if (before->state != JobState::kQueued || before->retry_time != record.retry_time) {
      rests_until_[record.id] = seconds_ + ToSeconds(BackOff(record.fruitless));
    }
    EXPECT_EQ(record.progress.rounds, record.checkpoint ? record.checkpoint->rounds : 0);
  } else if (state == JobState::kPaused || IsFinal(state)) {
    rests_until_.erase(record.id);
  }
  if (state != JobState::kStarting || before->state != JobState::kQueued) return;
  EXPECT_GE(seconds_ + 1e-9, rests_until_[record.id]) << "started before its rest was over";
  rests_until_.erase(record.id);
  if (record.attempts.back().number == 1) return;
  ++tally_.retried;
  tally_.retried_from_checkpoint += record.attempts.back().first_round > 0 ? 1 : 0;
}

void World::Check(const PersistRound& action) {
  std::uint64_t& next = next_rounds_[action.round.job];
  EXPECT_GE(action.round.round, next) << "a round is on record twice";
  next = action.round.round + 1;
}

void World::Check(const ForgetRounds& action) {
  std::uint64_t& next = next_rounds_[action.job];
  next = std::min(next, action.from);
}

void World::Check(const PublishJob& action) {
  ASSERT_TRUE(store_.contains(action.record.id));
  EXPECT_EQ(action.record.revision, store_.at(action.record.id).revision);
  EXPECT_EQ(action.record.state, store_.at(action.record.id).state);
}

void World::Check(const StartWorker& action) {
  ASSERT_TRUE(agents_.contains(action.node));
  EXPECT_TRUE(agents_.at(action.node).connected);
  EXPECT_TRUE(ids_.insert(action.worker).second) << "worker " << action.worker.value << " again";
  for (const auto& [id, worker] : workers_) {
    EXPECT_FALSE(worker.node == action.node && worker.device == action.device)
        << action.node << "/" << action.device << " is busy";
  }
  const JobRecord& record = store_.at(action.job);
  const bool joins = std::ranges::find(record.joiners, action.worker, &MemberRecord::worker) !=
                     record.joiners.end();
  EXPECT_EQ(record.state, joins ? JobState::kRunning : JobState::kStarting);
  EXPECT_TRUE(joins || record.joiners.empty());
  EXPECT_LE(record.members.size() + record.joiners.size(), record.settings.workers_max);
  EXPECT_FALSE(marks_[action.node].cordoned) << "a worker on a cordoned node";
  EXPECT_FALSE(agents_.at(action.node).leave) << "a worker on a node that is leaving";
  EXPECT_FALSE(agents_.at(action.node).faults.contains(action.device)) << "a broken device";
  const bool goes_on = record.checkpoint && !joins;
  EXPECT_EQ(action.checkpoint, goes_on ? record.checkpoint->sha256 : "");
  workers_[action.worker] = {.job = action.job,
                             .node = action.node,
                             .device = action.device,
                             .next_round = goes_on ? record.checkpoint->rounds : 0};
}

void World::Check(const SendToWorker& action) {
  if (Waits(action)) return;
  const auto found = workers_.find(action.worker);
  ASSERT_NE(found, workers_.end()) << "spoken to after its end";
  EXPECT_EQ(found->second.node, action.node);
  std::visit([&](const auto& message) { Receive(action.worker, found->second, message); },
             action.message);
}

// What is said to a node that is not heard arrives when it is back.
bool World::Waits(const auto& action) {
  Agent& agent = agents_.at(action.node);
  EXPECT_TRUE(agent.known);
  if (agent.connected) return false;
  agent.waiting.push_back(action);
  return true;
}

void World::Check(const StopWorker& action) {
  if (Waits(action)) return;
  const auto found = workers_.find(action.worker);
  ASSERT_NE(found, workers_.end()) << "stopped after its end";
  EXPECT_EQ(found->second.node, action.node);
  found->second.told_to_end = true;
  tally_.strays += cluster_->membership().IsStray(action.worker) ? 1 : 0;
}

// Only of who trains, on a node that is heard as far as the coordinator knows.
void World::Check(const LookAtWorker& action) {
  EXPECT_TRUE(cluster_->membership().nodes().at(action.node).connected);
  if (Waits(action)) return;
  const auto found = workers_.find(action.worker);
  if (found != workers_.end()) found->second.looked_at = true;
}

void World::Check(const PersistDecision& action) {
  const policies::Decision& decision = action.decision;
  ASSERT_FALSE(decision.reason.empty());
  ASSERT_TRUE(store_.contains(action.job));
  const std::vector<policies::Axis>& frozen = store_.at(action.job).settings.adapt.frozen;
  const bool reverted = decision.reason.starts_with("reverted by a request");
  if (!decision.from.empty() && !reverted && !decision.measured_gain) {
    EXPECT_EQ(std::ranges::count(frozen, decision.axis), 0) << "decided though it is frozen";
  }
  tally_.reverted += reverted && !decision.measured_gain ? 1 : 0;
  decided_.emplace_back(action.job, decision);
}

// What was written can be read whenever the coordinator restarts, unless a user changed the job.
void World::Check(const PublishRelearning& action) {
  EXPECT_EQ(action.reason, "it was learned under other options");
}

void World::Check(const PersistMemory& action) {
  ASSERT_TRUE(store_.contains(action.memory.job));
  memories_.erase(action.memory.job);
  if (!action.memory.memory.empty()) memories_[action.memory.job] = action.memory;
}

void World::Check(const PersistPrior& action) {
  const std::string& bytes = action.prior.prior;
  priors_.erase(action.prior.key);
  if (bytes.empty()) return;
  EXPECT_TRUE(policies::PriorOf(bytes).prior.has_value());
  priors_[action.prior.key] = action.prior;
}

void World::Check(const PublishProgress& action) {
  EXPECT_LE(action.progress.epoch_consumed, kWorldSamples);
  EXPECT_EQ(action.progress.workers.size(), action.progress.plan.batch_sizes.size());
}

void World::Check(const WakeAt& action) {
  EXPECT_GE(action.time, At(seconds_));
  wake_ = wake_ ? std::min(*wake_, action.time) : action.time;
}

void World::Receive(WorkerId, Worker& worker, const policies::Plan& plan) {
  Group& group = groups_.at(worker.job);
  if (plan.version == group.newest + 1) {
    for (const WorkerId member : group.members) {
      EXPECT_EQ(group.reported[member], group.newest) << "a plan while another one travels";
    }
    group.newest = plan.version;
    group.plans[plan.version] = plan;
  } else if (worker.offered == plan.version) {
    ++tally_.plans_resent;
  }
  EXPECT_EQ(plan, group.plans.at(group.newest));
  EXPECT_EQ(store_.at(worker.job).newest_plan, plan) << "sent before it was durable";
  worker.offered = std::max(worker.offered, plan.version);
}

// One of a version that knows of no regroup on purpose suspends, as all of every other job do.
void World::Receive(WorkerId, Worker& worker, const StopMessage& message) {
  Group& group = groups_.at(worker.job);
  EXPECT_FALSE(message.suspend && message.discard);
  EXPECT_TRUE(message.suspend || !message.regroup);
  EXPECT_TRUE(worker.stage == Stage::kTraining || worker.stage == Stage::kFinished ||
              message.discard || worker.told_to_end)
      << "who awaits a group leaves for it";
  const bool ended = std::ranges::any_of(workers_, [&](const auto& entry) {
    return entry.second.job == worker.job && entry.second.stage == Stage::kFinished;
  });
  const bool takes_its_place = !group.stop_round || group.regroup || !message.regroup;
  if (!ended && takes_its_place) group.suspend = message.suspend;
  if (!ended && takes_its_place) group.regroup = message.regroup && Survives(worker);
  if (group.stop_round) return;
  group.stop_round = 0;
  for (const WorkerId member : group.members) {
    const auto found = workers_.find(member);
    if (found == workers_.end()) continue;
    group.stop_round = std::max(*group.stop_round, found->second.next_round);
  }
}

// ---- What may happen

void World::Submit() {
  if (last_job_ == kJobsMax) return;
  const auto minimum = static_cast<std::uint32_t>(1 + rng_.Below(3));
  Give(JobSubmitted{
      Job(++last_job_, {.workers_min = minimum,
                        .workers_max = minimum + static_cast<std::uint32_t>(rng_.Below(3)),
                        .priority = static_cast<std::int32_t>(rng_.Below(3)),
                        .retries = static_cast<std::uint32_t>(rng_.Below(4))})});
}

void World::Pause() {
  if (last_job_ == 0) return;
  const JobId job{1 + rng_.Below(last_job_)};
  if (rng_.Below(3) == 0) {
    Give(JobPaused{job});
  } else {
    Give(JobResumed{job});
  }
}

void World::Update() {
  if (last_job_ == 0) return;
  const JobId job{1 + rng_.Below(last_job_)};
  JobSettings settings = store_.at(job).settings;
  settings.priority = static_cast<std::int32_t>(rng_.Below(3));
  settings.adapt.batch.per_worker = 16 + static_cast<std::uint32_t>(rng_.Below(3)) * 16;
  Give(JobUpdated{.job = job, .settings = settings, .needs_restart = rng_.Below(2) == 0});
}

// One of those that came last, of any job.
void World::Revert() {
  constexpr std::size_t kLast = 8;
  if (decided_.empty()) return;
  const std::size_t back = rng_.Below(std::min(decided_.size(), kLast));
  const auto& [job, decision] = decided_[decided_.size() - 1 - back];
  Give(DecisionReverted{.job = job,
                        .decision = decision,
                        .spec = store_.at(job).spec,
                        .request_id = std::to_string(rng_.Below(1000))});
}

void World::Cancel() {
  if (last_job_ == 0) return;
  Give(JobCancelled{.job = JobId{1 + rng_.Below(last_job_)},
                    .reason = "a user's wish",
                    .discard = rng_.Below(2) == 0});
}

void World::MoveWorker() {
  const std::optional<WorkerId> id = AnyReachable();
  if (!id) return;
  Worker& worker = workers_.at(*id);
  const std::uint64_t dice = rng_.Below(400);
  if (worker.told_to_end && dice < 200) return Exit(*id, -1, 15);
  if (dice == 0) return Exit(*id, -1, 9);
  if (dice == 1) return Exit(*id, 1, 0);
  if (dice == 2) {
    return Give(Said(id->value, FailedMessage{.field = "data",
                                              .message = "bad data",
                                              .lost_generation = rng_.Below(2),
                                              .transient = rng_.Below(2) == 0}));
  }
  if (dice == 3) BreakGroup(worker);
  if (LosesGroup(worker)) return LoseGroup(*id, worker);
  if (dice < 8) worker.speed = 20 + 200 * rng_.Uniform();
  if (std::exchange(worker.looked_at, false)) {
    ++tally_.stood;
    return Give(
        Said(id->value, StandingMessage{.generation = worker.generation,
                                        .batches = rng_.Below(3),
                                        .waits = rng_.Below(2) == 0,
                                        .awaits = {static_cast<std::uint32_t>(rng_.Below(4))},
                                        .stopped = rng_.Below(8) == 0,
                                        .silent_seconds = rng_.Below(8) == 0 ? 10.0 : 0.5}));
  }
  Advance(*id, worker);
}

void World::Advance(WorkerId id, Worker& worker) {
  if (const std::uint64_t left = std::exchange(worker.left, 0); left != 0) {
    return Give(Said(id.value, GroupLostMessage{.generation = left,
                                                .rounds = worker.next_round,
                                                .reason = "another group was formed"}));
  }
  switch (worker.stage) {
    case Stage::kLoading: {
      worker.stage = Stage::kWaiting;
      ReadyMessage ready = Ready();
      if (rng_.Below(200) == 0) ready.parameters = 99;
      return Give(Said(id.value, ready));
    }
    case Stage::kMeeting:
      worker.stage = Stage::kWaitingForPeers;
      return Give(Said(id.value, EndpointMessage{.generation = worker.generation}));
    case Stage::kTraining:
      return SayReport(id, worker);
    case Stage::kFinished:
      return Exit(id, 0, 0);
    case Stage::kWaiting:
    case Stage::kWaitingForPeers:
    case Stage::kLost:
      return;
  }
}

void World::SayReport(WorkerId id, Worker& worker) {
  Group& group = groups_.at(worker.job);
  if (worker.generation != group.generation) return;  // its group is no more
  if (!group.stop_round && rng_.Below(500) == 0) {
    group.natural = true;
    group.stop_round = worker.next_round + 1;
    for (const WorkerId member : group.members) {
      const auto found = workers_.find(member);
      if (found != workers_.end()) {
        group.stop_round = std::max(*group.stop_round, found->second.next_round);
      }
    }
  }
  if (group.stop_round && worker.next_round >= *group.stop_round) {
    const bool leaves = group.regroup && !group.natural && group.finished.empty();
    return leaves ? LeaveGroup(id, worker) : Finish(id, worker);
  }
  // Nobody is more than a round ahead of another member.
  for (const WorkerId member : group.members) {
    const auto found = workers_.find(member);
    if (found == workers_.end() || found->second.next_round < worker.next_round) return;
  }
  const std::uint64_t version = VersionOf(group, worker.next_round);
  const std::vector<std::uint32_t>& sizes = group.plans.at(version).batch_sizes;
  ReportMessage message = ReportOf(
      worker.rank, {.round = worker.next_round++, .plan_version = version, .batch_sizes = sizes},
      worker.generation);
  message.report.compute_seconds = sizes.at(worker.rank) / worker.speed;
  group.reported[id] = version;
  Give(Said(id.value, message));
}

void World::Finish(WorkerId id, Worker& worker) {
  worker.stage = Stage::kFinished;
  Group& group = groups_.at(worker.job);
  group.finished.insert(id);
  FinishedMessage message = Finished(worker.rank);
  message.rounds = worker.next_round;
  message.suspended = group.suspend && !group.natural;
  if (message.suspended) {
    message.files.clear();
    if (worker.rank == 0) message.files = {kCheckpointFile};
  } else if (worker.rank == 0) {
    Give(Said(id.value, EvaluatedMessage{.loss = 1, .samples = 10}));
  }
  if (rng_.Below(100) == 0) message.parameters_hash = id.value;
  Give(Said(id.value, message));
}

void World::Exit(WorkerId id, int exit_code, int signal) {
  workers_.erase(id);
  Give(WorkerExited{.worker = id, .exit_code = exit_code, .signal = signal, .log_tail = "bye\n"});
}

// Messages out of turn, from workers that may not even be there.
void World::SayNonsense() {
  const std::uint64_t id = 1 + rng_.Below(70);
  const FromWorker messages[] = {Ready(),
                                 EndpointMessage{.generation = rng_.Below(3), .endpoint = "?"},
                                 EvaluatedMessage{}, ReportMessage{.generation = rng_.Below(2)}};
  const FromWorker& message = messages[rng_.Below(4)];
  // A second Ready of a loading worker would be the first one: that is no nonsense.
  const auto found = workers_.find(WorkerId{id});
  if (found != workers_.end() && found->second.stage != Stage::kTraining) return;
  if (std::holds_alternative<ReportMessage>(message) && found != workers_.end()) return;
  Give(Said(id, message));
}

void World::StoreFile() {
  if (last_job_ == 0) return;
  const char* const paths[] = {"model.pt", "model.safetensors"};
  const JobId job{1 + rng_.Below(last_job_)};
  for (const char* path : paths) {
    Give(ArtifactStored{.job = job, .artifact = {.path = path, .size_bytes = 1}});
  }
  const bool written = std::ranges::any_of(workers_, [&](const auto& entry) {
    return entry.second.job == job && entry.second.stage == Stage::kFinished;
  });
  const bool written_before = store_.contains(job) && !store_.at(job).ending.finished.empty();
  if (!written && !written_before) return;
  Give(ArtifactStored{.job = job,
                      .artifact = {.path = kCheckpointFile, .size_bytes = 1, .sha256 = "c0ffee"}});
}

// All members adopt the next plan in the first round that finds all of them holding it.
std::uint64_t World::VersionOf(Group& group, std::uint64_t round) {
  if (!group.round_versions.contains(round)) {
    const std::uint64_t current = group.round_versions.at(round - 1);
    const bool all = std::ranges::all_of(group.members, [&](WorkerId member) {
      const auto found = workers_.find(member);
      return found != workers_.end() && found->second.offered > current;
    });
    group.round_versions[round] = current + (all ? 1 : 0);
    tally_.plans_adopted += all ? 1 : 0;
  }
  return group.round_versions.at(round);
}

std::optional<WorkerId> World::AnyReachable() {
  std::vector<WorkerId> reachable;
  for (const auto& [id, worker] : workers_) {
    if (agents_.at(worker.node).connected) reachable.push_back(id);
  }
  if (reachable.empty()) return std::nullopt;
  return reachable[rng_.Below(reachable.size())];
}

}  // namespace tactus::job
