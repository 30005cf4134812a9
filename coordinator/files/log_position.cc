#include "coordinator/files/log_position.h"

#include <array>
#include <charconv>
#include <string_view>

#include "coordinator/files/log_store.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

// A token is JOB/STEP-OFFSET,STEP-OFFSET,... in hexadecimal, where STEP is a worker's id above the
// one before it: ids of one job lie close together.
void AddHex(std::uint64_t number, std::string& text) {
  std::array<char, 16> digits{};
  const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16);
  text.append(digits.data(), written.ptr);
}

bool TakeHex(std::string_view& text, std::uint64_t& number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (parsed.ec != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
  return true;
}

bool TakeCharacter(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

// The workers' part; false when it is none.
bool Parse(std::string_view text, LogPosition& position) {
  std::uint64_t id = 0;
  while (!text.empty()) {
    std::uint64_t step = 0, offset = 0;
    if (!TakeHex(text, step) || !TakeCharacter(text, '-') || !TakeHex(text, offset)) return false;
    if (step > ~id || (step == 0 && !position.empty())) return false;
    id += step;
    position[WorkerId{id}] = offset;
    if (position.size() > LogStore::Limits{}.workers) return false;
    if (!text.empty() && (!TakeCharacter(text, ',') || text.empty())) return false;
  }
  return true;
}

}  // namespace

std::string ToToken(const std::string& job, const LogPosition& position) {
  std::string token = job + "/";
  std::uint64_t before = 0;
  for (const auto& [worker, offset] : position) {
    if (token.back() != '/') token += ',';
    AddHex(worker.value - before, token);
    token += '-';
    AddHex(offset, token);
    before = worker.value;
  }
  return token;
}

absl::StatusOr<LogPosition> FromToken(const std::string& job, const std::string& token) {
  LogPosition position;
  if (token.starts_with(job + "/") &&
      Parse(std::string_view(token).substr(job.size() + 1), position)) {
    return position;
  }
  return runtime::WithReason(
      runtime::InvalidFields({{.field = "resume_token",
                               .description = "is none of the logs of " + job +
                                              "; leave it out to begin with the oldest entry"}}),
      {.reason = "INVALID_RESUME_TOKEN", .metadata = {{"job", job}}});
}

}  // namespace tactus::service
