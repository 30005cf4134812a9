// What a worker and its agent say to each other; proto/tactus/v1/worker.proto is the schema and
// says what each field means. A worker links no protobuf, so the JSON form is read and written
// here, by hand; a test holds it against the schema.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/worker/job.h"
#include "policies/plan.h"

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
  std::string checkpoint{};  // a file to go on from; empty: from the beginning
};
struct GroupMessage {
  std::uint64_t generation = 0;
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
  policies::Plan plan;
  std::vector<std::uint32_t> nodes{};  // by rank
};
struct PeersMessage {
  std::uint64_t generation = 0;
  std::vector<std::string> endpoints{};
};
struct StopMessage {
  std::string reason;
  bool discard = false;
  bool suspend = false;
};
using ToWorker =
    std::variant<StartMessage, GroupMessage, PeersMessage, policies::Plan, StopMessage>;

struct ReadyMessage {
  std::uint64_t parameters = 0;
  std::uint64_t train_samples = 0;
  std::uint64_t validation_samples = 0;
  double samples_per_second = 0;
};
struct EndpointMessage {
  std::uint64_t generation = 0;
  std::string endpoint{};
};
struct ReportMessage {
  std::uint64_t generation = 0;
  policies::Report report;
  std::uint32_t out_of_memory = 0;  // passes since the former report that were repeated in pieces
};
struct EvaluatedMessage {
  double loss = 0;
  double accuracy = -1;  // -1: the loss has no notion of it
  std::uint64_t samples = 0;
};
struct FinishedMessage {
  std::string reason;
  std::uint64_t rounds = 0;
  std::uint64_t samples = 0;
  std::uint64_t samples_global = 0;
  std::uint64_t epochs = 0;
  double train_loss = 0;
  double train_seconds = 0;
  std::vector<std::string> files{};
  std::uint64_t parameters_hash = 0;
  bool suspended = false;
};
struct FailedMessage {
  std::string field;
  std::string message;
  std::uint64_t lost_generation = 0;
};
using FromWorker = std::variant<ReadyMessage, EndpointMessage, ReportMessage, EvaluatedMessage,
                                FinishedMessage, FailedMessage>;

// One line of proto3 JSON, without the newline. Unknown keys are ignored, as newer agents may send
// them. Errors: InvalidArgument, not JSON, not one of the messages, or a field of the wrong type.
absl::StatusOr<ToWorker> ParseToWorker(std::string_view line);

// One line of proto3 JSON, without the newline.
std::string Format(const FromWorker& message);

}  // namespace tactus::worker
