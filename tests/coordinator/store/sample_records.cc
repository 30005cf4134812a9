#include "tests/coordinator/store/sample_records.h"

#include <gtest/gtest.h>

#include <string>

namespace tactus::store {
namespace {

// Holds a zero byte and is not UTF-8.
std::string Binary(const std::string& text) { return text + std::string("\x00\xff\xfe\x80", 4); }

job::JobSettings FullSettings() {
  return {.name = "shakespeare",
          .workers_min = 2,
          .workers_max = 8,
          .device = job::DeviceKind::kCuda,
          .selector = {{"zone", "a"}},
          .tolerations = {"spot", "owner=vision"},
          .priority = -7,
          .adapt = {.batch_policy = "abs",
                    .batch = {.per_worker = 17, .batch_min = 3, .batch_max = 4096},
                    .synchronization = {.policy = "delayed",
                                        .period = 5,
                                        .period_max = 64,
                                        .interval_seconds = 30.5,
                                        .loss_floor = 0.25,
                                        .steps_max = 77},
                    .aggregation_policy = "adasum",
                    .learning_rate_policy = "sqrt",
                    .encoding_policy = "bfloat16",
                    .base_batch = 34,
                    .optimizer = "lamb",
                    .momentum = 0.5,
                    .frozen = {policies::Axis::kBatch}},
          .kind = "0123456789abcdef",
          .stop_train_loss = 1.8,
          .stop_epochs = 20,
          .stop_time = Seconds(1800.5),
          .stop_rounds = 1ull << 40};
}

job::Progress FullProgress() {
  return {
      .rounds = 100,
      .epoch = 3,
      .epoch_consumed = 77,
      .epoch_samples = 1000,
      .samples = 3077,
      .loss = 0.1,
      .samples_per_second = 123.456,
      .elapsed_seconds = 25.25,
      .eta_seconds = 11.5,
      .validation = {.newest = job::ValidationRecord{.rounds = 90, .loss = 1.5, .samples = 7},
                     .best = job::ValidationRecord{.rounds = 80, .loss = 1.25, .seconds = 0.5},
                     .count = 9,
                     .seconds = 4.5,
                     .since_best = 1},
      .plan = {.version = 9, .batch_sizes = {7, 5, 3, 1}, .reason = Binary("worker 3")},
      .workers = {{.batch_size = 7, .samples = 2000, .samples_per_second = 88, .idle_ratio = 0.1},
                  {.batch_size = 5, .samples = 1077, .samples_per_second = 44, .idle_ratio = 0.2}}};
}

job::ResultRecord FullResult() {
  return {.artifacts = {{.path = "model.pt", .size_bytes = 1ull << 33, .sha256 = HashOf('b')},
                        {.path = "summary.json", .size_bytes = 12}},
          .validation_loss = 1.5,
          .validation_accuracy = 0.75,
          .validation_samples = 10000,
          .validation_rounds = 90,
          .train_loss = 1.25,
          .rounds = 100,
          .samples = 3077,
          .epochs = 3,
          .train_seconds = 25,
          .stop_reason = "20 epochs",
          .utilisation = 0.9};
}

job::EndingRecord FullEnding() {
  return {.finished = {{.rank = 1,
                        .message = {.reason = "20 epochs",
                                    .rounds = 100,
                                    .samples = 1500,
                                    .samples_global = 3077,
                                    .epochs = 3,
                                    .train_loss = 1.25,
                                    .train_seconds = 25,
                                    .files = {"model.pt"},
                                    .parameters_hash = ~0ull,
                                    .suspended = true}}},
          .artifacts = {{.path = "model.pt", .size_bytes = 5, .sha256 = HashOf('c')}},
          .evaluated = job::EvaluatedMessage{.loss = 1.5, .accuracy = 0.5, .samples = 9}};
}

void ExpectEqual(const policies::PlannerOptions& found, const policies::PlannerOptions& expected) {
  EXPECT_EQ(found.batch_policy, expected.batch_policy);
  EXPECT_EQ(found.batch.per_worker, expected.batch.per_worker);
  EXPECT_EQ(found.batch.batch_min, expected.batch.batch_min);
  EXPECT_EQ(found.batch.batch_max, expected.batch.batch_max);
  EXPECT_EQ(found.synchronization.policy, expected.synchronization.policy);
  EXPECT_EQ(found.synchronization.period, expected.synchronization.period);
  EXPECT_EQ(found.synchronization.period_max, expected.synchronization.period_max);
  EXPECT_EQ(found.synchronization.interval_seconds, expected.synchronization.interval_seconds);
  EXPECT_EQ(found.synchronization.loss_floor, expected.synchronization.loss_floor);
  EXPECT_EQ(found.synchronization.steps_max, expected.synchronization.steps_max);
  EXPECT_EQ(found.aggregation_policy, expected.aggregation_policy);
  EXPECT_EQ(found.learning_rate_policy, expected.learning_rate_policy);
  EXPECT_EQ(found.encoding_policy, expected.encoding_policy);
  EXPECT_EQ(found.base_batch, expected.base_batch);
  EXPECT_EQ(found.optimizer, expected.optimizer);
  EXPECT_EQ(found.momentum, expected.momentum);
  EXPECT_EQ(found.frozen, expected.frozen);
}

void ExpectEqual(const job::JobSettings& found, const job::JobSettings& expected) {
  EXPECT_EQ(found.name, expected.name);
  EXPECT_EQ(found.workers_min, expected.workers_min);
  EXPECT_EQ(found.workers_max, expected.workers_max);
  EXPECT_EQ(found.device, expected.device);
  EXPECT_EQ(found.selector, expected.selector);
  EXPECT_EQ(found.tolerations, expected.tolerations);
  EXPECT_EQ(found.priority, expected.priority);
  ExpectEqual(found.adapt, expected.adapt);
  EXPECT_EQ(found.kind, expected.kind);
  EXPECT_EQ(found.stop_train_loss, expected.stop_train_loss);
  EXPECT_EQ(found.stop_epochs, expected.stop_epochs);
  EXPECT_EQ(found.stop_time, expected.stop_time);
  EXPECT_EQ(found.stop_rounds, expected.stop_rounds);
}

void ExpectEqual(const job::ValidationProgress& found, const job::ValidationProgress& expected) {
  ASSERT_EQ(found.newest.has_value(), expected.newest.has_value());
  if (found.newest) {
    EXPECT_EQ(found.newest->rounds, expected.newest->rounds);
    EXPECT_EQ(found.newest->loss, expected.newest->loss);
    EXPECT_EQ(found.newest->samples, expected.newest->samples);
  }
  ASSERT_EQ(found.best.has_value(), expected.best.has_value());
  if (found.best) {
    EXPECT_EQ(found.best->rounds, expected.best->rounds);
    EXPECT_EQ(found.best->seconds, expected.best->seconds);
  }
  EXPECT_EQ(found.count, expected.count);
  EXPECT_EQ(found.seconds, expected.seconds);
  EXPECT_EQ(found.since_best, expected.since_best);
}

void ExpectEqual(const job::Progress& found, const job::Progress& expected) {
  EXPECT_EQ(found.rounds, expected.rounds);
  EXPECT_EQ(found.epoch, expected.epoch);
  EXPECT_EQ(found.epoch_consumed, expected.epoch_consumed);
  EXPECT_EQ(found.epoch_samples, expected.epoch_samples);
  EXPECT_EQ(found.samples, expected.samples);
  EXPECT_EQ(found.loss, expected.loss);
  EXPECT_EQ(found.samples_per_second, expected.samples_per_second);
  EXPECT_EQ(found.elapsed_seconds, expected.elapsed_seconds);
  EXPECT_EQ(found.eta_seconds, expected.eta_seconds);
  ExpectEqual(found.validation, expected.validation);
  EXPECT_EQ(found.plan, expected.plan);
  ASSERT_EQ(found.workers.size(), expected.workers.size());
  for (std::size_t i = 0; i < found.workers.size(); ++i) {
    EXPECT_EQ(found.workers[i].batch_size, expected.workers[i].batch_size);
    EXPECT_EQ(found.workers[i].samples, expected.workers[i].samples);
    EXPECT_EQ(found.workers[i].samples_per_second, expected.workers[i].samples_per_second);
    EXPECT_EQ(found.workers[i].idle_ratio, expected.workers[i].idle_ratio);
  }
}

void ExpectEqual(const std::vector<job::ArtifactRecord>& found,
                 const std::vector<job::ArtifactRecord>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].path, expected[i].path);
    EXPECT_EQ(found[i].size_bytes, expected[i].size_bytes);
    EXPECT_EQ(found[i].sha256, expected[i].sha256);
  }
}

void ExpectEqual(const job::ResultRecord& found, const job::ResultRecord& expected) {
  ExpectEqual(found.artifacts, expected.artifacts);
  EXPECT_EQ(found.validation_loss, expected.validation_loss);
  EXPECT_EQ(found.validation_accuracy, expected.validation_accuracy);
  EXPECT_EQ(found.validation_samples, expected.validation_samples);
  EXPECT_EQ(found.validation_rounds, expected.validation_rounds);
  EXPECT_EQ(found.train_loss, expected.train_loss);
  EXPECT_EQ(found.rounds, expected.rounds);
  EXPECT_EQ(found.samples, expected.samples);
  EXPECT_EQ(found.epochs, expected.epochs);
  EXPECT_EQ(found.train_seconds, expected.train_seconds);
  EXPECT_EQ(found.stop_reason, expected.stop_reason);
  EXPECT_EQ(found.utilisation, expected.utilisation);
}

void ExpectEqualMembers(const job::JobRecord& found, const job::JobRecord& expected) {
  ASSERT_EQ(found.members.size(), expected.members.size());
  for (std::size_t i = 0; i < found.members.size(); ++i) {
    EXPECT_EQ(found.members[i].worker, expected.members[i].worker);
    EXPECT_EQ(found.members[i].node, expected.members[i].node);
    EXPECT_EQ(found.members[i].device, expected.members[i].device);
    EXPECT_EQ(found.members[i].emulated_speed, expected.members[i].emulated_speed);
    EXPECT_EQ(found.members[i].model, expected.members[i].model);
  }
}

void ExpectEqual(const job::EndingRecord& found, const job::EndingRecord& expected) {
  ASSERT_EQ(found.finished.size(), expected.finished.size());
  for (std::size_t i = 0; i < found.finished.size(); ++i) {
    EXPECT_EQ(found.finished[i].rank, expected.finished[i].rank);
    EXPECT_EQ(found.finished[i].message.reason, expected.finished[i].message.reason);
    EXPECT_EQ(found.finished[i].message.files, expected.finished[i].message.files);
    EXPECT_EQ(found.finished[i].message.suspended, expected.finished[i].message.suspended);
  }
  ExpectEqual(found.artifacts, expected.artifacts);
  ASSERT_EQ(found.evaluated.has_value(), expected.evaluated.has_value());
  if (found.evaluated) {
    EXPECT_EQ(found.evaluated->loss, expected.evaluated->loss);
  }
}

void ExpectEqualSuspensions(const job::JobRecord& found, const job::JobRecord& expected) {
  ASSERT_EQ(found.suspension.has_value(), expected.suspension.has_value());
  if (found.suspension) {
    EXPECT_EQ(found.suspension->pause, expected.suspension->pause);
    EXPECT_EQ(found.suspension->reason, expected.suspension->reason);
    EXPECT_EQ(found.suspension->secured, expected.suspension->secured);
  }
  ASSERT_EQ(found.checkpoint.has_value(), expected.checkpoint.has_value());
  if (found.checkpoint) {
    EXPECT_EQ(found.checkpoint->sha256, expected.checkpoint->sha256);
    EXPECT_EQ(found.checkpoint->size_bytes, expected.checkpoint->size_bytes);
    EXPECT_EQ(found.checkpoint->rounds, expected.checkpoint->rounds);
  }
  ExpectEqual(found.snapshots, expected.snapshots);
  EXPECT_EQ(found.elapsed_before_seconds, expected.elapsed_before_seconds);
  EXPECT_EQ(found.group_start_time, expected.group_start_time);
  EXPECT_EQ(found.suspensions, expected.suspensions);
  EXPECT_EQ(found.attempts.size(), expected.attempts.size());
  EXPECT_EQ(found.fruitless, expected.fruitless);
}

}  // namespace

std::string HashOf(char digit) { return std::string(64, digit); }

job::JobRecord FullJob() {
  return {
      .id = JobId{3},
      .name = "shakespeare-3",
      .uid = "1b4e28ba-2fa1-11d2-883f-0016d3cca427",
      .request_id = "6fa459ea-ee8a-3ca4-894e-db77e160355e",
      .spec = Binary("spec"),
      .settings = FullSettings(),
      .labels = {{"team", "a"}, {"", "empty"}},
      .state = job::JobState::kFailed,
      .state_reason = Binary("worker 2 said"),
      .error_field = "data.text",
      .revision = 42,
      .create_time = 1'700'000'000'123'456'789,
      .start_time = 1'700'000'001'000'000'000,
      .end_time = 1'700'000'002'000'000'000,
      .update_time = 1'700'000'003'000'000'000,
      .generation = 5,
      .members = {{.worker = WorkerId{11}, .node = "a", .device = "cpu:0", .emulated_speed = 0.5},
                  {.worker = WorkerId{12}, .node = "b", .device = "cuda:1"}},
      .progress = FullProgress(),
      .result = FullResult(),
      .newest_plan = {.version = 9, .batch_sizes = {3, 0, 5}, .reason = "speeds changed"},
      .cancel_reason = "by hand",
      .discard = true,
      .cancel_grace = std::chrono::seconds(7),
      .ending = FullEnding(),
      .snapshots = {{.path = "snapshots/1.000.safetensors",
                     .size_bytes = 11,
                     .sha256 = HashOf('0')}},
      .suspension = job::Suspension{.pause = true, .reason = Binary("by hand"), .secured = true},
      .checkpoint = job::CheckpointRecord{.sha256 = HashOf('a'), .size_bytes = 77, .rounds = 99},
      .elapsed_before_seconds = 12.5,
      .group_start_time = 1'700'000'001'500'000'000,
      .suspensions = 3};
}

job::JobRecord SmallJob(std::uint64_t id) {
  job::JobRecord record;
  record.id = JobId{id};
  record.name = "job-" + std::to_string(id);
  record.spec = "spec";
  return record;
}

job::RoundRecord Round(std::uint64_t job, std::uint64_t round) {
  return {.job = JobId{job},
          .round = round,
          .epoch = 2,
          .samples = 16,
          .loss = 0.1 * static_cast<double>(round),
          .seconds = 0.25,
          .plan_version = 4,
          .worker_samples = {7, 5, 3, 1},
          .worker_compute_seconds = {0.2, 0.1, 0.05, 0.025},
          .worker_blocked_seconds = {0.01, 0.11, 0.16, 0.185},
          .bytes = 1ull << 33,
          .steps = 6,
          .learning_rate = 0.05,
          .gain = 1.5,
          .progress = 12.5,
          .orthogonality = 0.75,
          .transfer_seconds = 0.125,
          .worker_update_seconds = {0.004, 0.003, 0.002, 0.001}};
}

job::DecisionRecord DecisionOf(std::uint64_t job, std::uint64_t plan, policies::Axis axis) {
  return {.job = JobId{job},
          .decision = {.plan_version = plan,
                       .axis = axis,
                       .round = 1ull << 40,
                       .seconds = 61.5,
                       .from = "every_step",
                       .to = "periodic 8",
                       .inputs = {{.name = "transfer of a round", .value = 0.41, .unit = "s"},
                                  {.name = "ratio", .value = 2.5}},
                       .metric = "samples/s",
                       .predicted_gain = 0.25,
                       .alternatives = {{.value = "delayed", .predicted_gain = 0.1}},
                       .reason = Binary("the transfer takes longer"),
                       .measured_gain = 0.2}};
}

void ExpectEqual(const job::JobRecord& found, const job::JobRecord& expected) {
  EXPECT_EQ(found.id, expected.id);
  EXPECT_EQ(found.name, expected.name);
  EXPECT_EQ(found.uid, expected.uid);
  EXPECT_EQ(found.request_id, expected.request_id);
  EXPECT_EQ(found.spec, expected.spec);
  ExpectEqual(found.settings, expected.settings);
  EXPECT_EQ(found.labels, expected.labels);
  EXPECT_EQ(found.state, expected.state);
  EXPECT_EQ(found.state_reason, expected.state_reason);
  EXPECT_EQ(found.error_field, expected.error_field);
  EXPECT_EQ(found.revision, expected.revision);
  EXPECT_EQ(found.create_time, expected.create_time);
  EXPECT_EQ(found.start_time, expected.start_time);
  EXPECT_EQ(found.end_time, expected.end_time);
  EXPECT_EQ(found.update_time, expected.update_time);
  EXPECT_EQ(found.generation, expected.generation);
  ExpectEqualMembers(found, expected);
  ExpectEqual(found.progress, expected.progress);
  EXPECT_EQ(found.newest_plan, expected.newest_plan);
  EXPECT_EQ(found.cancel_reason, expected.cancel_reason);
  EXPECT_EQ(found.discard, expected.discard);
  EXPECT_EQ(found.cancel_grace, expected.cancel_grace);
  ExpectEqual(found.ending, expected.ending);
  ExpectEqualSuspensions(found, expected);
  ASSERT_EQ(found.result.has_value(), expected.result.has_value());
  if (found.result) ExpectEqual(*found.result, *expected.result);
}

void ExpectEqual(const job::RoundRecord& found, const job::RoundRecord& expected) {
  EXPECT_EQ(found.job, expected.job);
  EXPECT_EQ(found.round, expected.round);
  EXPECT_EQ(found.epoch, expected.epoch);
  EXPECT_EQ(found.samples, expected.samples);
  EXPECT_EQ(found.loss, expected.loss);
  EXPECT_EQ(found.seconds, expected.seconds);
  EXPECT_EQ(found.plan_version, expected.plan_version);
  EXPECT_EQ(found.worker_samples, expected.worker_samples);
  EXPECT_EQ(found.worker_compute_seconds, expected.worker_compute_seconds);
  EXPECT_EQ(found.worker_blocked_seconds, expected.worker_blocked_seconds);
  EXPECT_EQ(found.bytes, expected.bytes);
  EXPECT_EQ(found.steps, expected.steps);
  EXPECT_EQ(found.learning_rate, expected.learning_rate);
  EXPECT_EQ(found.gain, expected.gain);
  EXPECT_EQ(found.progress, expected.progress);
  EXPECT_EQ(found.orthogonality, expected.orthogonality);
  EXPECT_EQ(found.transfer_seconds, expected.transfer_seconds);
  EXPECT_EQ(found.worker_update_seconds, expected.worker_update_seconds);
}

}  // namespace tactus::store
