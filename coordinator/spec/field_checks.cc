#include "coordinator/spec/field_checks.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/job_files.h"
#include "runtime/sha256.h"

namespace tactus::spec {
namespace {

constexpr std::size_t kPathBytesMax = 4096;
constexpr std::size_t kShownBytesMax = 80;
constexpr std::size_t kLabelBytesMax = 63;
constexpr std::int64_t kTimeSecondsMax = 10LL * 365 * 86400;

bool IsControl(char c) { return static_cast<unsigned char>(c) < 32 || c == 127; }

bool IsAlphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool IsLabelText(const std::string& text, const std::string& marks) {
  if (text.empty()) return true;
  const bool known = std::ranges::all_of(text, [&marks](const char c) {
    return IsAlphanumeric(c) || marks.find(c) != std::string::npos;
  });
  return known && text.size() <= kLabelBytesMax && IsAlphanumeric(text.front()) &&
         IsAlphanumeric(text.back());
}

// Levenshtein distance by rows.
std::size_t Distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

bool Contains(const Interval& interval, double value) {
  const bool above = interval.low_included ? value >= interval.low : value > interval.low;
  const bool below = interval.high_included ? value <= interval.high : value < interval.high;
  return std::isfinite(value) && above && below;
}

void FieldChecks::Add(const std::string& field, const std::string& description) {
  violations_.push_back({.field = field, .description = description});
}

void FieldChecks::Missing(const std::string& field, const std::string& allowed) {
  Add(field, "is missing; " + allowed);
}

void FieldChecks::Real(const std::string& field, double value, const Interval& interval) {
  if (Contains(interval, value)) return;
  Add(field, fmt::format("found {}, allowed is {}", value, interval.text));
}

bool FieldChecks::Whole(const std::string& field, std::uint64_t value, const Bounds& bounds) {
  if (value >= bounds.low && value <= bounds.high) return true;
  Add(field, fmt::format("found {}, allowed is {} to {}", value, bounds.low, bounds.high));
  return false;
}

void FieldChecks::Path(const std::string& field, const std::string& path) {
  if (path.empty()) {
    Add(field, "is empty; give a path");
  } else if (path.size() > kPathBytesMax) {
    Add(field, fmt::format("found a path of {} bytes, allowed are {}", path.size(), kPathBytesMax));
  } else if (!IsPrintable(path)) {
    Add(field, "found " + Shown(path) + ", allowed is a path without control characters");
  }
}

void FieldChecks::OneOf(const std::string& field, const std::string& value,
                        const std::vector<std::string>& allowed) {
  if (std::ranges::find(allowed, value) != allowed.end()) return;
  const std::string nearest = Nearest(value, allowed);
  Add(field, "found " + Shown(value) + ", allowed is " + Enumerate(allowed) +
                 (nearest.empty() ? "" : "; did you mean " + nearest + "?"));
}

void FieldChecks::Known(const std::string& field, bool known, int value,
                        const std::vector<std::string>& allowed) {
  if (known) return;
  Add(field, fmt::format("found the unknown value {}, allowed is {}", value, Enumerate(allowed)));
}

void FieldChecks::Time(const std::string& field, const google::protobuf::Duration& time) {
  const bool normal = time.nanos() >= 0 && time.nanos() < 1'000'000'000 && time.seconds() >= 0;
  const bool positive = time.seconds() > 0 || time.nanos() > 0;
  if (normal && positive && time.seconds() <= kTimeSecondsMax) return;
  Add(field, fmt::format("found {}s, allowed is a duration above 0 and of at most 10 years",
                         time.seconds()));
}

bool FieldChecks::Right(const std::string& field) const {
  return std::ranges::find(violations_, field, &runtime::FieldViolation::field) ==
         violations_.end();
}

std::string Shown(const std::string& text) {
  std::string shown;
  for (const char c : text.substr(0, kShownBytesMax)) {
    shown +=
        IsControl(c) ? fmt::format("\\x{:02x}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  if (text.size() <= kShownBytesMax) return "\"" + shown + "\"";
  return "\"" + shown + "...\" (" + std::to_string(text.size()) + " bytes)";
}

bool IsPrintable(const std::string& text) { return std::ranges::none_of(text, IsControl); }

bool NamesBlob(const std::string& text) {
  return text.starts_with(runtime::kUploaded) &&
         runtime::IsSha256(text.substr(runtime::kUploaded.size()));
}

bool IsLabelKey(const std::string& text) { return !text.empty() && IsLabelText(text, "._-/"); }

bool IsLabelValue(const std::string& text) { return IsLabelText(text, "._-"); }

std::string Nearest(const std::string& value, const std::vector<std::string>& allowed) {
  if (value.size() > kShownBytesMax) return {};
  std::string nearest;
  // At most two mistakes, and in less than half of the name: else any word would be near a short
  // one.
  std::size_t best = 3;
  for (const std::string& name : allowed) {
    const std::size_t distance = Distance(value, name);
    if (distance < best && 2 * distance < name.size()) {
      best = distance;
      nearest = name;
    }
  }
  return nearest;
}

std::string Enumerate(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace tactus::spec
