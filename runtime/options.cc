#include "runtime/options.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "base/check.h"

namespace tactus::runtime {
namespace {

struct Unit {
  const char* name;
  std::int64_t nanoseconds;
};

// Largest first.
constexpr std::array<Unit, 7> kUnits = {{{"d", 86'400'000'000'000},
                                         {"h", 3'600'000'000'000},
                                         {"m", 60'000'000'000},
                                         {"s", 1'000'000'000},
                                         {"ms", 1'000'000},
                                         {"us", 1'000},
                                         {"ns", 1}}};
constexpr double kNanosecondsMax = 9.0e18;

absl::Status Refuse(const std::string& text) {
  return absl::InvalidArgumentError("found \"" + text +
                                    "\", allowed is a number with a unit (d, h, m, s, ms, us, ns), "
                                    "such as 90s, 1h30m or 200ms");
}

// Index into kUnits, or kUnits.size() when there is no such unit.
std::size_t UnitIndex(const std::string& name) {
  std::size_t i = 0;
  while (i < kUnits.size() && name != kUnits[i].name) ++i;
  return i;
}

std::string Folder(const std::string& xdg, const std::string& from_home,
                   const std::string& system) {
  if (!xdg.empty() && xdg.front() == '/') return xdg + "/tactus";
  return from_home.empty() ? system : from_home + "/tactus";
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

absl::StatusOr<Duration> ParseDuration(const std::string& text) {
  if (text == "0") return Duration::zero();
  double total = 0;
  std::size_t next_unit = 0;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  bool fraction = false;
  if (at == end) return Refuse(text);
  if (*at == '-' && text[1] != '-' && ParseDuration(text.substr(1)).ok()) {
    return absl::InvalidArgumentError(
        "found \"" + text + "\", allowed is a duration that is not negative, such as 90s");
  }
  while (at != end) {
    double number = 0;
    const auto [rest, error] = std::from_chars(at, end, number, std::chars_format::fixed);
    if (error != std::errc() || *at == '-' || fraction || !std::isfinite(number))
      return Refuse(text);
    const char* unit_end = rest;
    while (unit_end != end && *unit_end >= 'a' && *unit_end <= 'z') ++unit_end;
    const std::size_t unit = UnitIndex(std::string(rest, unit_end));
    if (unit == kUnits.size() || unit < next_unit) return Refuse(text);
    fraction = number != std::floor(number);
    total += number * static_cast<double>(kUnits[unit].nanoseconds);
    next_unit = unit + 1;
    at = unit_end;
  }
  if (total > kNanosecondsMax) {
    return absl::OutOfRangeError("found \"" + text + "\", allowed is at most 100000d");
  }
  return Duration(std::llround(total));
}

std::string FormatDuration(Duration duration) {
  TACTUS_CHECK(duration >= Duration::zero());
  if (duration == Duration::zero()) return "0";
  std::string text;
  std::int64_t left = duration.count();
  for (const Unit& unit : kUnits) {
    const std::int64_t count = left / unit.nanoseconds;
    if (count == 0) continue;
    text += std::to_string(count) + unit.name;
    left -= count * unit.nanoseconds;
  }
  return text;
}

UserFolders FoldersFrom(const FolderVariables& variables) {
  const std::string& home = variables.home;
  return {.state = Folder(variables.xdg_state_home, home.empty() ? "" : home + "/.local/state",
                          "/var/lib/tactus"),
          .config = Folder(variables.xdg_config_home, home.empty() ? "" : home + "/.config",
                           "/etc/tactus")};
}

UserFolders FoldersFromEnvironment() {
  return FoldersFrom({.xdg_state_home = Variable("XDG_STATE_HOME"),
                      .xdg_config_home = Variable("XDG_CONFIG_HOME"),
                      .home = Variable("HOME")});
}

}  // namespace tactus::runtime
