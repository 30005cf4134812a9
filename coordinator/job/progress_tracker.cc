#include "coordinator/job/progress_tracker.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "policies/median.h"

namespace tactus::job {
namespace {

constexpr double kSecondsMax = 1e9;  // of a validation, or of training until then
constexpr std::uint64_t kRoundsMax = std::uint64_t{1} << 62;  // that a store can keep

// What a worker reports is outside input: a time that is none counts as 0.
double Sane(double seconds) { return std::isfinite(seconds) && seconds > 0 ? seconds : 0; }

double Ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

template <typename Items, typename Field>
double Sum(const Items& items, Field field) {
  double sum = 0;
  for (const auto& item : items) sum += item.*field;
  return sum;
}

RoundRecord RoundOf(const std::vector<policies::Report>& reports) {
  const policies::Report& first = reports.front();
  RoundRecord round{.round = first.round,
                    .epoch = first.epoch,
                    .samples = first.samples_global,
                    .loss = first.loss_mean_global,
                    .local_samples = std::min(first.local_samples_global, first.samples_global),
                    .local_loss = first.local_loss_mean_global,
                    .plan_version = first.plan_version,
                    .bytes = first.bytes_sent,
                    .steps = first.steps,
                    .learning_rate = first.learning_rate,
                    .gain = first.gain,
                    .progress = first.progress,
                    .orthogonality = first.orthogonality,
                    .transfer_seconds = Sane(first.transfer_seconds)};
  // A plan is in force when all ran under it. Who comes last waits for nobody, so the least
  // transfer is the transfer.
  for (const policies::Report& report : reports) {
    round.seconds += Sane(report.round_seconds) / static_cast<double>(reports.size());
    round.plan_version = std::min(round.plan_version, report.plan_version);
    round.transfer_seconds = std::min(round.transfer_seconds, Sane(report.transfer_seconds));
    round.worker_samples.push_back(report.samples);
    round.worker_compute_seconds.push_back(Sane(report.compute_seconds));
    round.worker_blocked_seconds.push_back(Sane(report.blocked_seconds));
    round.worker_update_seconds.push_back(Sane(report.update_seconds));
  }
  return round;
}

}  // namespace

ProgressTracker::ProgressTracker(std::uint32_t members, Progress start, bool exact)
    : progress_(std::move(start)), exact_(exact), table_(members), workers_(members) {
  progress_.workers.resize(members);
}

double ProgressTracker::LinkOf(const std::deque<WorkerRound>& rounds) {
  std::vector<double> told;
  for (const WorkerRound& round : rounds) {
    if (round.link_bytes_per_second > 0) told.push_back(round.link_bytes_per_second);
  }
  return told.empty() ? 0 : policies::Median(std::move(told));
}

std::optional<RoundRecord> ProgressTracker::Add(const policies::Report& report, Instant now) {
  const std::vector<policies::Report>* const reports = table_.Add(report);
  if (reports == nullptr) return std::nullopt;
  RoundRecord round = RoundOf(*reports);
  if (std::exchange(exact_, true) && round.round > progress_.rounds) {
    progress_.unrecorded_rounds += round.round - progress_.rounds;
  }
  progress_.rounds = round.round + 1;
  progress_.epoch = round.epoch;
  progress_.epoch_consumed = reports->front().epoch_consumed;
  progress_.samples = progress_.epoch * progress_.epoch_samples + progress_.epoch_consumed;
  if (reports->front().nonfinite_members > 0) ++progress_.skipped_rounds;
  AddWorkers(*reports);
  AddLoss(reports->front());
  AddRate(round, now);
  AddLength(*reports);
  return round;
}

std::optional<ValidationRecord> ProgressTracker::Add(const protocol::ValidatedMessage& message) {
  if (message.rounds > kRoundsMax || message.best_rounds > message.rounds) return std::nullopt;
  const ValidationRecord record{.rounds = message.rounds,
                                .epoch = message.epoch,
                                .trained_samples = message.trained_samples,
                                .train_seconds = std::min(Sane(message.train_seconds), kSecondsMax),
                                .loss = message.loss,
                                .accuracy = message.accuracy,
                                .samples = message.samples,
                                .seconds = std::min(Sane(message.seconds), kSecondsMax)};
  ValidationProgress& progress = progress_.validation;
  progress.newest = record;
  ++progress.count;
  progress.seconds = std::min(progress.seconds + record.seconds, kSecondsMax);
  progress.since_best = message.since_best;
  if (message.best_samples == 0) {
    progress.best.reset();
  } else if (message.best_rounds == message.rounds) {
    progress.best = record;
  } else if (!progress.best || progress.best->rounds != message.best_rounds) {
    // It was told of by a message that did not come.
    progress.best = ValidationRecord{.rounds = message.best_rounds,
                                     .loss = message.best_loss,
                                     .accuracy = message.best_accuracy,
                                     .samples = message.best_samples};
  }
  return record;
}

double ProgressTracker::RoundSeconds() const {
  return Ratio(Sum(rated_, &RatedRound::seconds), static_cast<double>(rated_.size()));
}

// What is known of a group before this one stands in for what is not known of it yet.
double ProgressTracker::LongRoundSeconds() const {
  const double before = lengths_.size() < kRecentRounds ? progress_.long_round_seconds : 0;
  if (lengths_.empty()) return before;
  std::vector<double> lengths(lengths_.begin(), lengths_.end());
  const std::size_t rank = (99 * lengths.size() + 99) / 100;  // from 1
  const auto found = lengths.begin() + static_cast<std::ptrdiff_t>(rank) - 1;
  std::ranges::nth_element(lengths, found);
  return std::max(*found, before);
}

double ProgressTracker::OwnSpeedSum() const {
  double sum = 0;
  for (const Worker& worker : workers_) sum += Ratio(worker.samples, worker.compute_seconds);
  return sum;
}

void ProgressTracker::AddWorkers(const std::vector<policies::Report>& reports) {
  const double transfer =
      Sane(std::ranges::min_element(reports, {}, [](const policies::Report& report) {
             return Sane(report.blocked_seconds);
           })->blocked_seconds);
  for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
    const policies::Report& report = reports[rank];
    const WorkerRound round{.samples = static_cast<double>(report.samples),
                            .compute_seconds = Sane(report.compute_seconds),
                            .idle_seconds = Sane(report.blocked_seconds) - transfer,
                            .data_seconds = Sane(report.data_seconds),
                            .round_seconds = Sane(report.round_seconds),
                            .link_bytes_per_second = Sane(report.link_bytes_per_second)};
    Worker& worker = workers_[rank];
    worker.samples += round.samples;
    worker.compute_seconds += round.compute_seconds;
    worker.recent.push_back(round);
    if (worker.recent.size() > kRecentRounds) worker.recent.pop_front();
    progress_.workers[rank].samples += report.samples;
  }
}

// People look once a second; rounds may come by the thousand.
Progress ProgressTracker::progress() const {
  Progress progress = progress_;
  progress.long_round_seconds = LongRoundSeconds();
  for (std::size_t rank = 0; rank < workers_.size(); ++rank) {
    const std::deque<WorkerRound>& recent = workers_[rank].recent;
    WorkerProgress& shown = progress.workers[rank];
    if (recent.empty()) continue;
    shown.samples_per_second =
        Ratio(Sum(recent, &WorkerRound::samples), Sum(recent, &WorkerRound::compute_seconds));
    const double seconds = Sum(recent, &WorkerRound::round_seconds);
    const auto share = [&](auto part) {
      return std::clamp(Ratio(Sum(recent, part), seconds), 0.0, 1.0);
    };
    shown.idle_ratio = share(&WorkerRound::idle_seconds);
    shown.data_ratio = share(&WorkerRound::data_seconds);
    shown.link_bytes_per_second = LinkOf(recent);
  }
  return progress;
}

void ProgressTracker::AddLoss(const policies::Report& report) {
  if (!std::isfinite(report.loss_mean_global) || !std::isfinite(report.local_loss_mean_global))
    return;
  if (report.samples_global == 0) return;
  losses_.Add(policies::LossesOf(report));
  progress_.loss = losses_.Mean();
}

void ProgressTracker::AddLength(const std::vector<policies::Report>& reports) {
  double longest = 0;
  for (const policies::Report& report : reports) {
    longest = std::max(longest, Sane(report.round_seconds));
  }
  lengths_.push_back(longest);
  if (lengths_.size() > kLongRounds) lengths_.pop_front();
}

void ProgressTracker::AddRate(const RoundRecord& round, Instant now) {
  rated_.push_back(
      {.received = now, .samples = static_cast<double>(round.samples), .seconds = round.seconds});
  while (rated_.front().received + kRateWindow < now || rated_.size() > kRateRoundsMax) {
    rated_.pop_front();
  }
  progress_.samples_per_second =
      Ratio(Sum(rated_, &RatedRound::samples), Sum(rated_, &RatedRound::seconds));
}

}  // namespace tactus::job
