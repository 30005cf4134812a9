// The fields of the core's events and actions, by name; see base/fields.h.

#pragma once

#include "base/fields.h"
#include "coordinator/job/actions.h"
#include "coordinator/job/record_fields.h"

namespace tactus::job {

// ---- Events

void Fields(auto& archive, Of<JobSubmitted> auto& event) { archive("record", event.record); }

void Fields(auto& archive, Of<JobCancelled> auto& event) {
  archive("job", event.job);
  archive("reason", event.reason);
  archive("discard", event.discard);
  archive("grace", event.grace);
}

void Fields(auto& archive, Of<NodeJoined> auto& event) {
  archive("node", event.node);
  archive("devices", event.devices);
  archive("same_incarnation", event.same_incarnation);
  archive("running_workers", event.running_workers);
  archive("traits", event.traits);
}

void Fields(auto& archive, Of<NodeLost> auto& event) {
  archive("node", event.node);
  archive("reason", event.reason);
}

void Fields(auto& archive, Of<WorkerSaid> auto& event) {
  archive("worker", event.worker);
  archive("message", event.message);
}

void Fields(auto& archive, Of<WorkerExited> auto& event) {
  archive("worker", event.worker);
  archive("exit_code", event.exit_code);
  archive("signal", event.signal);
  archive("log_tail", event.log_tail);
}

void Fields(auto& archive, Of<ArtifactStored> auto& event) {
  archive("job", event.job);
  archive("artifact", event.artifact);
}

void Fields(auto&, Of<Ticked> auto&) {}

void Fields(auto& archive, Of<JobUpdated> auto& event) {
  archive("job", event.job);
  archive("spec", event.spec);
  archive("settings", event.settings);
  archive("labels", event.labels);
  archive("needs_restart", event.needs_restart);
}

void Fields(auto& archive, Of<JobPaused> auto& event) { archive("job", event.job); }

void Fields(auto& archive, Of<JobResumed> auto& event) { archive("job", event.job); }

void Fields(auto& archive, Of<NodeMarked> auto& event) { archive("node", event.node); }

void Fields(auto& archive, Of<DeviceFaultsChanged> auto& event) {
  archive("node", event.node);
  archive("faults", event.faults);
}

// ---- Actions

void Fields(auto& archive, Of<PersistJob> auto& action) { archive("record", action.record); }

void Fields(auto& archive, Of<PersistNode> auto& action) { archive("node", action.node); }

void Fields(auto& archive, Of<PersistRound> auto& action) { archive("round", action.round); }

void Fields(auto& archive, Of<PersistDecision> auto& action) {
  archive("job", action.job);
  archive("decision", action.decision);
}

void Fields(auto& archive, Of<StartWorker> auto& action) {
  archive("node", action.node);
  archive("worker", action.worker);
  archive("job", action.job);
  archive("job_name", action.job_name);
  archive("spec", action.spec);
  archive("device", action.device);
  archive("checkpoint", action.checkpoint);
}

void Fields(auto& archive, Of<SendToWorker> auto& action) {
  archive("node", action.node);
  archive("worker", action.worker);
  archive("message", action.message);
}

void Fields(auto& archive, Of<StopWorker> auto& action) {
  archive("node", action.node);
  archive("worker", action.worker);
  archive("grace", action.grace);
}

void Fields(auto& archive, Of<PublishJob> auto& action) { archive("record", action.record); }

void Fields(auto& archive, Of<PublishProgress> auto& action) {
  archive("job", action.job);
  archive("progress", action.progress);
}

void Fields(auto& archive, Of<PublishDecision> auto& action) {
  archive("job", action.job);
  archive("plan", action.plan);
}

void Fields(auto& archive, Of<WakeAt> auto& action) { archive("time", action.time); }

}  // namespace tactus::job

namespace tactus {

template <>
inline constexpr const char* kKind<job::JobSubmitted> = "job_submitted";
template <>
inline constexpr const char* kKind<job::JobCancelled> = "job_cancelled";
template <>
inline constexpr const char* kKind<job::NodeJoined> = "node_joined";
template <>
inline constexpr const char* kKind<job::NodeLost> = "node_lost";
template <>
inline constexpr const char* kKind<job::WorkerSaid> = "worker_said";
template <>
inline constexpr const char* kKind<job::WorkerExited> = "worker_exited";
template <>
inline constexpr const char* kKind<job::ArtifactStored> = "artifact_stored";
template <>
inline constexpr const char* kKind<job::Ticked> = "ticked";
template <>
inline constexpr const char* kKind<job::JobUpdated> = "job_updated";
template <>
inline constexpr const char* kKind<job::JobPaused> = "job_paused";
template <>
inline constexpr const char* kKind<job::JobResumed> = "job_resumed";
template <>
inline constexpr const char* kKind<job::NodeMarked> = "node_marked";
template <>
inline constexpr const char* kKind<job::DeviceFaultsChanged> = "device_faults_changed";

template <>
inline constexpr const char* kKind<job::PersistJob> = "persist_job";
template <>
inline constexpr const char* kKind<job::PersistNode> = "persist_node";
template <>
inline constexpr const char* kKind<job::PersistRound> = "persist_round";
template <>
inline constexpr const char* kKind<job::PersistDecision> = "persist_decision";
template <>
inline constexpr const char* kKind<job::StartWorker> = "start_worker";
template <>
inline constexpr const char* kKind<job::SendToWorker> = "send_to_worker";
template <>
inline constexpr const char* kKind<job::StopWorker> = "stop_worker";
template <>
inline constexpr const char* kKind<job::PublishJob> = "publish_job";
template <>
inline constexpr const char* kKind<job::PublishProgress> = "publish_progress";
template <>
inline constexpr const char* kKind<job::PublishDecision> = "publish_decision";
template <>
inline constexpr const char* kKind<job::WakeAt> = "wake_at";

}  // namespace tactus
