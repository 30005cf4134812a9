// An invented job on record, for the tests of what is fitted to one.

#pragma once

#include <cstdint>

#include "tactus/v1/jobs.pb.h"

namespace tactus::client {

inline constexpr std::uint64_t kRecordedParameters = 1000;
inline constexpr std::uint64_t kRecordedEpochSamples = 1000;
inline constexpr double kRecordedRoundSeconds = 0.036;

// Worker 7 on node "a", worker 9 on node "b", which is four times as slow: ranks 0 and 1. It takes
// two devices in any case.
inline v1::Job RecordedJob() {
  v1::Job job;
  job.set_name("projects/default/jobs/demo-1");
  v1::JobSpec& spec = *job.mutable_spec();
  spec.set_name("demo");
  spec.mutable_model()->set_builtin("bytes-lm");
  spec.mutable_data()->set_text("/corpus.txt");
  spec.mutable_optimizer()->mutable_sgd()->set_learning_rate(0.1);
  spec.mutable_stop()->set_rounds(30);
  spec.mutable_workers()->set_min(2);
  spec.mutable_workers()->set_max(2);
  spec.mutable_adapt()->mutable_batch()->set_policy(v1::BATCH_POLICY_FIXED);
  spec.mutable_adapt()->mutable_batch()->set_per_worker(20);
  v1::JobProgress& progress = *job.mutable_progress();
  progress.set_epoch(1);
  progress.set_epoch_fraction(0.2);
  progress.set_samples(1200);
  for (const auto& [id, node] : {std::pair(7, "a"), std::pair(9, "b")}) {
    v1::WorkerProgress& worker = *progress.add_workers();
    worker.set_rank(static_cast<std::uint32_t>(progress.workers_size() - 1));
    worker.set_worker_id(static_cast<std::uint64_t>(id));
    worker.set_node(node);
    worker.set_device("cpu:0");
  }
  return job;
}

// Rounds of 32 + 8 samples: 1 ms a sample on "a", 4 ms on "b", 4 ms of transfer, no noise; the loss
// falls from 2 to 1.
inline v1::ListRoundsResponse RecordedRounds(int count = 30) {
  v1::ListRoundsResponse history;
  for (int i = 0; i < count; ++i) {
    v1::Round& round = *history.add_rounds();
    round.set_round(static_cast<std::uint64_t>(i));
    round.set_samples(40);
    round.set_loss(1 + 1.0 / (1 + i));
    round.set_seconds(kRecordedRoundSeconds);
    for (const std::uint64_t samples : {32, 8}) {
      round.add_worker_samples(samples);
      round.add_worker_compute_seconds(0.032);
      round.add_worker_blocked_seconds(0.004);
    }
    round.set_bytes(4 * kRecordedParameters);
  }
  return history;
}

}  // namespace tactus::client
