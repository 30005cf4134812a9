// The fields of records, by name; see base/fields.h.

#pragma once

#include "base/fields.h"
#include "coordinator/job/records.h"
#include "policies/decision_fields.h"
#include "policies/plan_fields.h"
#include "policies/planner_fields.h"
#include "protocol/worker_message_fields.h"

namespace tactus {

template <>
inline constexpr int kEnumMax<job::JobState> = static_cast<int>(job::JobState::kPaused);
template <>
inline constexpr int kEnumMax<job::DeviceKind> = static_cast<int>(job::DeviceKind::kAny);

}  // namespace tactus

namespace tactus::job {

void Fields(auto& archive, Of<JobSettings> auto& settings) {
  archive("name", settings.name);
  archive("workers_min", settings.workers_min);
  archive("workers_max", settings.workers_max);
  archive("spares", settings.spares);
  archive("program", settings.program);
  archive("device", settings.device);
  archive("selector", settings.selector);
  archive("tolerations", settings.tolerations);
  archive("priority", settings.priority);
  archive("retries", settings.retries);
  archive("checkpoints_kept", settings.checkpoints_kept);
  archive("hold", settings.hold);
  archive("adapt", settings.adapt);
  archive("kind", settings.kind);
  archive("shape", settings.shape);
  archive("stop_train_loss", settings.stop_train_loss);
  archive("stop_epochs", settings.stop_epochs);
  archive("stop_time", settings.stop_time);
  archive("stop_rounds", settings.stop_rounds);
  archive("encrypted", settings.encrypted);
  archive("mesh_devices", settings.mesh_devices);
  archive("mesh", settings.mesh);
}

void Fields(auto& archive, Of<DeviceRecord> auto& device) {
  archive("name", device.name);
  archive("kind", device.kind);
  archive("model", device.model);
  archive("emulated_speed", device.emulated_speed);
  archive("uuid", device.uuid);
  archive("memory_bytes", device.memory_bytes);
  archive("fault", device.fault);
}

void Fields(auto& archive, Of<NodeTraits> auto& traits) {
  archive("labels", traits.labels);
  archive("taints", traits.taints);
  archive("arrays", traits.arrays);
  archive("worker_memory_bytes", traits.worker_memory_bytes);
}

void Fields(auto& archive, Of<MemoryRecord> auto& memory) {
  archive("job", memory.job);
  Bytes(archive, "memory", memory.memory);
}

void Fields(auto& archive, Of<PriorRecord> auto& prior) {
  archive("key", prior.key);
  archive("number", prior.number);
  Bytes(archive, "prior", prior.prior);
}

void Fields(auto& archive, Of<NodeRecord> auto& node) {
  archive("name", node.name);
  archive("cordoned", node.cordoned);
  archive("draining", node.draining);
}

void Fields(auto& archive, Of<MemberRecord> auto& member) {
  archive("worker", member.worker);
  archive("node", member.node);
  archive("device", member.device);
  archive("emulated_speed", member.emulated_speed);
  archive("kind", member.kind);
  archive("uuid", member.uuid);
  archive("incarnation", member.incarnation);
  archive("model", member.model);
  archive("nccl_version", member.nccl_version);
  archive("array", member.array);
}

void Fields(auto& archive, Of<TransportRecord> auto& transport) {
  archive("kind", transport.kind);
  archive("reason", transport.reason);
}

void Fields(auto& archive, Of<GroupRecord> auto& group) {
  archive("generation", group.generation);
  archive("first_round", group.first_round);
  archive("members", group.members);
  archive("transport", group.transport);
  archive("encodings", group.encodings);
  archive("first_plan", group.first_plan);
  archive("last_plan", group.last_plan);
  archive("mesh", group.mesh);
}

void Fields(auto& archive, Of<ArtifactRecord> auto& artifact) {
  archive("path", artifact.path);
  archive("size_bytes", artifact.size_bytes);
  archive("sha256", artifact.sha256);
}

void Fields(auto& archive, Of<CheckpointRecord> auto& checkpoint) {
  archive("sha256", checkpoint.sha256);
  archive("size_bytes", checkpoint.size_bytes);
  archive("rounds", checkpoint.rounds);
  archive("epoch", checkpoint.epoch);
  archive("epoch_consumed", checkpoint.epoch_consumed);
  archive("samples", checkpoint.samples);
  archive("loss", checkpoint.loss);
  archive("elapsed_seconds", checkpoint.elapsed_seconds);
  archive("time", checkpoint.time);
}

void Fields(auto& archive, Of<Rollback> auto& rollback) {
  archive("checkpoint", rollback.checkpoint);
  archive("skip_samples", rollback.skip_samples);
  archive("reason", rollback.reason);
}

void Fields(auto& archive, Of<Suspension> auto& suspension) {
  archive("pause", suspension.pause);
  archive("reason", suspension.reason);
  archive("secured", suspension.secured);
  archive("lost", suspension.lost);
}

void Fields(auto& archive, Of<AttemptRecord> auto& attempt) {
  archive("number", attempt.number);
  archive("start_time", attempt.start_time);
  archive("end_time", attempt.end_time);
  archive("first_round", attempt.first_round);
  archive("first_samples", attempt.first_samples);
  archive("first_trained", attempt.first_trained);
  archive("rounds", attempt.rounds);
  archive("samples", attempt.samples);
  archive("trained", attempt.trained);
  archive("nodes", attempt.nodes);
  archive("workers", attempt.workers);
  archive("reason", attempt.reason);
}

void Fields(auto& archive, Of<FinishedMember> auto& member) {
  archive("rank", member.rank);
  archive("message", member.message);
}

void Fields(auto& archive, Of<LostMember> auto& member) {
  archive("rank", member.rank);
  archive("message", member.message);
}

void Fields(auto& archive, Of<EndingRecord> auto& ending) {
  archive("finished", ending.finished);
  archive("artifacts", ending.artifacts);
  archive("evaluated", ending.evaluated);
  archive("excused", ending.excused);
}

void Fields(auto& archive, Of<ResultRecord> auto& result) {
  archive("artifacts", result.artifacts);
  archive("validation_loss", result.validation_loss);
  archive("validation_accuracy", result.validation_accuracy);
  archive("validation_samples", result.validation_samples);
  archive("validation_rounds", result.validation_rounds);
  archive("train_loss", result.train_loss);
  archive("rounds", result.rounds);
  archive("samples", result.samples);
  archive("epochs", result.epochs);
  archive("train_seconds", result.train_seconds);
  archive("stop_reason", result.stop_reason);
  archive("utilisation", result.utilisation);
}

void Fields(auto& archive, Of<ValidationRecord> auto& validation) {
  archive("job", validation.job);
  archive("rounds", validation.rounds);
  archive("epoch", validation.epoch);
  archive("trained_samples", validation.trained_samples);
  archive("train_seconds", validation.train_seconds);
  archive("loss", validation.loss);
  archive("accuracy", validation.accuracy);
  archive("samples", validation.samples);
  archive("seconds", validation.seconds);
}

void Fields(auto& archive, Of<ValidationProgress> auto& progress) {
  archive("newest", progress.newest);
  archive("best", progress.best);
  archive("count", progress.count);
  archive("seconds", progress.seconds);
  archive("since_best", progress.since_best);
}

void Fields(auto& archive, Of<WorkerProgress> auto& worker) {
  archive("batch_size", worker.batch_size);
  archive("samples", worker.samples);
  archive("samples_per_second", worker.samples_per_second);
  archive("idle_ratio", worker.idle_ratio);
  archive("data_ratio", worker.data_ratio);
  archive("link_bytes_per_second", worker.link_bytes_per_second);
}

void Fields(auto& archive, Of<Progress> auto& progress) {
  archive("rounds", progress.rounds);
  archive("epoch", progress.epoch);
  archive("epoch_consumed", progress.epoch_consumed);
  archive("epoch_samples", progress.epoch_samples);
  archive("samples", progress.samples);
  archive("skipped_rounds", progress.skipped_rounds);
  archive("repeated_passes", progress.repeated_passes);
  archive("unrecorded_rounds", progress.unrecorded_rounds);
  archive("loss", progress.loss);
  archive("samples_per_second", progress.samples_per_second);
  archive("elapsed_seconds", progress.elapsed_seconds);
  archive("eta_seconds", progress.eta_seconds);
  archive("long_round_seconds", progress.long_round_seconds);
  archive("validation", progress.validation);
  archive("plan", progress.plan);
  archive("workers", progress.workers);
}

void Fields(auto& archive, Of<JobRecord> auto& record) {
  archive("id", record.id);
  archive("name", record.name);
  archive("uid", record.uid);
  archive("request_id", record.request_id);
  archive("from", record.from);
  archive("owner", record.owner);
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
  archive("snapshots", record.snapshots);
  archive("suspension", record.suspension);
  archive("checkpoint", record.checkpoint);
  archive("former_checkpoints", record.former_checkpoints);
  archive("elapsed_before_seconds", record.elapsed_before_seconds);
  archive("group_start_time", record.group_start_time);
  archive("suspensions", record.suspensions);
  archive("attempts", record.attempts);
  archive("fruitless", record.fruitless);
  archive("fruitless_rounds", record.fruitless_rounds);
  archive("retry_time", record.retry_time);
  archive("regroups", record.regroups);
  archive("regroup_reason", record.regroup_reason);
  archive("rollback", record.rollback);
  archive("differences", record.differences);
  archive("difference_reason", record.difference_reason);
  archive("selections", record.selections);
  archive("selection", record.selection);
  archive("selection_seconds", record.selection_seconds);
  archive("resizes", record.resizes);
  archive("resize_reason", record.resize_reason);
  archive("loaded", record.loaded);
  archive("joiners", record.joiners);
  archive("lost", record.lost);
  archive("worker_ordinals", record.worker_ordinals);
  archive("reversal", record.reversal);
  archive("revert_requests", record.revert_requests);
  archive("members", record.members);
  archive("groups", record.groups);
  archive("progress", record.progress);
  archive("result", record.result);
}

void Fields(auto& archive, Of<RoundRecord> auto& round) {
  archive("job", round.job);
  archive("round", round.round);
  archive("epoch", round.epoch);
  archive("samples", round.samples);
  archive("loss", round.loss);
  archive("local_samples", round.local_samples);
  archive("local_loss", round.local_loss);
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

void Fields(auto& archive, Of<DecisionRecord> auto& record) {
  archive("job", record.job);
  archive("decision", record.decision);
}

}  // namespace tactus::job
