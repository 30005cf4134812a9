// What became of a case, for people and for programs.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tactus::bench::nccl {

struct Figure {
  std::string name{};  // ends with its unit
  double value = 0;

  bool operator==(const Figure&) const = default;
};

struct Outcome {
  bool passed = false;
  std::string said{};  // one line: why it did not, or what was seen
  std::vector<Figure> figures{};

  bool operator==(const Outcome&) const = default;
};

// As lines, from a member's process to the one that tells of it; and back. None: these are no such
// lines, as of a process that did not come to its end.
std::string ToLines(const Outcome& outcome);
std::optional<Outcome> FromLines(std::string_view lines);

// The outcome of several members, in the order of their ranks: passed if all have; figures are
// those of rank 0.
Outcome Together(const std::vector<Outcome>& members);

// One line of JSON: {"case": ..., "passed": ..., "said": ..., "figures": {name: value}}.
std::string ToJson(std::string_view name, const Outcome& outcome);

}  // namespace tactus::bench::nccl
