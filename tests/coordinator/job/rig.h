// Short words for the tests of the coordinator's core, and a cluster with a job on it.

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "coordinator/job/actions.h"
#include "coordinator/job/cluster.h"

namespace tactus::job {

constexpr WallTime kWallOffset = 1'700'000'000'000'000'000;

Instant At(double seconds);

// `count` devices "<kind>:0" and so on.
std::vector<DeviceRecord> Devices(const std::string& kind, int count);

// A fresh agent with `cpus` CPU devices and nothing running.
NodeJoined Join(const std::string& node, int cpus);

// A job "alpha-<id>" of 1 to 3 workers on any device.
JobRecord Job(std::uint64_t id, const JobSettings& settings = {.workers_min = 1, .workers_max = 3});

// The same, tried but once.
JobRecord JobOnce(std::uint64_t id);

WorkerSaid Said(std::uint64_t worker, FromWorker message);

ReadyMessage Ready();

// A round in which ranks 0, 1, 2 have speeds 100, 100, 50 samples/s and the transfer takes 10 ms.
struct RoundOf {
  std::uint64_t round = 0;
  std::uint64_t plan_version = 1;
  std::vector<std::uint32_t> batch_sizes{};
};
ReportMessage ReportOf(std::uint32_t rank, const RoundOf& round, std::uint64_t generation = 1);

FinishedMessage Finished(std::uint32_t rank);

// All actions of type T, in order.
template <typename T>
std::vector<T> Only(const Actions& actions) {
  std::vector<T> found;
  for (const Action& action : actions) {
    if (const T* one = std::get_if<T>(&action)) found.push_back(*one);
  }
  return found;
}

// The messages of type T that are sent to workers, in order.
template <typename T>
std::vector<T> Sent(const Actions& actions) {
  std::vector<T> messages;
  for (const SendToWorker& send : Only<SendToWorker>(actions)) {
    if (const T* message = std::get_if<T>(&send.message)) messages.push_back(*message);
  }
  return messages;
}

// The workers that are ended, in order.
std::vector<WorkerId> Stopped(const Actions& actions);

// The plans sent to workers, without those of GroupMessages.
std::vector<policies::Plan> PlansSent(const Actions& actions);

// Three workers: 1 on a/cpu:0, 2 on a/cpu:1, 3 on b/cpu:0. Each step is 0.1 s after the one before.
class Rig {
 public:
  Rig() : Rig(Job(1)) {}
  explicit Rig(JobRecord job) : job_(std::move(job)) {}

  Actions Step(const Event& event);
  Actions StepAt(double seconds, const Event& event);
  // Time passes to then and 4 s more, in which agents answer twice for whoever is asked for, and
  // the workers themselves do and say nothing. Of its end.
  Actions SilentAt(double seconds);

  void ToStarting();  // nodes a (2 cpus) and b (1 cpu) join, the job is submitted
  void ToFormed();    // and all workers have their peers
  void ToRunning();   // and one round was reported

  // All three workers report the next round under `plan_version` with 32 samples each.
  Actions Round(std::uint64_t plan_version = 1);

  // All say that they finished; the files of the result arrive.
  void FinishAll();
  void StoreAll();

  // The record, also when the job is over: the last one persisted.
  const JobRecord& record() const { return *last_; }
  Cluster& cluster() { return *cluster_; }
  double seconds() const { return seconds_; }

  // What the planner learned, as last persisted.
  std::string& memory() { return memory_.memory; }

  // What jobs handed on, as last persisted, by key.
  std::map<std::string, PriorRecord>& priors() { return priors_; }

  // The last record is one of a version that did not keep what workers had loaded.
  void ForgetLoaded() { last_->loaded = {}; }

  // A new coordinator takes up the last record and what was persisted beside it.
  Actions Restart();
  // The node's agent comes back with these workers.
  Actions Rejoin(const std::string& node, int cpus, std::vector<WorkerId> running);

 private:
  void Note(const Actions& actions);

  JobRecord job_;
  std::unique_ptr<Cluster> cluster_ = std::make_unique<Cluster>(kWallOffset);
  std::optional<JobRecord> last_;
  MemoryRecord memory_;
  std::map<std::string, PriorRecord> priors_;
  double seconds_ = 0;
  std::uint64_t next_round_ = 0;
};

}  // namespace tactus::job
