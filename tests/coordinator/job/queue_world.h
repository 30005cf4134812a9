// A cluster in virtual time whose workers always obey, for the rules of the queue.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "coordinator/job/actions.h"
#include "coordinator/job/cluster.h"

namespace tactus::job {

// Random nodes, and jobs that arrive over time with random sizes, priorities and lengths; each does
// its work at one device-second a second and device. Everything follows from the seed. Checks are
// gtest expectations, after every event:
//   - gangs are whole: a group starts with min to max members, or not at all;
//   - nobody behind the queue's head, and no elastic group of its priority above its min, holds
//     devices that would let it start, but for as long as it takes to be ended with a checkpoint.
class QueueWorld {
 public:
  explicit QueueWorld(std::uint64_t seed);

  // Runs until all jobs are over; expects that this comes to pass.
  void Run();

  struct Tally {
    int jobs = 0;
    int suspensions = 0;
    int preempted = 0;  // for a job of a higher priority
    int lent = 0;       // started while an earlier job waited
    int resized = 0;
    int grown = 0;  // without a stop
    int shrunk = 0;
  };
  const Tally& tally() const { return tally_; }

 private:
  struct Work {
    JobSettings settings{};
    double arrival = 0;    // [s]
    double remaining = 0;  // [device s]
    std::uint64_t generation = 0;
    std::size_t members = 0;  // of its group
    std::size_t ready = 0;
    std::size_t gone = 0;
    std::map<WorkerId, std::uint32_t> ranks{};
    std::optional<double> training_since{};
    std::uint64_t rounds = 0;
    std::size_t last_size = 0;
    std::uint32_t resizes = 0;
    bool over = false;
  };

  void At(double seconds, std::function<void()> what);
  void Give(const Event& event);
  void On(const StartWorker& action);
  void On(const SendToWorker& action);
  void On(const StopWorker& action);
  void On(const PersistJob& action);
  void Train(JobId job);
  void Report(JobId job, std::uint64_t generation);
  bool StandStill(Work& work);
  void Regroup(JobId job);
  void End(JobId job, bool suspended);
  void Exit(WorkerId worker);
  void CheckGroup(const JobRecord& record);
  void CheckHead();
  std::size_t Obtainable(const JobRecord& head) const;

  Rng rng_;
  Cluster cluster_;
  double seconds_ = 0;
  std::uint64_t sequence_ = 0;
  std::map<std::pair<double, std::uint64_t>, std::function<void()>> events_;
  std::map<JobId, Work> work_;
  std::map<WorkerId, JobId> workers_;  // that run
  std::optional<JobId> head_;
  double head_since_ = 0;
  double inverted_since_ =
      -1;  // devices that the head could have are held since; < 0: they are not
  Tally tally_;
};

}  // namespace tactus::job
