#include "simulator/simulation.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "agent/engine/samples/subset.h"
#include "agent/subset/random_subset.h"
#include "base/check.h"
#include "base/rng.h"
#include "simulator/agent.h"
#include "simulator/checkers.h"
#include "simulator/coordinator.h"
#include "simulator/fault_injection.h"
#include "simulator/group.h"
#include "simulator/network.h"
#include "simulator/recorder.h"
#include "simulator/scheduler.h"

namespace tactus::simulator {
namespace {

constexpr Duration kUserRetry = Seconds(1);
constexpr Duration kRevertPatience = Seconds(30);

// Or it will be, once its workers have ended.
bool IsPaused(const job::JobRecord& record) {
  return record.state == job::JobState::kPaused || (record.suspension && record.suspension->pause);
}

// The parts of one simulation and their lifetimes.
class World {
 public:
  explicit World(Scenario scenario);
  ~World();

  Outcome Run();

 private:
  void AddAgents();
  void AddUser(std::size_t index);
  void AddDrain(const HostDrain& drain);
  void AddDeviceFault(const DeviceFault& fault);
  void Submit(std::size_t index);
  void Cancel(std::size_t index);
  void Pause(std::size_t index);
  void Resume(std::size_t index);
  void Revert(std::size_t index);
  void Mark(const job::NodeRecord& node, Instant until);
  double RateNow(const std::string& from, const std::string& to) const;
  Group& Meet(const GroupKey& key, const std::vector<std::string>& endpoints);
  bool Over() const;
  std::string Rest() const;
  Outcome Conclude();

  static JobId IdOf(std::size_t index) { return {index + 1}; }

  Scenario scenario_;
  Scheduler scheduler_;
  Network network_;
  Checkers checkers_;
  Recorder recorder_;
  Coordinator coordinator_;
  std::map<GroupKey, std::unique_ptr<Group>> groups_;
  std::vector<std::unique_ptr<Agent>> agents_;  // in the order of the hosts
  FaultInjection faults_;
};

World::World(Scenario scenario)
    : scenario_(std::move(scenario)),
      network_(scenario_.cluster),
      recorder_(scenario_.trace),
      coordinator_({.scheduler = scheduler_,
                    .checkers = checkers_,
                    .recorder = recorder_,
                    .scenario = scenario_,
                    .rate = [this](const std::string& from,
                                   const std::string& to) { return RateNow(from, to); }}),
      faults_(scenario_.cluster, {.scheduler = scheduler_,
                                  .network = network_,
                                  .checkers = checkers_,
                                  .coordinator = coordinator_,
                                  .agents = agents_,
                                  .break_links = [this](std::size_t from, std::size_t to) {
                                    for (auto& [key, group] : groups_) group->Break(from, to);
                                  }}) {
  TACTUS_CHECK(!scenario_.cluster.hosts.empty() && !scenario_.jobs.empty());
}

// Fibers must have ended before their stacks go.
World::~World() {
  for (const auto& agent : agents_) agent->Crash();
}

Outcome World::Run() {
  coordinator_.Start();
  AddAgents();
  for (std::size_t index = 0; index < scenario_.jobs.size(); ++index) AddUser(index);
  for (const HostDrain& drain : scenario_.drains) AddDrain(drain);
  for (const DeviceFault& fault : scenario_.device_faults) AddDeviceFault(fault);
  faults_.Start();
  const Instant end = Instant{} + Seconds(scenario_.seconds_max);
  while (!Over() && scheduler_.now() < end && scheduler_.RunNext()) {
  }
  return Conclude();
}

void World::AddAgents() {
  const Rng rng(scenario_.seed);
  for (std::size_t index = 0; index < scenario_.cluster.hosts.size(); ++index) {
    const HostModel& host = scenario_.cluster.hosts[index];
    agents_.push_back(std::make_unique<Agent>(
        host, index, rng.Fork(host.name),
        AgentSurroundings{
            .scheduler = scheduler_,
            .checkers = checkers_,
            .recorder = recorder_,
            .control = scenario_.cluster.control,
            .coordinator = coordinator_,
            .job = [this](JobId job) -> SimulatedJob& { return scenario_.jobs[job.value - 1]; },
            .meet = [this](const GroupKey& key, const std::vector<std::string>& endpoints)
                -> Group& { return Meet(key, endpoints); }}));
    agents_.back()->Start();
  }
}

void World::AddUser(std::size_t index) {
  const SimulatedJob& job = scenario_.jobs[index];
  scheduler_.At(Instant{} + Seconds(job.submit_seconds), [this, index] {
    recorder_.OnSubmitted(IdOf(index), scheduler_.now());
    Submit(index);
  });
  if (job.cancel_seconds) {
    scheduler_.At(Instant{} + Seconds(*job.cancel_seconds), [this, index] { Cancel(index); });
  }
  if (job.pause_seconds) {
    TACTUS_CHECK(job.resume_seconds > *job.pause_seconds);
    scheduler_.At(Instant{} + Seconds(*job.pause_seconds), [this, index] { Pause(index); });
    scheduler_.At(Instant{} + Seconds(job.resume_seconds), [this, index] { Resume(index); });
  }
  if (job.revert_seconds) {
    scheduler_.At(Instant{} + Seconds(*job.revert_seconds), [this, index] { Revert(index); });
  }
}

void World::AddDrain(const HostDrain& drain) {
  TACTUS_CHECK(drain.until_seconds > drain.at_seconds);
  const Instant until = Instant{} + Seconds(drain.until_seconds);
  const job::NodeRecord drained{.name = drain.host, .cordoned = true, .draining = true};
  scheduler_.At(Instant{} + Seconds(drain.at_seconds), [=, this] {
    checkers_.Disturb(until + Checkers::kAftermath);
    Mark(drained, until);
  });
  scheduler_.At(until, [=, this] { Mark({.name = drain.host}, Instant::max()); });
}

void World::AddDeviceFault(const DeviceFault& fault) {
  TACTUS_CHECK(fault.until_seconds > fault.at_seconds);
  const auto agent =
      std::ranges::find_if(agents_, [&](const auto& one) { return one->name() == fault.host; });
  TACTUS_CHECK(agent != agents_.end());
  const auto set = [agent = agent->get(), device = fault.device](const char* reason) {
    agent->SetFault(device, reason);
  };
  const Instant until = Instant{} + Seconds(fault.until_seconds);
  scheduler_.At(Instant{} + Seconds(fault.at_seconds), [=, this] {
    checkers_.Disturb(until + Checkers::kAftermath);
    set("broken");
  });
  scheduler_.At(until, [set] { set(""); });
}

// Until the job is durable: a coordinator may go away with what it accepted.
void World::Submit(std::size_t index) {
  if (coordinator_.durable().contains(IdOf(index))) return;
  const SimulatedJob& job = scenario_.jobs[index];
  const std::string number = std::to_string(IdOf(index).value);
  job::JobRecord record{.id = IdOf(index), .spec = job.spec, .settings = SettingsOf(job)};
  record.name = (job.settings.name.empty() ? "job" : job.settings.name) + "-" + number;
  record.uid = number;
  record.create_time = Coordinator::kWallOffset + scheduler_.now().time_since_epoch().count();
  coordinator_.Submit(record);
  scheduler_.After(kUserRetry, [this, index] { Submit(index); });
}

// The same.
void World::Cancel(std::size_t index) {
  const auto job = coordinator_.durable().find(IdOf(index));
  const bool known = job != coordinator_.durable().end();
  if (known && (job::IsFinal(job->second.state) || !job->second.cancel_reason.empty())) return;
  if (known) {
    checkers_.Disturb(IdOf(index), scheduler_.now() + Checkers::kAftermath);
    coordinator_.Tell(job::JobCancelled{.job = IdOf(index),
                                        .reason = "cancelled by its user",
                                        .discard = scenario_.jobs[index].discard});
  }
  scheduler_.After(kUserRetry, [this, index] { Cancel(index); });
}

// The same, until it is time to resume.
void World::Pause(std::size_t index) {
  const bool late = scheduler_.now() >= Instant{} + Seconds(scenario_.jobs[index].resume_seconds);
  const auto job = coordinator_.durable().find(IdOf(index));
  const bool known = job != coordinator_.durable().end();
  if (late || (known && (job::IsFinal(job->second.state) || IsPaused(job->second)))) return;
  if (known) {
    checkers_.Disturb(IdOf(index), scheduler_.now() + Checkers::kAftermath);
    coordinator_.Tell(job::JobPaused{.job = IdOf(index)});
  }
  scheduler_.After(kUserRetry, [this, index] { Pause(index); });
}

// To the end: a pause may have been heard and not be durable yet.
void World::Resume(std::size_t index) {
  const auto job = coordinator_.durable().find(IdOf(index));
  const bool known = job != coordinator_.durable().end();
  if (known && job::IsFinal(job->second.state)) return;
  if (known && IsPaused(job->second)) coordinator_.Tell(job::JobResumed{.job = IdOf(index)});
  scheduler_.After(kUserRetry, [this, index] { Resume(index); });
}

// The same, for a while: the decision may be one that cannot be taken back, and another may come.
void World::Revert(std::size_t index) {
  const JobId id = IdOf(index);
  const auto job = coordinator_.durable().find(id);
  const bool known = job != coordinator_.durable().end();
  const Instant begun = Instant{} + Seconds(*scenario_.jobs[index].revert_seconds);
  if (scheduler_.now() > begun + kRevertPatience) return;
  if (known && (job::IsFinal(job->second.state) || !job->second.revert_requests.empty())) return;
  const std::vector<policies::Decision>& decided = recorder_.DecisionsOf(id);
  if (known && !decided.empty()) {
    coordinator_.Tell(job::DecisionReverted{
        .job = id, .decision = decided.back(), .spec = job->second.spec, .request_id = "revert"});
  }
  scheduler_.After(kUserRetry, [this, index] { Revert(index); });
}

// The same, until something else is to be said of the node.
void World::Mark(const job::NodeRecord& node, Instant until) {
  if (scheduler_.now() >= until) return;
  const auto& nodes = coordinator_.durable_nodes();
  const auto known = nodes.find(node.name);
  const bool cordoned = known != nodes.end() && known->second.cordoned;
  if (cordoned != node.cordoned) coordinator_.Tell(job::NodeMarked{node});
  scheduler_.After(kUserRetry, [=, this] { Mark(node, until); });
}

double World::RateNow(const std::string& from, const std::string& to) const {
  const std::vector<HostModel>& hosts = scenario_.cluster.hosts;
  const auto index_of = [&](const std::string& name) {
    return static_cast<std::size_t>(std::ranges::find(hosts, name, &HostModel::name) -
                                    hosts.begin());
  };
  const std::size_t sender = index_of(from);
  const std::size_t taker = index_of(to);
  const bool reach = agents_[sender]->alive() && agents_[taker]->alive() &&
                     network_.BlockedUntil(sender, taker) <= scheduler_.now();
  return reach ? network_.Rate(sender, taker) : 0;
}

Group& World::Meet(const GroupKey& key, const std::vector<std::string>& endpoints) {
  std::unique_ptr<Group>& group = groups_[key];
  if (group != nullptr) return *group;
  Places places;
  for (const std::string& endpoint : endpoints) places.hosts.push_back(std::stoul(endpoint));
  const SimulatedJob& job = scenario_.jobs[key.job.value - 1];
  const double own = static_cast<double>(cuda::FlatLength(job.learner->segments()));
  const double lanes = static_cast<double>(engine::LaneCount(endpoints.size()));
  GroupOptions options{.algorithm = scenario_.cluster.algorithm};
  if (job.parameters > 0) {
    options.bytes_per_element *= (static_cast<double>(job.parameters) + lanes) / (own + lanes);
  }
  group = std::make_unique<Group>(scheduler_, network_, std::move(places), options);
  ChosenSamples chosen;
  if (job.engine.subset.kind != engine::SubsetKind::kNone) {
    chosen.of = job.learner->train_samples();
  }
  checkers_.OnGroup(key, endpoints.size(), TrainSamples(job), chosen);
  return *group;
}

bool World::Over() const {
  const auto& durable = coordinator_.durable();
  if (durable.size() < scenario_.jobs.size() || !coordinator_.idle()) return false;
  for (const auto& [id, record] : durable) {
    if (!job::IsFinal(record.state)) return false;
  }
  return std::ranges::all_of(agents_, [](const auto& agent) { return agent->idle(); });
}

// What is not over, for a person.
std::string World::Rest() const {
  std::string rest;
  for (const auto& [id, record] : coordinator_.durable()) {
    if (!job::IsFinal(record.state)) rest += record.name + " (" + record.state_reason + "), ";
  }
  for (const auto& agent : agents_) {
    if (!agent->idle()) {
      rest += agent->name() + " with " + std::to_string(agent->running()) + " workers, ";
    }
  }
  rest += std::to_string(coordinator_.durable().size()) + " of " +
          std::to_string(scenario_.jobs.size()) + " jobs are on record";
  return rest;
}

Outcome World::Conclude() {
  for (const auto& [key, group] : groups_) recorder_.OnBytes(key.job, group->bytes_sent());
  Outcome outcome{.jobs = recorder_.TakeJobs(),
                  .seconds = ToSeconds(scheduler_.now().time_since_epoch()),
                  .events = scheduler_.events(),
                  .faults = faults_.happened(),
                  .unfinished = Over() ? "" : Rest(),
                  .trace = recorder_.TakeTrace(),
                  .violations = checkers_.TakeViolations(),
                  .violations_total = checkers_.violations_total()};
  for (const auto& agent : agents_) outcome.messages += agent->messages();
  return outcome;
}

}  // namespace

job::JobSettings SettingsOf(const SimulatedJob& job) {
  const engine::EngineOptions& engine = job.engine;
  const auto* sgd = std::get_if<engine::SgdOptions>(&engine.optimizer);
  job::JobSettings settings = job.settings;
  settings.adapt.base_batch = engine.learning_rate.base_batch;
  settings.adapt.optimizer = NameOf(engine.optimizer);
  settings.adapt.momentum = sgd == nullptr ? 0 : sgd->momentum;
  settings.adapt.clip_norm = engine.clip_norm;
  settings.adapt.shard = NameOf(engine.shards.by);
  settings.adapt.synchronization.look_ahead = engine.look_ahead;
  settings.stop_train_loss = engine.stop.train_loss;
  settings.stop_epochs = engine.stop.epochs;
  settings.stop_time = engine.stop.time;
  settings.stop_rounds = engine.stop.rounds;
  return settings;
}

std::uint64_t TrainSamples(const SimulatedJob& job) {
  const std::uint64_t samples = job.learner->train_samples();
  const engine::SubsetOptions& subset = job.engine.subset;
  const bool all = subset.kind == engine::SubsetKind::kNone;
  return all ? samples : subset::SizeOf(samples, subset.fraction);
}

Outcome Simulate(Scenario scenario) { return World(std::move(scenario)).Run(); }

}  // namespace tactus::simulator
