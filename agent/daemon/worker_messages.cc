#include "agent/daemon/worker_messages.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/json_util.h>

namespace tactus::agent {
namespace {

namespace json = google::protobuf::util;

std::string KindsOfMessages() {
  const google::protobuf::OneofDescriptor& kinds =
      *tactus::v1::FromWorker::descriptor()->FindOneofByName("message");
  std::string names;
  for (int i = 0; i < kinds.field_count(); ++i) {
    names += (i == 0 ? "" : ", ") + kinds.field(i)->name();
  }
  return names;
}

absl::StatusOr<std::string> Format(const google::protobuf::Message& message) {
  std::string line;
  const auto status = json::MessageToJsonString(message, &line);
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        std::string(status.message().data(), status.message().size()));
  }
  return line;
}

}  // namespace

absl::StatusOr<tactus::v1::FromWorker> ParseFromWorker(std::string_view line) {
  json::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  tactus::v1::FromWorker message;
  const auto status = json::JsonStringToMessage(
      google::protobuf::StringPiece(line.data(), line.size()), &message, options);
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        "not a message: " + std::string(status.message().data(), status.message().size()));
  }
  if (message.message_case() == tactus::v1::FromWorker::MESSAGE_NOT_SET) {
    return absl::InvalidArgumentError("none of " + KindsOfMessages());
  }
  if (message.ByteSizeLong() > kRelayedBytesMax) {
    return absl::InvalidArgumentError("a message of " + std::to_string(message.ByteSizeLong()) +
                                      " bytes; allowed are 1048576");
  }
  return message;
}

absl::StatusOr<std::string> FormatFromWorker(const tactus::v1::FromWorker& message) {
  return Format(message);
}

absl::StatusOr<std::string> FormatToWorker(const tactus::v1::ToWorker& message) {
  return Format(message);
}

}  // namespace tactus::agent
