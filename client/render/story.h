// The story of a job's decisions, as `tactus explain` tells it to a person.

#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>

#include "base/time.h"
#include "tactus/v1/jobs.pb.h"

namespace tactus::client {

// Which decisions are told of; all that is said must hold.
struct DecisionChoice {
  std::size_t last = std::numeric_limits<std::size_t>::max();  // the newest so many
  std::optional<v1::Axis> axis{};
  Duration since{};  // made when the job had trained for so long, or later
};

// In their order. Pure.
v1::ListDecisionsResponse Chosen(const v1::ListDecisionsResponse& decisions,
                                 const DecisionChoice& choice);

// What the job is and under which policies it runs; of more than kDecisionsUncounted decisions how
// many there are of each axis and what they were worth; then a paragraph for each chosen one, in
// order: when, what changed, why, from which numbers, what was predicted, what the alternatives
// would have given, and what was measured; at last where the job stands. In lines of at most
// `columns`, and of at most kStoryColumnsMax. Pure.
std::string Story(const v1::Job& job, const v1::ListDecisionsResponse& decisions,
                  std::size_t columns, const DecisionChoice& choice = {});

inline constexpr int kDecisionsUncounted = 12;

// What is said of the group as a whole beside the table of its devices' values, and what is assumed
// of the groups that are not there. In lines as Story. Pure.
std::string DevicesStory(const v1::DeviceValues& values, std::size_t columns);

inline constexpr std::size_t kStoryColumnsMax = 100;

}  // namespace tactus::client
