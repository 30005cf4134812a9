// The lines between agent and worker: proto3 JSON of tactus/v1/worker.proto.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tactus/v1/worker.pb.h"

namespace tactus::agent {

// A message relayed up is at most this long on the wire, so that one worker cannot break the stream
// that all share: gRPC refuses messages above 4 MiB.
inline constexpr std::size_t kRelayedBytesMax = 1u << 20;

// One line from a worker. Fields that are unknown (of a newer worker) are ignored.
// Errors: InvalidArgument, not JSON, not such a message, or longer than kRelayedBytesMax.
absl::StatusOr<tactus::v1::FromWorker> ParseFromWorker(std::string_view line);

// The line that ParseFromWorker reads, without its newline.
// Errors: InvalidArgument, the message has no JSON form.
absl::StatusOr<std::string> FormatFromWorker(const tactus::v1::FromWorker& message);

// One line to a worker, without its newline.
// Errors: InvalidArgument, the message has no JSON form (a duration out of range).
absl::StatusOr<std::string> FormatToWorker(const tactus::v1::ToWorker& message);

}  // namespace tactus::agent
