#include "coordinator/store/job_filter.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <regex>
#include <utility>

#include "absl/time/time.h"
#include "coordinator/job/records.h"
#include "runtime/status.h"

namespace tactus::store {
namespace {

constexpr std::size_t kFilterBytesMax = 1024;
constexpr std::size_t kConditionsMax = 16;
constexpr std::size_t kShownMax = 40;
constexpr std::int64_t kPriorityMax = 1000;
constexpr std::string_view kNamePrefix = "projects/default/jobs/";
constexpr std::string_view kLabels = "labels.";
constexpr const char* kFieldsAllowed =
    "state, name, priority, create_time and labels.KEY (KEY quoted where it has other characters)";

constexpr std::array<std::pair<std::string_view, job::JobState>, 9> kStates = {{
    {"QUEUED", job::JobState::kQueued},
    {"STARTING", job::JobState::kStarting},
    {"RUNNING", job::JobState::kRunning},
    {"SUSPENDING", job::JobState::kSuspending},
    {"PAUSED", job::JobState::kPaused},
    {"STOPPING", job::JobState::kStopping},
    {"SUCCEEDED", job::JobState::kSucceeded},
    {"FAILED", job::JobState::kFailed},
    {"CANCELLED", job::JobState::kCancelled},
}};

// As it may stand in a message: printable, not long.
std::string Shown(std::string_view text) {
  if (text.empty()) return "nothing";
  std::string shown = "'";
  for (const char c : text.substr(0, kShownMax)) shown += c >= ' ' && c <= '~' ? c : '?';
  return shown + (text.size() > kShownMax ? "...'" : "'");
}

bool IsSpace(char c) { return c == ' ' || c == '\t'; }
bool IsQuote(char c) { return c == '"' || c == '\''; }
bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }
bool IsBare(char c) {
  return !IsSpace(c) && !IsQuote(c) && !IsControl(c) &&
         std::string_view("=!<>()").find(c) == std::string_view::npos;
}

// Nanoseconds since 1970 of an RFC 3339 time of the years 1970 to 2200, to the nanosecond. Nothing
// when it is not one: Abseil takes more than the standard does, such as a day of one digit.
std::optional<std::int64_t> ParseTime(const std::string& text) {
  static const std::regex shape(
      R"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d))");
  absl::Time time;
  if (!std::regex_match(text, shape) || text < "1970" || text >= "2201" ||
      !absl::ParseTime(absl::RFC3339_full, text, &time, nullptr)) {
    return std::nullopt;
  }
  return absl::ToUnixNanos(time);
}

class FilterParser {
 public:
  explicit FilterParser(std::string_view filter) : filter_(filter) {}

  absl::StatusOr<std::vector<JobCondition>> Parse();

 private:
  absl::StatusOr<JobCondition> ParseCondition();
  absl::Status ParseField(JobCondition& condition);
  absl::Status ParseComparison(JobCondition& condition);
  absl::Status ParseValue(JobCondition& condition);
  absl::StatusOr<std::string> ParseQuoted();
  absl::Status SetValue(std::string value, std::size_t at, JobCondition& condition);

  void SkipSpace() {
    while (!AtEnd() && IsSpace(filter_[at_])) ++at_;
  }
  bool AtEnd() const { return at_ == filter_.size(); }
  std::string_view Word() {
    const std::size_t begin = at_;
    while (!AtEnd() && IsBare(filter_[at_])) ++at_;
    return filter_.substr(begin, at_ - begin);
  }

  // What stands at `at`, up to the next space.
  std::string Found(std::size_t at) const {
    std::size_t end = at;
    while (end < filter_.size() && !IsSpace(filter_[end])) ++end;
    return end == at ? "the end" : Shown(filter_.substr(at, end - at));
  }
  static absl::Status Refused(std::size_t at, const std::string& message) {
    return runtime::InvalidFields(
        {{.field = "filter", .description = "at " + std::to_string(at + 1) + ": " + message}});
  }
  absl::Status Unexpected(std::size_t at, const std::string& allowed) const {
    return Refused(at, "found " + Found(at) + "; allowed: " + allowed);
  }

  const std::string_view filter_;
  std::size_t at_ = 0;
};

absl::StatusOr<std::vector<JobCondition>> FilterParser::Parse() {
  std::vector<JobCondition> conditions;
  SkipSpace();
  if (AtEnd()) return conditions;
  while (true) {
    absl::StatusOr<JobCondition> condition = ParseCondition();
    if (!condition.ok()) return condition.status();
    conditions.push_back(*std::move(condition));
    SkipSpace();
    if (AtEnd()) return conditions;
    const std::size_t at = at_;
    if (Word() != "AND") return Unexpected(at, "AND and another comparison, or the end");
    if (conditions.size() == kConditionsMax) {
      return Refused(at, "found more than " + std::to_string(kConditionsMax) + " comparisons");
    }
    SkipSpace();
  }
}

absl::StatusOr<JobCondition> FilterParser::ParseCondition() {
  JobCondition condition;
  absl::Status status = ParseField(condition);
  if (!status.ok()) return status;
  SkipSpace();
  status = ParseComparison(condition);
  if (!status.ok()) return status;
  SkipSpace();
  status = ParseValue(condition);
  if (!status.ok()) return status;
  return condition;
}

absl::Status FilterParser::ParseField(JobCondition& condition) {
  constexpr std::array<std::pair<std::string_view, JobField>, 4> kFields = {{
      {"state", JobField::kState},
      {"name", JobField::kName},
      {"priority", JobField::kPriority},
      {"create_time", JobField::kCreateTime},
  }};
  const std::size_t begin = at_;
  const std::string_view word = Word();
  for (const auto& [name, field] : kFields) {
    if (word != name) continue;
    condition.field = field;
    return absl::OkStatus();
  }
  if (!word.starts_with(kLabels)) return Unexpected(begin, kFieldsAllowed);
  condition.field = JobField::kLabel;
  condition.label = word.substr(kLabels.size());
  if (condition.label.empty() && !AtEnd() && IsQuote(filter_[at_])) {
    absl::StatusOr<std::string> key = ParseQuoted();
    if (!key.ok()) return key.status();
    condition.label = *std::move(key);
  }
  if (condition.label.empty()) return Unexpected(begin, kFieldsAllowed);
  return absl::OkStatus();
}

absl::Status FilterParser::ParseComparison(JobCondition& condition) {
  constexpr std::array<std::pair<std::string_view, Comparison>, 6> kComparisons = {{
      {"!=", Comparison::kNotEqual},  // the longer ones first
      {"<=", Comparison::kLessOrEqual},
      {">=", Comparison::kGreaterOrEqual},
      {"=", Comparison::kEqual},
      {"<", Comparison::kLess},
      {">", Comparison::kGreater},
  }};
  const bool ordered =
      condition.field == JobField::kPriority || condition.field == JobField::kCreateTime;
  const std::string allowed = ordered ? "=, !=, <, <=, > and >=" : "= and !=";
  for (const auto& [sign, comparison] : kComparisons) {
    if (!filter_.substr(at_).starts_with(sign)) continue;
    const bool equality = comparison == Comparison::kEqual || comparison == Comparison::kNotEqual;
    if (!ordered && !equality) break;
    condition.comparison = comparison;
    at_ += sign.size();
    return absl::OkStatus();
  }
  return Unexpected(at_, allowed);
}

absl::Status FilterParser::ParseValue(JobCondition& condition) {
  const std::size_t begin = at_;
  if (!AtEnd() && IsQuote(filter_[at_])) {
    absl::StatusOr<std::string> value = ParseQuoted();
    if (!value.ok()) return value.status();
    return SetValue(*std::move(value), begin, condition);
  }
  const std::string_view word = Word();
  if (word.empty()) return Unexpected(begin, "a value, bare or quoted");
  return SetValue(std::string(word), begin, condition);
}

absl::StatusOr<std::string> FilterParser::ParseQuoted() {
  const std::size_t begin = at_;
  const char quote = filter_[at_++];
  std::string value;
  while (!AtEnd()) {
    char c = filter_[at_++];
    if (c == quote) return value;
    if (c == '\\' && !AtEnd()) c = filter_[at_++];
    if (IsControl(c)) return Refused(at_ - 1, "found a control character; none is allowed");
    value += c;
  }
  return Refused(begin, "found a quote that is not closed");
}

absl::Status FilterParser::SetValue(std::string value, std::size_t at, JobCondition& condition) {
  const auto refused = [&](const std::string& allowed) {
    return Refused(at, "found " + Shown(value) + "; allowed: " + allowed);
  };
  switch (condition.field) {
    case JobField::kState: {
      std::string allowed;
      for (const auto& [name, state] : kStates) {
        condition.number = static_cast<std::int64_t>(state);
        if (value == name || value == "JOB_STATE_" + std::string(name)) return absl::OkStatus();
        allowed += (allowed.empty() ? "" : ", ") + std::string(name);
      }
      return refused(allowed);
    }
    case JobField::kPriority: {
      const char* end = value.data() + value.size();
      const auto parsed = std::from_chars(value.data(), end, condition.number);
      if (parsed.ec == std::errc() && parsed.ptr == end && condition.number >= -kPriorityMax &&
          condition.number <= kPriorityMax) {
        return absl::OkStatus();
      }
      return refused("whole numbers from -1000 to 1000");
    }
    case JobField::kCreateTime: {
      const std::optional<std::int64_t> time = ParseTime(value);
      if (!time) return refused("times as in RFC 3339, such as 2026-01-31T09:30:00Z");
      condition.number = *time;
      return absl::OkStatus();
    }
    case JobField::kName:
      if (value.starts_with(kNamePrefix)) value.erase(0, kNamePrefix.size());
      break;
    case JobField::kUpdateTime:  // not a field of filters
    case JobField::kLabel:
      break;
  }
  condition.text = std::move(value);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<JobCondition>> ParseJobFilter(std::string_view filter) {
  if (filter.size() > kFilterBytesMax) {
    return runtime::InvalidFields(
        {{.field = "filter",
          .description = "found " + std::to_string(filter.size()) +
                         " bytes; allowed: " + std::to_string(kFilterBytesMax)}});
  }
  return FilterParser(filter).Parse();
}

absl::StatusOr<JobOrder> ParseJobOrder(std::string_view order_by) {
  constexpr std::array<std::pair<std::string_view, JobField>, 4> kFields = {{
      {"create_time", JobField::kCreateTime},
      {"name", JobField::kName},
      {"priority", JobField::kPriority},
      {"update_time", JobField::kUpdateTime},
  }};
  const std::size_t first = order_by.find_first_not_of(' ');
  if (first == order_by.npos) return JobOrder{};
  const std::size_t last = order_by.find_last_not_of(' ');
  const std::string_view whole = order_by.substr(first, last + 1 - first);
  const std::string_view name = whole.substr(0, whole.find(' '));
  std::string_view direction = whole.substr(name.size());
  direction.remove_prefix(std::min(direction.find_first_not_of(' '), direction.size()));
  for (const auto& [known, field] : kFields) {
    if (name != known || !(direction.empty() || direction == "asc" || direction == "desc")) {
      continue;
    }
    return JobOrder{.field = field, .descending = direction == "desc"};
  }
  return runtime::InvalidFields(
      {{.field = "order_by",
        .description = "found " + Shown(whole) +
                       "; allowed: create_time, name, priority and update_time, one of them, then "
                       "\" desc\" where wanted"}});
}

}  // namespace tactus::store
