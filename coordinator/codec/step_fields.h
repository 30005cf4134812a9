// The fields of the core's events and actions, by name; see coordinator/codec/archive.h.

#pragma once

#include "coordinator/codec/archive.h"
#include "coordinator/codec/record_fields.h"
#include "coordinator/job/actions.h"

namespace tactus::codec {

// ---- Messages between a job and one of its workers

template <>
inline constexpr const char* kKind<job::GroupMessage> = "group";
void Fields(auto& archive, Of<job::GroupMessage> auto& message) {
  archive("generation", message.generation);
  archive("rank", message.rank);
  archive("size", message.size);
  archive("plan", message.plan);
  archive("nodes", message.nodes);
}

template <>
inline constexpr const char* kKind<job::PeersMessage> = "peers";
void Fields(auto& archive, Of<job::PeersMessage> auto& message) {
  archive("generation", message.generation);
  archive("endpoints", message.endpoints);
}

template <>
inline constexpr const char* kKind<policies::Plan> = "plan";

template <>
inline constexpr const char* kKind<job::StopMessage> = "stop";
void Fields(auto& archive, Of<job::StopMessage> auto& message) {
  archive("reason", message.reason);
  archive("discard", message.discard);
  archive("suspend", message.suspend);
}

template <>
inline constexpr const char* kKind<job::ReadyMessage> = "ready";
void Fields(auto& archive, Of<job::ReadyMessage> auto& message) {
  archive("parameters", message.parameters);
  archive("train_samples", message.train_samples);
  archive("validation_samples", message.validation_samples);
  archive("samples_per_second", message.samples_per_second);
}

template <>
inline constexpr const char* kKind<job::EndpointMessage> = "endpoint";
void Fields(auto& archive, Of<job::EndpointMessage> auto& message) {
  archive("generation", message.generation);
  archive("endpoint", message.endpoint);
}

template <>
inline constexpr const char* kKind<job::ReportMessage> = "report";
void Fields(auto& archive, Of<job::ReportMessage> auto& message) {
  archive("generation", message.generation);
  archive("report", message.report);
}

template <>
inline constexpr const char* kKind<job::EvaluatedMessage> = "evaluated";

template <>
inline constexpr const char* kKind<job::FinishedMessage> = "finished";

template <>
inline constexpr const char* kKind<job::FailedMessage> = "failed";
void Fields(auto& archive, Of<job::FailedMessage> auto& message) {
  archive("field", message.field);
  archive("message", message.message);
  archive("lost_generation", message.lost_generation);
}

// ---- Events

template <>
inline constexpr const char* kKind<job::JobSubmitted> = "job_submitted";
void Fields(auto& archive, Of<job::JobSubmitted> auto& event) { archive("record", event.record); }

template <>
inline constexpr const char* kKind<job::JobCancelled> = "job_cancelled";
void Fields(auto& archive, Of<job::JobCancelled> auto& event) {
  archive("job", event.job);
  archive("reason", event.reason);
  archive("discard", event.discard);
  archive("grace", event.grace);
}

template <>
inline constexpr const char* kKind<job::NodeJoined> = "node_joined";
void Fields(auto& archive, Of<job::NodeJoined> auto& event) {
  archive("node", event.node);
  archive("devices", event.devices);
  archive("same_incarnation", event.same_incarnation);
  archive("running_workers", event.running_workers);
  archive("traits", event.traits);
}

template <>
inline constexpr const char* kKind<job::NodeLost> = "node_lost";
void Fields(auto& archive, Of<job::NodeLost> auto& event) {
  archive("node", event.node);
  archive("reason", event.reason);
}

template <>
inline constexpr const char* kKind<job::WorkerSaid> = "worker_said";
void Fields(auto& archive, Of<job::WorkerSaid> auto& event) {
  archive("worker", event.worker);
  archive("message", event.message);
}

template <>
inline constexpr const char* kKind<job::WorkerExited> = "worker_exited";
void Fields(auto& archive, Of<job::WorkerExited> auto& event) {
  archive("worker", event.worker);
  archive("exit_code", event.exit_code);
  archive("signal", event.signal);
  archive("log_tail", event.log_tail);
}

template <>
inline constexpr const char* kKind<job::ArtifactStored> = "artifact_stored";
void Fields(auto& archive, Of<job::ArtifactStored> auto& event) {
  archive("job", event.job);
  archive("artifact", event.artifact);
}

template <>
inline constexpr const char* kKind<job::Ticked> = "ticked";
void Fields(auto&, Of<job::Ticked> auto&) {}

template <>
inline constexpr const char* kKind<job::JobUpdated> = "job_updated";
void Fields(auto& archive, Of<job::JobUpdated> auto& event) {
  archive("job", event.job);
  archive("spec", event.spec);
  archive("settings", event.settings);
  archive("labels", event.labels);
  archive("needs_restart", event.needs_restart);
}

template <>
inline constexpr const char* kKind<job::JobPaused> = "job_paused";
void Fields(auto& archive, Of<job::JobPaused> auto& event) { archive("job", event.job); }

template <>
inline constexpr const char* kKind<job::JobResumed> = "job_resumed";
void Fields(auto& archive, Of<job::JobResumed> auto& event) { archive("job", event.job); }

template <>
inline constexpr const char* kKind<job::NodeMarked> = "node_marked";
void Fields(auto& archive, Of<job::NodeMarked> auto& event) { archive("node", event.node); }

template <>
inline constexpr const char* kKind<job::DeviceFaultsChanged> = "device_faults_changed";
void Fields(auto& archive, Of<job::DeviceFaultsChanged> auto& event) {
  archive("node", event.node);
  archive("faults", event.faults);
}

// ---- Actions

template <>
inline constexpr const char* kKind<job::PersistJob> = "persist_job";
void Fields(auto& archive, Of<job::PersistJob> auto& action) { archive("record", action.record); }

template <>
inline constexpr const char* kKind<job::PersistNode> = "persist_node";
void Fields(auto& archive, Of<job::PersistNode> auto& action) { archive("node", action.node); }

template <>
inline constexpr const char* kKind<job::PersistRound> = "persist_round";
void Fields(auto& archive, Of<job::PersistRound> auto& action) { archive("round", action.round); }

template <>
inline constexpr const char* kKind<job::PersistDecision> = "persist_decision";
void Fields(auto& archive, Of<job::PersistDecision> auto& action) {
  archive("job", action.job);
  archive("decision", action.decision);
}

template <>
inline constexpr const char* kKind<job::StartWorker> = "start_worker";
void Fields(auto& archive, Of<job::StartWorker> auto& action) {
  archive("node", action.node);
  archive("worker", action.worker);
  archive("job", action.job);
  archive("job_name", action.job_name);
  archive("spec", action.spec);
  archive("device", action.device);
  archive("checkpoint", action.checkpoint);
}

template <>
inline constexpr const char* kKind<job::SendToWorker> = "send_to_worker";
void Fields(auto& archive, Of<job::SendToWorker> auto& action) {
  archive("node", action.node);
  archive("worker", action.worker);
  archive("message", action.message);
}

template <>
inline constexpr const char* kKind<job::StopWorker> = "stop_worker";
void Fields(auto& archive, Of<job::StopWorker> auto& action) {
  archive("node", action.node);
  archive("worker", action.worker);
  archive("grace", action.grace);
}

template <>
inline constexpr const char* kKind<job::PublishJob> = "publish_job";
void Fields(auto& archive, Of<job::PublishJob> auto& action) { archive("record", action.record); }

template <>
inline constexpr const char* kKind<job::PublishProgress> = "publish_progress";
void Fields(auto& archive, Of<job::PublishProgress> auto& action) {
  archive("job", action.job);
  archive("progress", action.progress);
}

template <>
inline constexpr const char* kKind<job::PublishDecision> = "publish_decision";
void Fields(auto& archive, Of<job::PublishDecision> auto& action) {
  archive("job", action.job);
  archive("plan", action.plan);
}

template <>
inline constexpr const char* kKind<job::WakeAt> = "wake_at";
void Fields(auto& archive, Of<job::WakeAt> auto& action) { archive("time", action.time); }

}  // namespace tactus::codec
