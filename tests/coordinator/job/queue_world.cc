#include "tests/coordinator/job/queue_world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

constexpr double kLoadSeconds = 1;
constexpr double kRoundSeconds = 5;
constexpr double kSuspendSeconds = 0.5;  // from the message to the last exit, at most a round more
// How long a group may hold on to what the head could have: until it is steady, ended, and the
// others have started and become steady in their turn.
constexpr double kPatience = 2 * (30 + kLoadSeconds + kRoundSeconds + 2 * kSuspendSeconds);
constexpr std::uint64_t kEventsMax = 200'000;

}  // namespace

QueueWorld::QueueWorld(std::uint64_t seed) : rng_(seed), cluster_(kWallOffset) {
  std::uint64_t devices = 0;
  const std::uint64_t nodes = 1 + rng_.Below(4);
  for (std::uint64_t i = 0; i < nodes; ++i) {
    const int count = 1 + static_cast<int>(rng_.Below(4));
    devices += static_cast<std::uint64_t>(count);
    At(0, [this, i, count] { Give(Join("n" + std::to_string(i), count)); });
  }
  const std::uint64_t jobs = 2 + rng_.Below(10);
  for (std::uint64_t id = 1; id <= jobs; ++id) {
    const auto min = static_cast<std::uint32_t>(1 + rng_.Below(devices));
    const auto max = min + static_cast<std::uint32_t>(rng_.Below(3) * rng_.Below(8));
    Work& work = work_[JobId{id}];
    work.settings = {.name = "q",
                     .workers_min = min,
                     .workers_max = max,
                     .priority = static_cast<std::int32_t>(rng_.Below(3))};
    work.arrival = rng_.Uniform() * 300;
    work.remaining = (1 + rng_.Uniform() * 200) * min;
    At(work.arrival,
       [this, id] { Give(JobSubmitted{tactus::job::Job(id, work_.at(JobId{id}).settings)}); });
    ++tally_.jobs;
  }
}

void QueueWorld::Run() {
  double serial = 1000;  // longer than all of them one after the other, with their starts and ends
  for (const auto& [id, work] : work_) {
    serial += work.remaining / work.settings.workers_min + 20 * kPatience;
  }
  std::uint64_t count = 0;
  while (!events_.empty() && !testing::Test::HasFailure()) {
    ASSERT_LT(++count, kEventsMax) << "they never come to an end";
    auto next = events_.extract(events_.begin());
    seconds_ = next.key().first;
    if (seconds_ > serial) break;
    next.mapped()();
  }
  for (const auto& [id, work] : work_) EXPECT_TRUE(work.over) << "job " << id.value << " starves";
}

void QueueWorld::At(double seconds, std::function<void()> what) {
  events_[{seconds, sequence_++}] = std::move(what);
}

void QueueWorld::Give(const Event& event) {
  const Actions actions = cluster_.Step(event, tactus::job::At(seconds_));
  for (const Action& action : actions) {
    if (const auto* start = std::get_if<StartWorker>(&action)) On(*start);
    if (const auto* send = std::get_if<SendToWorker>(&action)) On(*send);
    if (const auto* stop = std::get_if<StopWorker>(&action)) On(*stop);
    if (const auto* persist = std::get_if<PersistJob>(&action)) On(*persist);
    if (const auto* wake = std::get_if<WakeAt>(&action)) {
      const double due = ToSeconds(wake->time.time_since_epoch());
      At(std::max(due, seconds_) + 1e-6, [this] { Give(Ticked{}); });
    }
  }
  CheckHead();
}

// ---- The workers

void QueueWorld::On(const StartWorker& action) {
  workers_[action.worker] = action.job;
  At(seconds_ + kLoadSeconds, [this, worker = action.worker] {
    if (workers_.contains(worker)) Give(Said(worker.value, Ready()));
  });
}

void QueueWorld::On(const SendToWorker& action) {
  const JobId job = workers_.at(action.worker);
  Work& work = work_.at(job);
  if (const auto* group = std::get_if<GroupMessage>(&action.message)) {
    work.generation = group->generation;
    work.ranks[action.worker] = group->rank;
    At(seconds_, [this, worker = action.worker, generation = group->generation] {
      if (workers_.contains(worker)) {
        Give(Said(worker.value, EndpointMessage{.generation = generation}));
      }
    });
    if (group->rank == 0) {
      work.members = group->size;
      work.ready = 0;
    }
  } else if (std::holds_alternative<PeersMessage>(action.message)) {
    if (++work.ready == work.members) Train(job);
  } else if (const auto* stop = std::get_if<StopMessage>(&action.message)) {
    const std::uint64_t generation = work.generation;
    if (work.ranks.at(action.worker) != 0) return;
    At(seconds_ + kSuspendSeconds, [this, job, generation, stop = *stop] {
      if (work_.at(job).generation != generation) return;
      if (stop.regroup) {
        Regroup(job);
      } else {
        End(job, stop.suspend);
      }
    });
  }
}

void QueueWorld::On(const StopWorker& action) {
  At(seconds_ + kSuspendSeconds, [this, worker = action.worker] { Exit(worker); });
}

void QueueWorld::Train(JobId job) {
  Work& work = work_.at(job);
  work.training_since = seconds_;
  const std::uint64_t generation = work.generation;
  At(seconds_, [this, job, generation] { Report(job, generation); });
  At(seconds_ + work.remaining / static_cast<double>(work.members), [this, job, generation] {
    const Work& now = work_.at(job);
    if (now.generation == generation && now.training_since) End(job, false);
  });
}

void QueueWorld::Report(JobId job, std::uint64_t generation) {
  Work& work = work_.at(job);
  if (work.generation != generation || !work.training_since) return;
  const std::vector<std::uint32_t> sizes(work.members, 32);
  for (const auto& [worker, rank] : std::map(work.ranks)) {
    Give(Said(worker.value,
              ReportOf(rank, {.round = work.rounds, .batch_sizes = sizes}, generation)));
  }
  ++work.rounds;
  At(seconds_ + kRoundSeconds, [this, job, generation] { Report(job, generation); });
}

bool QueueWorld::StandStill(Work& work) {
  if (!work.training_since) return false;
  work.remaining -= (seconds_ - *work.training_since) * static_cast<double>(work.members);
  work.remaining = std::max(work.remaining, 0.0);
  work.training_since.reset();
  return true;
}

void QueueWorld::Regroup(JobId job) {
  Work& work = work_.at(job);
  if (!StandStill(work)) return;
  const std::map<WorkerId, std::uint32_t> ranks = std::exchange(work.ranks, {});
  const std::uint64_t generation = work.generation;
  for (const auto& [worker, rank] : ranks) {
    Give(Said(worker.value,
              GroupLostMessage{.generation = generation, .rounds = work.rounds, .planned = true}));
  }
}

void QueueWorld::End(JobId job, bool suspended) {
  Work& work = work_.at(job);
  if (!StandStill(work)) return;
  const std::map<WorkerId, std::uint32_t> ranks = work.ranks;
  for (const auto& [worker, rank] : ranks) {
    FinishedMessage message = Finished(rank);
    message.suspended = suspended;
    message.rounds = work.rounds;
    message.files.clear();
    if (rank == 0 && suspended) message.files = {kCheckpointFile};
    Give(Said(worker.value, message));
  }
  if (suspended) {
    Give(ArtifactStored{job, {.path = kCheckpointFile, .size_bytes = 1, .sha256 = "c0ffee"}});
  }
  for (const auto& [worker, rank] : ranks) {
    At(seconds_ + kSuspendSeconds, [this, worker = worker] { Exit(worker); });
  }
}

void QueueWorld::Exit(WorkerId worker) {
  if (workers_.erase(worker) > 0) Give(WorkerExited{.worker = worker});
}

// ---- The promises

void QueueWorld::On(const PersistJob& action) {
  const JobRecord& record = action.record;
  Work& work = work_.at(record.id);
  if (IsFinal(record.state)) {
    EXPECT_EQ(record.state, JobState::kSucceeded) << record.state_reason;
    work.over = true;
    tally_.suspensions += static_cast<int>(record.suspensions);
  }
  if (record.state == JobState::kSuspending && record.suspension && !record.suspension->secured) {
    tally_.preempted += record.state_reason.starts_with("makes room") ? 1 : 0;
  }
  if (record.state == JobState::kStarting && record.members.size() != 0 &&
      record.state_reason.ends_with("loading model and data")) {
    CheckGroup(record);
  }
  if (record.resizes > work.resizes) {
    work.resizes = record.resizes;
    EXPECT_GE(record.members.size(), work.settings.workers_min);
    EXPECT_LE(record.members.size(), work.settings.workers_max);
    tally_.grown += record.members.size() > work.last_size ? 1 : 0;
    tally_.shrunk += record.members.size() < work.last_size ? 1 : 0;
    work.last_size = record.members.size();
  }
  EXPECT_EQ(record.regroups, 0u) << record.regroup_reason;
}

void QueueWorld::CheckGroup(const JobRecord& record) {
  Work& work = work_.at(record.id);
  EXPECT_GE(record.members.size(), work.settings.workers_min);
  EXPECT_LE(record.members.size(), work.settings.workers_max);
  tally_.resized += work.last_size != 0 && work.last_size != record.members.size() ? 1 : 0;
  work.last_size = work.members = record.members.size();
  work.ready = 0;
  work.ranks.clear();
  const std::optional<JobId> head = cluster_.QueueHead();
  if (head && ComesBefore(work_.at(*head).settings, *head, work.settings, record.id)) {
    ++tally_.lent;
  }
}

void QueueWorld::CheckHead() {
  const std::optional<JobId> head = cluster_.QueueHead();
  const JobRecord* const record = head ? cluster_.Find(*head) : nullptr;
  const bool inverted = record != nullptr && Obtainable(*record) >= record->settings.workers_min;
  if (!inverted || head_ != head) inverted_since_ = inverted ? seconds_ : -1;
  head_ = head;
  if (inverted && inverted_since_ < 0) inverted_since_ = seconds_;
  if (inverted) {
    EXPECT_LE(seconds_ - inverted_since_, kPatience)
        << "at " << seconds_ << " s job " << head->value << " waits for what others need not have";
  }
}

// Devices that the rules give to the head: free ones, those of later jobs, and what elastic groups
// of its priority have above their min.
std::size_t QueueWorld::Obtainable(const JobRecord& head) const {
  std::size_t devices = cluster_.membership().Free().size();
  for (const JobRecord* record : cluster_.Jobs()) {
    const Work& work = work_.at(record->id);
    const auto held = static_cast<std::size_t>(
        std::ranges::count(workers_, record->id, [](const auto& entry) { return entry.second; }));
    if (ComesBefore(head.settings, head.id, record->settings, record->id)) {
      devices += held;
    } else if (record->settings.priority == head.settings.priority) {
      devices += held - std::min<std::size_t>(held, work.settings.workers_min);
    }
  }
  return devices;
}

}  // namespace tactus::job
