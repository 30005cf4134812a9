// What is wrong with values of the command line: 'found "x", allowed is ...', or nothing. Pure.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "coordinator/spec/field_checks.h"

namespace tactus::client {

std::string CheckDuration(const std::string& text);  // more than 0
std::string CheckSpeed(const std::string& text);     // 0.001 to 1000
std::string CheckNumber(const std::string& text);    // finite
std::string CheckWhole(const std::string& text, const spec::Bounds& allowed);

// Rounds from the first to the last, both included.
struct RoundRange {
  std::optional<std::uint64_t> first{};
  std::optional<std::uint64_t> last{};
};

// "100:200", "100:", ":200", ":"; nothing for another text, or where the last is before the first.
std::optional<RoundRange> ParseRoundRange(const std::string& text);
std::string CheckRoundRange(const std::string& text);

}  // namespace tactus::client
