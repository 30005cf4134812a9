// How often training writes a checkpoint: what that costs against what a loss would.

#pragma once

#include <cstdint>
#include <optional>

#include "base/time.h"

namespace tactus::policies {

// The training between two checkpoints by which a job is expected to be over soonest.
//
//   T = sqrt(2 C M) (1 + sqrt(C / (2 M)) / 3 + C / (2 M) / 9) - C   where C < 2 M
//   T = M                                                           else
//
// cost  C [s]  training that a checkpoint costs, >= 0
// mean  M [s]  time between two losses of a group's state, on average, > 0
//
// The root alone is Young's, right where C is small against M: a loss throws away T / 2 on average,
// so that C / T + T / (2 M) of the time goes, least there. The rest is Daly's, for losses as a
// Poisson process.
//
// Source: [young]; [daly] equation 37, as others implement it; it gives the three results of the
// paper's figures 3 to 5.
double CheckpointInterval(double cost, double mean);

// M of a group, after it, or others of its job, were lost `losses` times in `worker_seconds`.
//
//   M = (kWorkerPrior + worker_seconds) / ((1 + losses) workers)
//
// worker_seconds [s]  time that workers trained, each counted, >= 0
// workers        [1]  of the group, >= 1: any of them takes its state along
//
// The mean of a rate that began as that of one loss in a day of a worker: what is assumed of nodes
// that nothing is known of, and forgotten as they run. Source: design; the conjugate prior of a
// Poisson process.
inline constexpr Duration kWorkerPrior = std::chrono::hours(24);
double MeanBetweenLosses(double worker_seconds, std::uint32_t losses, std::uint32_t workers);

// What one checkpoint cost.
struct CheckpointCost {
  double still_seconds = 0;   // that training stood still: what members send, the copy
  double beside_seconds = 0;  // of a thread beside training: writing it, reading it back
};

// How far training has come.
struct CheckpointMark {
  Duration trained{};        // time that was trained
  std::uint64_t rounds = 0;  // that counted
};

// When a checkpoint is due. Time is that of training, an argument: who drives it reads no clock.
class CheckpointSchedule {
 public:
  // Of what is chosen here, so that neither a small model fills the disk nor a rare loss costs a
  // day.
  static constexpr Duration kShortest = std::chrono::minutes(1);
  static constexpr Duration kLongest = std::chrono::hours(1);
  // What a second beside training costs of it: a core among those of a host, and its memory's
  // bandwidth. Source: design.
  static constexpr double kShareBeside = 0.1;

  // every: so often; nothing: CheckpointInterval, and kShortest until a cost is known. mean: M.
  // begin: from where the first interval counts, and what the group has already.
  CheckpointSchedule(std::optional<Duration> every, double mean, CheckpointMark begin);

  // After rounds that did not count there is nothing new to keep.
  bool Due(CheckpointMark now) const {
    return now.trained - last_.trained >= interval_ && HasNew(now);
  }

  // Rounds were done since the last one: what a loss would cost.
  bool HasNew(CheckpointMark now) const { return now.rounds > last_.rounds; }

  // One was taken.
  void Taken(CheckpointMark now) { last_ = now; }

  // It is written.
  void Observe(const CheckpointCost& cost);

  Duration interval() const { return interval_; }

 private:
  const bool chosen_here_;
  const double mean_;
  Duration interval_;
  CheckpointMark last_;
};

}  // namespace tactus::policies
