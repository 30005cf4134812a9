#include "simulator/random_scenario.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/rng.h"
#include "policies/catalogue.h"
#include "policies/compatibility.h"
#include "policies/learning_rate.h"
#include "policies/mixing.h"
#include "policies/post_local_synchronization.h"
#include "simulator/examples.h"
#include "simulator/fault_injection.h"
#include "simulator/noisy_quadratic.h"
#include "simulator/perceptron.h"

namespace tactus::simulator {
namespace {

constexpr double kFaultsWithin = 30;  // seconds

// Draws with names.
class Dice {
 public:
  explicit Dice(Rng rng) : rng_(rng) {}

  bool Chance(double share) { return rng_.Uniform() < share; }
  double Between(double low, double high) { return low + (high - low) * rng_.Uniform(); }
  // Uniform in the logarithm.
  double Scale(double low, double high) { return low * std::pow(high / low, rng_.Uniform()); }
  std::uint64_t Whole(std::uint64_t low, std::uint64_t high) {
    return low + rng_.Below(high - low + 1);
  }
  template <typename T>
  const T& Of(const std::vector<T>& items) {
    return items[rng_.Below(items.size())];
  }

 private:
  Rng rng_;
};

DeviceModel DrawDevice(Dice& dice, std::uint64_t number) {
  DeviceModel device{.name = "cpu:" + std::to_string(number),
                     .batch_seconds = dice.Chance(0.5) ? dice.Scale(1e-4, 1e-2) : 0,
                     .sample_seconds = 1 / dice.Scale(50, 2000)};
  if (dice.Chance(0.7)) device.noise.log_sigma = dice.Between(0, 0.4);
  if (dice.Chance(0.2)) {
    device.noise.slow_factor = dice.Between(1.5, 5);
    device.noise.slow_seconds = dice.Between(0.5, 5);
    device.noise.fast_seconds = dice.Between(1, 20);
  }
  if (dice.Chance(0.2)) device.drift_per_hour = dice.Between(-5, 20);
  if (dice.Chance(0.03)) device.samples_max = static_cast<std::uint32_t>(dice.Whole(8, 64));
  return device;
}

LinkModel DrawLink(Dice& dice) {
  return {.latency_seconds = dice.Scale(1e-5, 2e-2),
          .bytes_per_second = dice.Scale(1e6, 1e9),
          .burst_bytes = dice.Chance(0.5) ? dice.Scale(1e3, 1e6) : 0};
}

void DrawHosts(Dice& dice, ClusterModel& cluster) {
  const std::uint64_t hosts = dice.Whole(1, 4);
  for (std::uint64_t i = 0; i < hosts; ++i) {
    HostModel host{.name = "host-" + std::to_string(i + 1),
                   .group = dice.Chance(0.5) ? "a" : "b",
                   .link = DrawLink(dice)};
    const std::uint64_t devices = dice.Whole(1, 3);
    for (std::uint64_t d = 0; d < devices; ++d) host.devices.push_back(DrawDevice(dice, d));
    cluster.hosts.push_back(std::move(host));
  }
  const auto in_group = [&](const char* group) {
    return std::ranges::find(cluster.hosts, group, &HostModel::group) != cluster.hosts.end();
  };
  if (in_group("a") && in_group("b")) {
    cluster.between.push_back({.a = "a", .b = "b", .link = DrawLink(dice)});
  }
}

Fault DrawFault(Dice& dice, const ClusterModel& cluster) {
  using Kind = Fault::Kind;
  const HostModel& host = dice.Of(cluster.hosts);
  Fault fault{
      .kind = dice.Of<Kind>({Kind::kWorkerCrash, Kind::kPause, Kind::kSlowDown, Kind::kSlowDown,
                             Kind::kAgentCrash, Kind::kPartition, Kind::kPartition,
                             Kind::kCoordinatorCrash, Kind::kCoordinatorCrash, Kind::kDiskFull}),
      .at_seconds = dice.Between(0, kFaultsWithin),
      .for_seconds = dice.Scale(0.05, 30),
      .host = host.name,
      .device = dice.Of(host.devices).name,
      .peer = kCoordinatorPeer,
      .one_way = dice.Chance(0.3),
      .factor = dice.Between(1, 10)};
  if (fault.kind == Kind::kPause && dice.Chance(0.1)) fault.for_seconds = 0;
  const HostModel& other = dice.Of(cluster.hosts);
  if (fault.kind == Kind::kPartition && other.name != host.name) fault.peer = other.name;
  return fault;
}

std::unique_ptr<Learner> DrawLearner(Dice& dice) {
  if (dice.Chance(0.2)) {
    const SyntheticOptions options{.samples = dice.Whole(100, 400),
                                   .features = dice.Whole(2, 8),
                                   .classes = static_cast<std::uint32_t>(dice.Whole(2, 4)),
                                   .seed = dice.Whole(1, 1000)};
    return std::make_unique<Perceptron>(
        PerceptronOptions{.hidden = {static_cast<std::size_t>(dice.Whole(1, 8))}},
        std::make_shared<const Examples>(MakeSyntheticExamples(options)), nullptr);
  }
  return std::make_unique<NoisyQuadratic>(
      NoisyQuadraticOptions{.dimension = dice.Whole(8, 32),
                            .segments = dice.Whole(1, 4),
                            .condition = dice.Scale(1, 1000),
                            .gradient_noise = dice.Scale(0.1, 100),
                            .loss_noise = dice.Chance(0.5) ? 0.5 : 0,
                            .train_samples = dice.Whole(50, 3000),
                            .seed = dice.Whole(1, 1000)});
}

void DrawStop(Dice& dice, SimulatedJob& job) {
  job.engine.stop.rounds = dice.Whole(1, 120);
  if (dice.Chance(0.3)) job.engine.stop.epochs = static_cast<std::uint32_t>(dice.Whole(1, 3));
  if (dice.Chance(0.3)) job.engine.stop.time = Seconds(dice.Scale(0.5, 30));
  if (dice.Chance(0.2)) job.engine.stop.train_loss = dice.Between(0.1, 2);
}

void DrawOptimizer(Dice& dice, SimulatedJob& job) {
  const engine::SgdOptions sgd{.learning_rate = 0.02};
  std::vector<engine::OptimizerOptions> optimizers = engine::EveryOptimizer();
  std::ranges::replace_if(
      optimizers, [](const auto& each) { return engine::NameOf(each) == "sgd"; },
      engine::OptimizerOptions(sgd));
  optimizers.insert(optimizers.begin(), 2, sgd);
  job.engine.optimizer = dice.Of(optimizers);
  if (auto* drawn = std::get_if<engine::SgdOptions>(&job.engine.optimizer)) {
    drawn->momentum = dice.Chance(0.5) ? 0.9 : 0;
  }
  if (dice.Chance(0.2)) job.engine.clip_norm = dice.Scale(0.1, 10);
}

constexpr std::string_view kFollowers = "lsgd";
constexpr std::string_view kNeighbours = "decentlam";

// The default counts twice, so that jobs do not differ in everything at once; but not that of the
// synchronization, in which most can go wrong.
std::string DrawPolicy(Dice& dice, policies::Axis axis) {
  std::vector<std::string> names;
  for (const policies::Policy& policy : policies::PoliciesOf(axis)) {
    if (policy.name == kFollowers || policy.name == kNeighbours) continue;  // drawn later
    names.emplace_back(policy.name);
    const bool standard = policy.name == policies::PolicyOf(policies::PlannerOptions{}, axis);
    if (standard && axis != policies::Axis::kSynchronization) names.emplace_back(policy.name);
  }
  return dice.Of(names);
}

// The step at which the rate falls, which post_local waits for.
void DrawFall(Dice& dice, SimulatedJob& job) {
  policies::Schedule& schedule = job.engine.learning_rate.schedule;
  schedule.shape = policies::Schedule::Shape::kStep;
  schedule.boundaries = {dice.Whole(1, 60)};
  job.settings.adapt.synchronization.rate_falls_at =
      policies::StepOfFall(schedule, policies::PostLocalSynchronization::kFall);
}

// Any that go together: what a user could not submit tells nothing.
void DrawPolicies(Dice& dice, SimulatedJob& job) {
  policies::PlannerOptions& adapt = job.settings.adapt;
  adapt.batch.per_worker = static_cast<std::uint32_t>(dice.Scale(1, 64));
  job.engine.learning_rate.base_batch = static_cast<std::uint32_t>(dice.Scale(1, 256));
  adapt.synchronization.period = static_cast<std::uint32_t>(dice.Scale(1, 16));
  adapt.synchronization.period_max = 16;
  adapt.synchronization.interval_seconds = dice.Scale(0.2, 20);
  adapt.synchronization.steps_max = static_cast<std::uint32_t>(dice.Scale(1, 64));
  job.engine.keep_local_momentum = dice.Chance(0.5);
  do {
    for (const policies::Axis axis : policies::kAxes) {
      policies::PolicyOf(adapt, axis) = DrawPolicy(dice, axis);
    }
  } while (!policies::ConflictsOf(SettingsOf(job).adapt).empty());
  job.engine.block_momentum = dice.Chance(0.2) ? 0.3 : 0;
  job.engine.elastic = dice.Chance(0.5);
  if (adapt.synchronization.policy == "post_local") DrawFall(dice, job);
}

SimulatedJob DrawJob(Dice& dice, std::uint64_t devices) {
  SimulatedJob job{.learner = DrawLearner(dice)};
  job.settings.workers_min = static_cast<std::uint32_t>(dice.Whole(1, devices));
  job.settings.workers_max =
      static_cast<std::uint32_t>(dice.Whole(job.settings.workers_min, devices));
  job.engine.seed = dice.Whole(1, 1u << 30);
  job.settings.spares = job.engine.seed % 3 == 0 ? 1 : 0;
  job.engine.micro_batch = static_cast<std::uint32_t>(dice.Whole(1, 64));
  job.engine.bucket_bytes = dice.Whole(16, 256);
  DrawOptimizer(dice, job);
  DrawPolicies(dice, job);
  DrawStop(dice, job);
  job.parameters = dice.Chance(0.5) ? dice.Whole(100, 1'000'000) : 0;
  job.backward_share = dice.Between(0, 1);
  job.submit_seconds = dice.Between(0, 10);
  job.load_seconds = dice.Scale(0.01, 5);
  job.conclude_seconds = dice.Scale(0.01, 2);
  if (dice.Chance(0.15)) {
    job.cancel_seconds = dice.Between(job.submit_seconds, job.submit_seconds + 20);
    job.discard = dice.Chance(0.5);
  }
  return job;
}

// What moves jobs about.
void DrawUsers(Dice& dice, Scenario& scenario) {
  for (SimulatedJob& job : scenario.jobs) {
    if (dice.Chance(0.4)) job.settings.retries = static_cast<std::uint32_t>(dice.Whole(0, 1));
    if (dice.Chance(0.3)) job.settings.priority = static_cast<std::int32_t>(dice.Whole(0, 2)) - 1;
    if (!dice.Chance(0.15)) continue;
    job.pause_seconds = job.submit_seconds + dice.Between(0, 20);
    job.resume_seconds = *job.pause_seconds + dice.Scale(0.5, 30);
  }
  if (!dice.Chance(0.15)) return;
  const double at = dice.Between(0, kFaultsWithin);
  scenario.drains.push_back({.host = dice.Of(scenario.cluster.hosts).name,
                             .at_seconds = at,
                             .until_seconds = at + dice.Scale(0.5, 60)});
}

void DrawReverts(Dice& dice, Scenario& scenario) {
  for (SimulatedJob& job : scenario.jobs) {
    if (dice.Chance(0.3)) job.revert_seconds = job.submit_seconds + dice.Between(0, 60);
  }
}

// Nobody hears anybody, or a stranger is there: what must harm no job.
void DrawControlFaults(Dice& dice, ClusterModel& cluster) {
  if (dice.Chance(0.15)) {
    const double at = dice.Between(0, kFaultsWithin);
    const double length = dice.Scale(5, 600);
    for (const HostModel& host : cluster.hosts) {
      cluster.faults.push_back({.kind = Fault::Kind::kPartition,
                                .at_seconds = at + dice.Between(0, 1),
                                .for_seconds = length + dice.Between(0, 5),
                                .host = host.name,
                                .peer = kCoordinatorPeer});
    }
  }
  if (dice.Chance(0.15)) {
    cluster.faults.push_back({.kind = Fault::Kind::kPartition,
                              .at_seconds = dice.Between(0, kFaultsWithin),
                              .for_seconds = dice.Scale(5, 600),
                              .host = dice.Of(cluster.hosts).name,
                              .peer = kCoordinatorPeer});
  }
  if (dice.Chance(0.15)) {
    cluster.faults.push_back({.kind = Fault::Kind::kWrongStore,
                              .at_seconds = dice.Between(0, kFaultsWithin),
                              .for_seconds = dice.Scale(1, 300)});
  }
}

void DrawDeviceFaults(Dice& dice, Scenario& scenario) {
  for (const HostModel& host : scenario.cluster.hosts) {
    if (!dice.Chance(0.1)) continue;
    const double at = dice.Between(0, kFaultsWithin);
    scenario.device_faults.push_back({.host = host.name,
                                      .device = dice.Of(host.devices).name,
                                      .at_seconds = at,
                                      .until_seconds = at + dice.Scale(0.5, 60)});
  }
}

void DrawCheckpoints(Dice& dice, Scenario& scenario) {
  using Kind = Fault::Kind;
  for (SimulatedJob& job : scenario.jobs) {
    if (!dice.Chance(0.8)) continue;
    job.checkpoints = {.every = Seconds(dice.Scale(0.2, 5)),
                       .still_seconds = dice.Chance(0.5) ? dice.Scale(1e-3, 0.2) : 0,
                       .write_seconds = dice.Scale(1e-3, 2),
                       .upload_seconds = dice.Scale(1e-3, 2)};
    job.settings.checkpoints_kept = static_cast<std::uint32_t>(dice.Whole(1, 3));
  }
  for (const Kind kind : {Kind::kUploadsRefused, Kind::kCheckpointDamaged}) {
    if (!dice.Chance(0.2)) continue;
    scenario.cluster.faults.push_back({.kind = kind,
                                       .at_seconds = dice.Between(0, kFaultsWithin),
                                       .for_seconds = dice.Scale(0.05, 30)});
  }
}

// Agents that say goodbye, with the time for it or without.
void DrawLeaves(Dice& dice, ClusterModel& cluster) {
  for (const HostModel& host : cluster.hosts) {
    if (!dice.Chance(0.15)) continue;
    cluster.faults.push_back({.kind = Fault::Kind::kLeave,
                              .at_seconds = dice.Between(0, kFaultsWithin),
                              .for_seconds = dice.Scale(0.5, 60),
                              .host = host.name,
                              .within_seconds = dice.Scale(0.05, 60)});
  }
}

// Between members of groups: messages that wait for its end, and connections that break.
void DrawMeshCuts(Dice& dice, ClusterModel& cluster) {
  if (cluster.hosts.size() < 2 || !dice.Chance(0.7)) return;
  const std::size_t host = dice.Whole(0, cluster.hosts.size() - 1);
  const std::size_t step = dice.Whole(1, cluster.hosts.size() - 1);
  cluster.faults.push_back({.kind = Fault::Kind::kPartition,
                            .at_seconds = dice.Between(0, kFaultsWithin),
                            .for_seconds = dice.Scale(0.05, 1200),
                            .host = cluster.hosts[host].name,
                            .peer = cluster.hosts[(host + step) % cluster.hosts.size()].name,
                            .one_way = dice.Chance(0.5),
                            .breaks = dice.Chance(0.7)});
}

// Workers that are killed; in some scenarios nothing else goes wrong, so that nothing delays how
// the others go on.
void DrawKills(Dice& dice, Scenario& scenario) {
  if (!dice.Chance(0.4)) return;
  ClusterModel& cluster = scenario.cluster;
  if (dice.Chance(0.3)) {
    cluster.faults.clear();
    cluster.control.duplicate_share = 0;
    scenario.drains.clear();
    scenario.device_faults.clear();
  }
  for (std::uint64_t kills = dice.Whole(1, 4); kills > 0; --kills) {
    const HostModel& host = dice.Of(cluster.hosts);
    cluster.faults.push_back({.kind = Fault::Kind::kWorkerCrash,
                              .at_seconds = dice.Between(0, 2 * kFaultsWithin),
                              .host = host.name,
                              .device = dice.Of(host.devices).name});
  }
}

// Of methods.
void DrawVariants(Dice& dice, Scenario& scenario) {
  for (SimulatedJob& job : scenario.jobs) {
    job.engine.look_ahead = dice.Chance(0.5);
    job.settings.adapt.synchronization.log_time = dice.Chance(0.5);
  }
}

// Some of the jobs that leave room for it have members that follow leaders, with numbers of theirs.
void DrawFollowers(Dice& dice, Scenario& scenario) {
  for (SimulatedJob& job : scenario.jobs) {
    if (!dice.Chance(0.2)) continue;
    policies::PlannerOptions& adapt = job.settings.adapt;
    const std::string before = std::exchange(adapt.synchronization.policy, kFollowers);
    if (!policies::ConflictsOf(SettingsOf(job).adapt).empty())
      adapt.synchronization.policy = before;
    job.engine.leader = {.pull = dice.Between(0, 0.9),
                         .node_pull = dice.Between(0, 0.9),
                         .step_pull = dice.Between(0, 0.9),
                         .node_step_pull = dice.Between(0, 0.9),
                         .loss_window = static_cast<std::uint32_t>(dice.Whole(1, 20))};
  }
}

// Members that hold a part of the optimizer's state each, where that goes with what was drawn, and
// often with every step in place of what does not.
void DrawShards(Dice& dice, Scenario& scenario) {
  for (SimulatedJob& job : scenario.jobs) {
    const engine::ShardOptions shards = {
        .by = dice.Of<engine::ShardBy>({engine::ShardBy::kEqual, engine::ShardBy::kMemory}),
        .copies = static_cast<std::uint32_t>(dice.Whole(1, 2))};
    const bool draws = dice.Chance(0.25);
    if (!draws || std::holds_alternative<engine::LambOptions>(job.engine.optimizer)) continue;
    policies::PlannerOptions& adapt = job.settings.adapt;
    const std::string before = adapt.synchronization.policy;
    job.engine.shards = shards;
    if (policies::ConflictsOf(SettingsOf(job).adapt).empty()) continue;
    adapt.synchronization.policy = "every_step";
    if (policies::ConflictsOf(SettingsOf(job).adapt).empty()) continue;
    adapt.synchronization.policy = before;
    job.engine.shards = {};
  }
}

// Epochs of a part of the samples.
void DrawSubsets(Dice& dice, Scenario& scenario) {
  for (SimulatedJob& job : scenario.jobs) {
    const engine::SubsetOptions subset = {.kind = engine::SubsetKind::kRandom,
                                          .fraction = dice.Scale(0.02, 1),
                                          .epochs = static_cast<std::uint32_t>(dice.Whole(1, 3))};
    if (dice.Chance(0.15)) job.engine.subset = subset;
  }
}

// Likewise, members that mix with their neighbours, by any graph and momentum that users may have.
void DrawNeighbours(Dice& dice, Scenario& scenario) {
  for (SimulatedJob& job : scenario.jobs) {
    if (!dice.Chance(0.2)) continue;
    policies::PlannerOptions& adapt = job.settings.adapt;
    const std::string before = std::exchange(adapt.synchronization.policy, kNeighbours);
    if (!policies::ConflictsOf(SettingsOf(job).adapt).empty())
      adapt.synchronization.policy = before;
    std::vector<std::string> graphs(policies::kTopologyNames.begin(),
                                    policies::kTopologyNames.end());
    graphs.emplace_back("auto");
    adapt.synchronization.graph = dice.Of(graphs);
    adapt.synchronization.correct_bias = dice.Chance(0.7);
    job.engine.neighbours.correct_bias = adapt.synchronization.correct_bias;
  }
}

}  // namespace

Scenario RandomScenario(std::uint64_t seed) {
  Dice dice(Rng(seed).Fork("scenario"));
  Scenario scenario{.seed = seed};
  ClusterModel& cluster = scenario.cluster;
  DrawHosts(dice, cluster);
  cluster.algorithm = dice.Of<Algorithm>({Algorithm::kMesh, Algorithm::kMesh, Algorithm::kRing,
                                          Algorithm::kRecursiveHalving, Algorithm::kTree});
  cluster.control.delay_seconds = dice.Scale(1e-4, 5e-2);
  if (dice.Chance(0.5)) cluster.control.jitter_seconds = dice.Scale(1e-4, 5e-2);
  if (dice.Chance(0.5)) cluster.control.duplicate_share = dice.Between(0, 0.05);
  cluster.control.persist_seconds = dice.Scale(1e-4, 2e-2);
  const std::uint64_t faults = dice.Chance(0.2) ? 0 : dice.Whole(1, 5);
  for (std::uint64_t i = 0; i < faults; ++i) cluster.faults.push_back(DrawFault(dice, cluster));

  std::uint64_t devices = 0;
  for (const HostModel& host : cluster.hosts) devices += host.devices.size();
  const std::uint64_t jobs = dice.Whole(1, 3);
  for (std::uint64_t i = 0; i < jobs; ++i) scenario.jobs.push_back(DrawJob(dice, devices));
  // Dice of their own: what is drawn before them stays the same for a seed, whatever is added here.
  Dice users(Rng(seed).Fork("users"));
  DrawUsers(users, scenario);
  Dice devices_at_fault(Rng(seed).Fork("device faults"));
  DrawDeviceFaults(devices_at_fault, scenario);
  Dice control(Rng(seed).Fork("control faults"));
  DrawControlFaults(control, cluster);
  Dice checkpoints(Rng(seed).Fork("checkpoints"));
  DrawCheckpoints(checkpoints, scenario);
  Dice leaves(Rng(seed).Fork("leaves"));
  DrawLeaves(leaves, cluster);
  Dice mesh(Rng(seed).Fork("mesh cuts"));
  DrawMeshCuts(mesh, cluster);
  Dice kills(Rng(seed).Fork("kills"));
  DrawKills(kills, scenario);
  Dice reverts(Rng(seed).Fork("reverts"));
  DrawReverts(reverts, scenario);
  Dice variants(Rng(seed).Fork("variants"));
  DrawVariants(variants, scenario);
  Dice followers(Rng(seed).Fork("followers"));
  DrawFollowers(followers, scenario);
  Dice shards(Rng(seed).Fork("shards"));
  DrawShards(shards, scenario);
  Dice subsets(Rng(seed).Fork("subsets"));
  DrawSubsets(subsets, scenario);
  Dice neighbours(Rng(seed).Fork("neighbours"));
  DrawNeighbours(neighbours, scenario);
  return scenario;
}

}  // namespace tactus::simulator
