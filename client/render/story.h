// The story of a job's decisions, as `tactus explain` tells it to a person.

#pragma once

#include <cstddef>
#include <string>

#include "tactus/v1/jobs.pb.h"

namespace tactus::client {

// What the job is and under which policies it runs; then a paragraph for each decision, in order:
// when, what changed, why, from which numbers, what was predicted, what the alternatives would have
// given, and what was measured; at last where the job stands. In lines of at most `columns`, and of
// at most kStoryColumnsMax. Pure.
std::string Story(const v1::Job& job, const v1::ListDecisionsResponse& decisions,
                  std::size_t columns);

// What is said of the group as a whole beside the table of its devices' values, and what is assumed
// of the groups that are not there. In lines as Story. Pure.
std::string DevicesStory(const v1::DeviceValues& values, std::size_t columns);

inline constexpr std::size_t kStoryColumnsMax = 100;

}  // namespace tactus::client
