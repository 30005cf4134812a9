// The fields of the messages between a job and its workers, by name; see base/fields.h.

#pragma once

#include "base/fields.h"
#include "policies/plan_fields.h"
#include "protocol/worker_messages.h"

namespace tactus {

template <>
inline constexpr int kEnumMax<protocol::TransportKind> =
    static_cast<int>(protocol::kTransportNames.size()) - 1;

}  // namespace tactus

namespace tactus::protocol {

void Fields(auto& archive, Of<GroupMessage> auto& message) {
  archive("generation", message.generation);
  archive("rank", message.rank);
  archive("size", message.size);
  archive("plan", message.plan);
  archive("nodes", message.nodes);
  archive("transport", message.transport);
  archive("loss_seconds", message.loss_seconds);
  archive("rounds", message.rounds);
  Bytes(archive, "secret", message.secret);
  archive("encrypted", message.encrypted);
}

void Fields(auto& archive, Of<PeersMessage> auto& message) {
  archive("generation", message.generation);
  Bytes(archive, "endpoints", message.endpoints);
}

void Fields(auto& archive, Of<StopMessage> auto& message) {
  archive("reason", message.reason);
  archive("discard", message.discard);
  archive("suspend", message.suspend);
  archive("regroup", message.regroup);
  archive("leaving", message.leaving);
}

void Fields(auto& archive, Of<ProgramFacts> auto& facts) {
  archive("batch", facts.batch);
  archive("optimizer", facts.optimizer);
  archive("momentum", facts.momentum);
  archive("clip_norm", facts.clip_norm);
  archive("hash", facts.hash);
}

void Fields(auto& archive, Of<ReadyMessage> auto& message) {
  archive("parameters", message.parameters);
  archive("train_samples", message.train_samples);
  archive("validation_samples", message.validation_samples);
  archive("samples_per_second", message.samples_per_second);
  archive("nccl_version", message.nccl_version);
  archive("encodings", message.encodings);
  archive("program", message.program);
  archive("mesh_version", message.mesh_version);
}

void Fields(auto& archive, Of<EndpointMessage> auto& message) {
  archive("generation", message.generation);
  Bytes(archive, "endpoint", message.endpoint);
}

void Fields(auto& archive, Of<ReportMessage> auto& message) {
  archive("generation", message.generation);
  Inline(archive, "report", message.report);
  archive("out_of_memory", message.out_of_memory);
  archive("pass_samples_max", message.pass_samples_max);
  archive("memory_used_bytes", message.memory_used_bytes);
}

void Fields(auto& archive, Of<EvaluatedMessage> auto& message) {
  archive("loss", message.loss);
  archive("accuracy", message.accuracy);
  archive("samples", message.samples);
  archive("rounds", message.rounds);
}

void Fields(auto& archive, Of<ValidatedMessage> auto& message) {
  archive("generation", message.generation);
  archive("rounds", message.rounds);
  archive("epoch", message.epoch);
  archive("trained_samples", message.trained_samples);
  archive("train_seconds", message.train_seconds);
  archive("loss", message.loss);
  archive("accuracy", message.accuracy);
  archive("samples", message.samples);
  archive("seconds", message.seconds);
  archive("best_loss", message.best_loss);
  archive("best_accuracy", message.best_accuracy);
  archive("best_samples", message.best_samples);
  archive("best_rounds", message.best_rounds);
  archive("since_best", message.since_best);
}

void Fields(auto& archive, Of<CheckpointedMessage> auto& message) {
  archive("generation", message.generation);
  archive("file", message.file);
  archive("rounds", message.rounds);
  archive("samples_global", message.samples_global);
  archive("epochs", message.epochs);
  archive("epoch_consumed", message.epoch_consumed);
  archive("train_loss", message.train_loss);
  archive("train_seconds", message.train_seconds);
  archive("still_seconds", message.still_seconds);
  archive("write_seconds", message.write_seconds);
  archive("sha256", message.sha256);
  archive("size_bytes", message.size_bytes);
}

void Fields(auto& archive, Of<FinishedMessage> auto& message) {
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

void Fields(auto& archive, Of<StandingMessage> auto& message) {
  archive("generation", message.generation);
  archive("batches", message.batches);
  archive("bytes", message.bytes);
  archive("waits", message.waits);
  archive("awaits", message.awaits);
  archive("stopped", message.stopped);
  archive("storage", message.storage);
  archive("silent_seconds", message.silent_seconds);
  archive("processor_seconds", message.processor_seconds);
}

void Fields(auto& archive, Of<GroupLostMessage> auto& message) {
  archive("generation", message.generation);
  archive("rounds", message.rounds);
  archive("reason", message.reason);
  archive("blames", message.blames);
  archive("planned", message.planned);
}

void Fields(auto& archive, Of<DifferedMessage> auto& message) {
  archive("generation", message.generation);
  archive("rounds", message.rounds);
  archive("wrong", message.wrong);
  archive("majority", message.majority);
}

void Fields(auto& archive, Of<SelectedMessage> auto& message) {
  archive("generation", message.generation);
  archive("rounds", message.rounds);
  archive("epoch", message.epoch);
  archive("number", message.number);
  archive("facts", message.facts);
  archive("seconds", message.seconds);
}

void Fields(auto& archive, Of<FailedMessage> auto& message) {
  archive("field", message.field);
  archive("message", message.message);
  archive("lost_generation", message.lost_generation);
  archive("transient", message.transient);
}

}  // namespace tactus::protocol

namespace tactus {

template <>
inline constexpr const char* kKind<protocol::GroupMessage> = "group";
template <>
inline constexpr const char* kKind<protocol::PeersMessage> = "peers";
template <>
inline constexpr const char* kKind<policies::Plan> = "plan";
template <>
inline constexpr const char* kKind<protocol::StopMessage> = "stop";

template <>
inline constexpr const char* kKind<protocol::ReadyMessage> = "ready";
template <>
inline constexpr const char* kKind<protocol::EndpointMessage> = "endpoint";
template <>
inline constexpr const char* kKind<protocol::ReportMessage> = "report";
template <>
inline constexpr const char* kKind<protocol::EvaluatedMessage> = "evaluated";
template <>
inline constexpr const char* kKind<protocol::ValidatedMessage> = "validated";
template <>
inline constexpr const char* kKind<protocol::CheckpointedMessage> = "checkpointed";
template <>
inline constexpr const char* kKind<protocol::FinishedMessage> = "finished";
template <>
inline constexpr const char* kKind<protocol::GroupLostMessage> = "group_lost";
template <>
inline constexpr const char* kKind<protocol::DifferedMessage> = "differed";
template <>
inline constexpr const char* kKind<protocol::SelectedMessage> = "selected";
template <>
inline constexpr const char* kKind<protocol::FailedMessage> = "failed";
template <>
inline constexpr const char* kKind<protocol::StandingMessage> = "standing";

}  // namespace tactus
