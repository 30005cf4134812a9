// What a job's reports amount to: rounds for the history, and the progress that people watch.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/time.h"
#include "coordinator/job/records.h"
#include "coordinator/job/round_table.h"
#include "policies/loss_window.h"
#include "policies/plan.h"
#include "protocol/worker_messages.h"

namespace tactus::job {

// Folds one group's reports in. A round counts once the reports of all members are there.
//
//   loss                 of a LossWindow over the rounds of finite loss
//   samples_per_second   sum n_r / sum t_r over the rounds that came in the last kRateWindow; t_r
//                        is the mean of the members' round_seconds, on their own clocks, so that a
//                        burst of reports that had to wait for the coordinator is no speed
//   worker: speed        sum samples / sum compute_seconds over its last kRecentRounds rounds
//   worker: idle_ratio   sum (blocked - transfer) / sum round_seconds over the same rounds, where a
//                        round's transfer is the least blocked_seconds of all members: who comes
//                        last waits for nobody, only for the bytes
//   worker: data_ratio   sum data_seconds / sum round_seconds over the same rounds
//   worker: link         the median of what the same rounds told of it, in bytes/s
//   unrecorded_rounds    those between two that all reported, also where the first is the last one
//                        of the group before
//   samples              epoch * epoch_samples + epoch_consumed: the ledger's count, which misses
//                        nothing when reports are lost
//
// Source: design.
class ProgressTracker {
 public:
  static constexpr std::size_t kRecentRounds = 20;
  static constexpr Duration kRateWindow = std::chrono::seconds(5);
  static constexpr std::size_t kLongRounds = 256;
  static constexpr std::size_t kRateRoundsMax = 4096;  // of the window, when rounds are very short

  // `start` is the progress so far, for a job that goes on; its workers are by rank. `exact`: the
  // history has no round beyond it, as it may have where a coordinator restarted.
  ProgressTracker(std::uint32_t members, Progress start, bool exact = false);

  // The history has no round beyond rounds().
  bool exact() const { return exact_; }

  // A report with rank < members. Returns the round, without its job, when all have reported it.
  std::optional<RoundRecord> Add(const policies::Report& report, Instant now);

  // A worker repeated so many passes in pieces.
  void NoteRepeated(std::uint32_t passes) { progress_.repeated_passes += passes; }

  // A validation of the group's. Returns it without its job; nothing: no group says such a thing.
  std::optional<ValidationRecord> Add(const protocol::ValidatedMessage& message);

  // All fields but plan, the workers' batch sizes, elapsed_seconds and eta_seconds.
  Progress progress() const;
  std::uint64_t rounds() const { return progress_.rounds; }

  // Mean length of the last rounds; 0 before the first.
  double RoundSeconds() const;
  // The length that 99 in 100 of the last kLongRounds did not exceed, by the slowest member's
  // clock: the nearest rank, so that of up to 100 it is the longest. For the first kRecentRounds no
  // shorter than what was known at the start; 0 where nothing was.
  double LongRoundSeconds() const;

  // Sum over the workers of samples / compute_seconds of the whole run [samples/s]; 0: not known.
  double OwnSpeedSum() const;

 private:
  struct WorkerRound {
    double samples = 0;
    double compute_seconds = 0;
    double idle_seconds = 0;
    double data_seconds = 0;
    double round_seconds = 0;
    double link_bytes_per_second = 0;  // 0: not told
  };
  struct Worker {
    std::deque<WorkerRound> recent;  // at most kRecentRounds
    double samples = 0;              // of the whole run of this group
    double compute_seconds = 0;
  };
  struct RatedRound {
    Instant received;
    double samples = 0;
    double seconds = 0;
  };

  static double LinkOf(const std::deque<WorkerRound>& rounds);
  void AddWorkers(const std::vector<policies::Report>& reports);
  void AddLoss(const policies::Report& report);
  void AddRate(const RoundRecord& round, Instant now);
  void AddLength(const std::vector<policies::Report>& reports);

  Progress progress_;
  bool exact_;
  RoundTable table_;
  std::vector<Worker> workers_;  // by rank
  policies::LossWindow losses_;
  std::deque<RatedRound> rated_;
  std::deque<double> lengths_;  // of the last kLongRounds, by the slowest member's clock [s]
};

}  // namespace tactus::job
