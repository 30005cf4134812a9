// A job in the middle of its life, for tests of what is shown.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tactus/v1/jobs.pb.h"

namespace tactus::client {

struct SampleWorker {
  double samples_per_second = 0;
  std::uint32_t batch_size = 0;
  std::uint64_t samples = 0;
  double idle_ratio = 0;
  double emulated_speed = 0;
};

inline v1::JobProgress SampleProgress(const std::vector<SampleWorker>& workers) {
  v1::JobProgress progress;
  progress.set_rounds(143);
  progress.set_epoch_fraction(0.12);
  progress.set_loss(2.3141);
  progress.set_samples_per_second(1204.3);
  progress.mutable_elapsed()->set_seconds(34);
  progress.mutable_eta()->set_seconds(26);
  for (const SampleWorker& sample : workers) {
    v1::WorkerProgress* worker = progress.add_workers();
    worker->set_rank(static_cast<std::uint32_t>(progress.workers_size()) - 1);
    worker->set_node("local");
    worker->set_device("cpu:" + std::to_string(worker->rank()));
    worker->set_samples_per_second(sample.samples_per_second);
    worker->set_batch_size(sample.batch_size);
    worker->set_samples(sample.samples);
    worker->set_idle_ratio(sample.idle_ratio);
    worker->set_emulated_speed(sample.emulated_speed);
    progress.mutable_plan()->add_batch_sizes(sample.batch_size);
  }
  progress.mutable_plan()->set_version(1);
  return progress;
}

inline std::vector<SampleWorker> UnequalWorkers() {
  return {{401.2, 47, 30000, 0.02, 1}, {100.3, 12, 7500, 0.31, 0.25}};
}

inline v1::JobEvent ProgressEvent(const v1::JobProgress& progress) {
  v1::JobEvent event;
  *event.mutable_progress() = progress;
  return event;
}

inline v1::JobEvent StateEvent(v1::JobState state, const std::string& reason) {
  v1::JobEvent event;
  event.mutable_job()->set_name("projects/default/jobs/demo-1");
  event.mutable_job()->set_state(state);
  event.mutable_job()->set_state_reason(reason);
  return event;
}

inline v1::JobEvent DecisionEvent(std::uint64_t version,
                                  const std::vector<std::uint32_t>& batch_sizes,
                                  const std::string& reason) {
  v1::JobEvent event;
  event.mutable_decision()->set_version(version);
  event.mutable_decision()->set_reason(reason);
  for (const std::uint32_t size : batch_sizes) event.mutable_decision()->add_batch_sizes(size);
  return event;
}

// Ended well, with one file.
inline v1::Job FinishedJob() {
  v1::Job job = StateEvent(v1::JOB_STATE_SUCCEEDED, "60 s are over").job();
  *job.mutable_progress() = SampleProgress(UnequalWorkers());
  v1::JobResult* result = job.mutable_result();
  result->set_train_loss(1.8123);
  result->set_rounds(812);
  result->set_samples(37500);
  result->set_epochs(1);
  result->mutable_train_time()->set_seconds(60);
  result->set_stop_reason("60 s are over");
  result->set_utilisation(0.951);
  result->mutable_validation()->set_loss(1.9011);
  result->mutable_validation()->set_accuracy(0.451);
  result->mutable_validation()->set_samples(1000);
  v1::Artifact* artifact = result->add_artifacts();
  artifact->set_path("model.pt");
  artifact->set_size_bytes(1258291);
  return job;
}

}  // namespace tactus::client
