// The fields of plans, reports and records, by name; see coordinator/codec/archive.h.

#pragma once

#include "coordinator/codec/archive.h"
#include "coordinator/job/records.h"
#include "policies/plan.h"

namespace tactus::codec {

template <>
inline constexpr int kEnumMax<job::JobState> = static_cast<int>(job::JobState::kPaused);
template <>
inline constexpr int kEnumMax<job::DeviceKind> = static_cast<int>(job::DeviceKind::kCuda);
template <>
inline constexpr int kEnumMax<policies::Synchronization> =
    static_cast<int>(policies::Synchronization::kDelayed);
template <>
inline constexpr int kEnumMax<policies::Aggregation> =
    static_cast<int>(policies::Aggregation::kAdasum);
template <>
inline constexpr int kEnumMax<policies::LearningRateRule> =
    static_cast<int>(policies::LearningRateRule::kAdascale);
template <>
inline constexpr int kEnumMax<policies::Axis> = static_cast<int>(policies::Axis::kLearningRate);

void Fields(auto& archive, Of<policies::Plan> auto& plan) {
  archive("version", plan.version);
  archive("synchronization", plan.synchronization);
  archive("period", plan.period);
  archive("aggregation", plan.aggregation);
  archive("learning_rate_rule", plan.learning_rate_rule);
  archive("batch_sizes", plan.batch_sizes);
  archive("reason", plan.reason);
}

void Fields(auto& archive, Of<policies::Report> auto& report) {
  archive("round", report.round);
  archive("plan_version", report.plan_version);
  archive("rank", report.rank);
  archive("samples", report.samples);
  archive("loss_sum", report.loss_sum);
  archive("steps", report.steps);
  archive("compute_seconds", report.compute_seconds);
  archive("blocked_seconds", report.blocked_seconds);
  archive("transfer_seconds", report.transfer_seconds);
  archive("round_seconds", report.round_seconds);
  archive("update_seconds", report.update_seconds);
  archive("bytes_sent", report.bytes_sent);
  archive("gradient_norm2_local", report.gradient_norm2_local);
  archive("gradient_norm2_global", report.gradient_norm2_global);
  archive("samples_global", report.samples_global);
  archive("loss_mean_global", report.loss_mean_global);
  archive("nonfinite_members", report.nonfinite_members);
  archive("contributors", report.contributors);
  archive("samples_gradient_norm2", report.samples_gradient_norm2);
  archive("orthogonality", report.orthogonality);
  archive("learning_rate", report.learning_rate);
  archive("gain", report.gain);
  archive("progress", report.progress);
  archive("epoch", report.epoch);
  archive("epoch_consumed", report.epoch_consumed);
}

void Fields(auto& archive, Of<policies::Quantity> auto& quantity) {
  archive("name", quantity.name);
  archive("value", quantity.value);
  archive("unit", quantity.unit);
}

void Fields(auto& archive, Of<policies::Alternative> auto& alternative) {
  archive("value", alternative.value);
  archive("predicted_gain", alternative.predicted_gain);
}

void Fields(auto& archive, Of<policies::Decision> auto& decision) {
  archive("plan_version", decision.plan_version);
  archive("axis", decision.axis);
  archive("round", decision.round);
  archive("seconds", decision.seconds);
  archive("from", decision.from);
  archive("to", decision.to);
  archive("inputs", decision.inputs);
  archive("metric", decision.metric);
  archive("predicted_gain", decision.predicted_gain);
  archive("alternatives", decision.alternatives);
  archive("reason", decision.reason);
  archive("measured_gain", decision.measured_gain);
}

void Fields(auto& archive, Of<policies::BatchOptions> auto& batch) {
  archive("per_worker", batch.per_worker);
  archive("batch_min", batch.batch_min);
  archive("batch_max", batch.batch_max);
}

void Fields(auto& archive, Of<policies::SynchronizationOptions> auto& synchronization) {
  archive("policy", synchronization.policy);
  archive("period", synchronization.period);
  archive("period_max", synchronization.period_max);
  archive("interval_seconds", synchronization.interval_seconds);
  archive("loss_floor", synchronization.loss_floor);
  archive("steps_max", synchronization.steps_max);
}

void Fields(auto& archive, Of<policies::PlannerOptions> auto& adapt) {
  archive("batch_policy", adapt.batch_policy);
  archive("batch", adapt.batch);
  archive("synchronization", adapt.synchronization);
  archive("aggregation_policy", adapt.aggregation_policy);
  archive("learning_rate_policy", adapt.learning_rate_policy);
  archive("base_batch", adapt.base_batch);
  archive("optimizer", adapt.optimizer);
  archive("momentum", adapt.momentum);
  archive("frozen", adapt.frozen);
}

void Fields(auto& archive, Of<job::JobSettings> auto& settings) {
  archive("name", settings.name);
  archive("workers_min", settings.workers_min);
  archive("workers_max", settings.workers_max);
  archive("device", settings.device);
  archive("selector", settings.selector);
  archive("tolerations", settings.tolerations);
  archive("priority", settings.priority);
  archive("adapt", settings.adapt);
  archive("stop_train_loss", settings.stop_train_loss);
  archive("stop_epochs", settings.stop_epochs);
  archive("stop_time", settings.stop_time);
  archive("stop_rounds", settings.stop_rounds);
}

void Fields(auto& archive, Of<job::DeviceRecord> auto& device) {
  archive("name", device.name);
  archive("kind", device.kind);
  archive("model", device.model);
  archive("emulated_speed", device.emulated_speed);
  archive("uuid", device.uuid);
  archive("memory_bytes", device.memory_bytes);
  archive("fault", device.fault);
}

void Fields(auto& archive, Of<job::NodeTraits> auto& traits) {
  archive("labels", traits.labels);
  archive("taints", traits.taints);
}

void Fields(auto& archive, Of<job::NodeRecord> auto& node) {
  archive("name", node.name);
  archive("cordoned", node.cordoned);
  archive("draining", node.draining);
}

void Fields(auto& archive, Of<job::MemberRecord> auto& member) {
  archive("worker", member.worker);
  archive("node", member.node);
  archive("device", member.device);
  archive("emulated_speed", member.emulated_speed);
}

void Fields(auto& archive, Of<job::GroupRecord> auto& group) {
  archive("generation", group.generation);
  archive("first_round", group.first_round);
  archive("members", group.members);
}

void Fields(auto& archive, Of<job::ArtifactRecord> auto& artifact) {
  archive("path", artifact.path);
  archive("size_bytes", artifact.size_bytes);
  archive("sha256", artifact.sha256);
}

void Fields(auto& archive, Of<job::CheckpointRecord> auto& checkpoint) {
  archive("sha256", checkpoint.sha256);
  archive("size_bytes", checkpoint.size_bytes);
  archive("rounds", checkpoint.rounds);
}

void Fields(auto& archive, Of<job::Suspension> auto& suspension) {
  archive("pause", suspension.pause);
  archive("reason", suspension.reason);
  archive("secured", suspension.secured);
}

void Fields(auto& archive, Of<job::EvaluatedMessage> auto& message) {
  archive("loss", message.loss);
  archive("accuracy", message.accuracy);
  archive("samples", message.samples);
}

void Fields(auto& archive, Of<job::FinishedMessage> auto& message) {
  archive("reason", message.reason);
  archive("rounds", message.rounds);
  archive("samples", message.samples);
  archive("samples_global", message.samples_global);
  archive("epochs", message.epochs);
  archive("train_loss", message.train_loss);
  archive("train_seconds", message.train_seconds);
  archive("files", message.files);
  archive("parameters_hash", message.parameters_hash);
  archive("suspended", message.suspended);
}

void Fields(auto& archive, Of<job::FinishedMember> auto& member) {
  archive("rank", member.rank);
  archive("message", member.message);
}

void Fields(auto& archive, Of<job::EndingRecord> auto& ending) {
  archive("finished", ending.finished);
  archive("artifacts", ending.artifacts);
  archive("evaluated", ending.evaluated);
}

void Fields(auto& archive, Of<job::ResultRecord> auto& result) {
  archive("artifacts", result.artifacts);
  archive("validation_loss", result.validation_loss);
  archive("validation_accuracy", result.validation_accuracy);
  archive("validation_samples", result.validation_samples);
  archive("train_loss", result.train_loss);
  archive("rounds", result.rounds);
  archive("samples", result.samples);
  archive("epochs", result.epochs);
  archive("train_seconds", result.train_seconds);
  archive("stop_reason", result.stop_reason);
  archive("utilisation", result.utilisation);
}

void Fields(auto& archive, Of<job::WorkerProgress> auto& worker) {
  archive("batch_size", worker.batch_size);
  archive("samples", worker.samples);
  archive("samples_per_second", worker.samples_per_second);
  archive("idle_ratio", worker.idle_ratio);
}

void Fields(auto& archive, Of<job::Progress> auto& progress) {
  archive("rounds", progress.rounds);
  archive("epoch", progress.epoch);
  archive("epoch_consumed", progress.epoch_consumed);
  archive("epoch_samples", progress.epoch_samples);
  archive("samples", progress.samples);
  archive("loss", progress.loss);
  archive("samples_per_second", progress.samples_per_second);
  archive("elapsed_seconds", progress.elapsed_seconds);
  archive("eta_seconds", progress.eta_seconds);
  archive("plan", progress.plan);
  archive("workers", progress.workers);
}

void Fields(auto& archive, Of<job::JobRecord> auto& record) {
  archive("id", record.id);
  archive("name", record.name);
  archive("uid", record.uid);
  archive("request_id", record.request_id);
  archive("spec", record.spec);
  archive("settings", record.settings);
  archive("labels", record.labels);
  archive("state", record.state);
  archive("state_reason", record.state_reason);
  archive("error_field", record.error_field);
  archive("revision", record.revision);
  archive("announced", record.announced);
  archive("create_time", record.create_time);
  archive("start_time", record.start_time);
  archive("end_time", record.end_time);
  archive("update_time", record.update_time);
  archive("generation", record.generation);
  archive("newest_plan", record.newest_plan);
  archive("cancel_reason", record.cancel_reason);
  archive("discard", record.discard);
  archive("cancel_grace", record.cancel_grace);
  archive("ending", record.ending);
  archive("suspension", record.suspension);
  archive("checkpoint", record.checkpoint);
  archive("elapsed_before_seconds", record.elapsed_before_seconds);
  archive("group_start_time", record.group_start_time);
  archive("suspensions", record.suspensions);
  archive("members", record.members);
  archive("groups", record.groups);
  archive("progress", record.progress);
  archive("result", record.result);
}

void Fields(auto& archive, Of<job::RoundRecord> auto& round) {
  archive("job", round.job);
  archive("round", round.round);
  archive("epoch", round.epoch);
  archive("samples", round.samples);
  archive("loss", round.loss);
  archive("seconds", round.seconds);
  archive("plan_version", round.plan_version);
  archive("worker_samples", round.worker_samples);
  archive("worker_compute_seconds", round.worker_compute_seconds);
  archive("worker_blocked_seconds", round.worker_blocked_seconds);
  archive("bytes", round.bytes);
  archive("steps", round.steps);
  archive("learning_rate", round.learning_rate);
  archive("gain", round.gain);
  archive("progress", round.progress);
  archive("orthogonality", round.orthogonality);
  archive("transfer_seconds", round.transfer_seconds);
  archive("worker_update_seconds", round.worker_update_seconds);
}

void Fields(auto& archive, Of<job::DecisionRecord> auto& record) {
  archive("job", record.job);
  archive("decision", record.decision);
}

}  // namespace tactus::codec
