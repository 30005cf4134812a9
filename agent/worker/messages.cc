#include "agent/worker/messages.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "agent/worker/job_json.h"
#include "agent/worker/json_archive.h"
#include "protocol/worker_message_fields.h"

namespace tactus::worker {
namespace {

// What a message has besides its fields.
void Complete(const FieldReader& from, StartMessage& start) {
  start.job = ParseJob(from.Object("spec"));
  start.job_text = from.Object("spec").Text();
}
// An older coordinator does not know periods and may say 0.
void Complete(const FieldReader&, policies::Plan& plan) { plan.period = std::max(1u, plan.period); }
void Complete(const FieldReader& from, GroupMessage& group) {
  Complete(from.Object("plan"), group.plan);
}
void Complete(const FieldReader&, const auto&) {}

// False: the line is of another kind.
template <typename T>
bool ReadIf(const FieldReader& line, std::optional<ToWorker>& message) {
  if (!line.Has(kKind<T>)) return false;
  const FieldReader from = line.Object(kKind<T>);
  T one;
  JsonReader reader(from);
  Fields(reader, one);
  Complete(from, one);
  message = std::move(one);
  return true;
}

template <typename... Ts>
void ReadAny(const FieldReader& line, std::optional<std::variant<Ts...>>& message) {
  static_cast<void>((ReadIf<Ts>(line, message) || ...));
}

}  // namespace

absl::StatusOr<ToWorker> ParseToWorker(std::string_view line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("message: not a JSON object");
  std::string error;
  std::optional<ToWorker> message;
  ReadAny(FieldReader(json, "", error), message);
  if (!message) error = "none of start, group, peers, plan, stop";
  if (!error.empty()) return absl::InvalidArgumentError("message: " + error);
  return *std::move(message);
}

std::string Format(const FromWorker& message) {
  // Messages quote file names and libraries' texts, which need not be UTF-8.
  return JsonWriter::Encode(message).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string Format(const SnapshottedMessage& message) {
  return JsonWriter::Encode(std::variant<SnapshottedMessage>(message)).dump();
}

}  // namespace tactus::worker
