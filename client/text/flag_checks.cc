#include "client/text/flag_checks.h"

#include <charconv>

#include "client/text/quantity.h"
#include "client/text/text.h"
#include "runtime/options.h"

namespace tactus::client {
namespace {

std::string Wrong(const std::string& found, const std::string& allowed) {
  return "found \"" + Printable(found) + "\", allowed is " + allowed;
}

}  // namespace

std::string CheckDuration(const std::string& text) {
  const auto duration = runtime::ParseDuration(text);
  if (!duration.ok()) return std::string(duration.status().message());
  return *duration > Duration::zero() ? "" : Wrong(text, "more than 0");
}

std::string CheckSpeed(const std::string& text) {
  const std::optional<double> speed = ParseNumber(text);
  if (speed && *speed >= 0.001 && *speed <= 1000) return "";
  return Wrong(text, "a number from 0.001 to 1000");
}

std::string CheckNumber(const std::string& text) {
  return ParseNumber(text) ? "" : Wrong(text, "a finite number, such as 1.5");
}

std::string CheckWhole(const std::string& text, const spec::Bounds& allowed) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const bool whole = error == std::errc() && rest == end;
  if (whole && number >= allowed.low && number <= allowed.high) return "";
  return Wrong(text, "a whole number from " + std::to_string(allowed.low) + " to " +
                         std::to_string(allowed.high));
}

std::optional<RoundRange> ParseRoundRange(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return std::nullopt;
  RoundRange range;
  const auto read = [](const std::string& number, std::optional<std::uint64_t>& round) {
    if (number.empty()) return true;
    const char* const end = number.data() + number.size();
    const auto [rest, error] = std::from_chars(number.data(), end, round.emplace());
    return error == std::errc() && rest == end;
  };
  if (!read(text.substr(0, colon), range.first) || !read(text.substr(colon + 1), range.last)) {
    return std::nullopt;
  }
  if (range.first && range.last && *range.last < *range.first) return std::nullopt;
  return range;
}

std::string CheckRoundRange(const std::string& text) {
  if (ParseRoundRange(text)) return "";
  return Wrong(text, "FIRST:LAST, such as 100:200, with LAST not below FIRST");
}

}  // namespace tactus::client
