// What a worker and its agent say to each other, a line of proto3 JSON a message; the schema is
// proto/tactus/v1/worker.proto.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/worker/job.h"
#include "base/fields.h"
#include "policies/plan.h"
#include "protocol/worker_messages.h"

namespace tactus::worker {

struct StartMessage {
  std::string job_id;
  std::uint64_t worker_id = 0;
  WorkerJob job;
  std::string job_text{};  // the same as it came, for people
  std::string device = "cpu:0";
  double emulated_speed = 0;  // 0: none
  double emulated_cpu_factor = 1;
  std::string address = "127.0.0.1";
  std::string output_directory;
  std::string checkpoint{};        // a file to go on from; empty: from the beginning
  bool wants_standing = false;     // so older agents do not
  std::uint64_t skip_samples = 0;  // after those of the checkpoint
  std::uint64_t memory_bytes = 0;  // of the device, for this worker; 0: not known
  // Of more samples a pass ran out of memory on such a device; 0: that is not known.
  std::uint32_t pass_samples_max = 0;
};
// All but the specification, which has a reader of its own.
void Fields(auto& archive, Of<StartMessage> auto& start) {
  archive("job_id", start.job_id);
  archive("worker_id", start.worker_id);
  archive("device", start.device);
  archive("emulated_speed", start.emulated_speed);
  archive("emulated_cpu_factor", start.emulated_cpu_factor);
  archive("address", start.address);
  archive("output_directory", start.output_directory);
  archive("checkpoint", start.checkpoint);
  archive("wants_standing", start.wants_standing);
  archive("skip_samples", start.skip_samples);
  archive("memory_bytes", start.memory_bytes);
  archive("pass_samples_max", start.pass_samples_max);
}

using protocol::CheckpointedMessage;
using protocol::EndpointMessage;
using protocol::EvaluatedMessage;
using protocol::FailedMessage;
using protocol::FinishedMessage;
using protocol::FromWorker;
using protocol::GroupMessage;
using protocol::PeersMessage;
using protocol::ReadyMessage;
using protocol::ReportMessage;
using protocol::StandingMessage;
using protocol::StopMessage;
using protocol::TransportKind;
using protocol::ValidatedMessage;

// A snapshot is whole. To the agent alone, which brings it to the coordinator.
struct SnapshottedMessage {
  std::string file{};  // in the output directory
};
void Fields(auto& archive, Of<SnapshottedMessage> auto& message) { archive("file", message.file); }

using ToWorker =
    std::variant<StartMessage, GroupMessage, PeersMessage, policies::Plan, StopMessage>;

// One line of proto3 JSON, without the newline. Unknown keys are ignored, as newer agents may send
// them. Errors: InvalidArgument, not JSON, not one of the messages, or a field of the wrong type.
absl::StatusOr<ToWorker> ParseToWorker(std::string_view line);

// One line of proto3 JSON, without the newline.
std::string Format(const FromWorker& message);
std::string Format(const SnapshottedMessage& message);

}  // namespace tactus::worker

namespace tactus {

template <>
inline constexpr const char* kKind<worker::StartMessage> = "start";
template <>
inline constexpr const char* kKind<worker::SnapshottedMessage> = "snapshotted";

}  // namespace tactus
