// When the double's streams do what is queued on them.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tactus::cuda_double {

enum class Schedule {
  kLazy,    // when somebody waits, and no more than he waits for: shows a wait that is missing
  kEager,   // at the call that queues it: shows what was to be changed before it ran, and was not
  kRandom,  // any stream at any call: shows what relies on one stream being ahead of another
};

// A schedule, and the chance of kRandom.
struct Timing {
  Schedule schedule = Schedule::kLazy;
  std::uint64_t seed = 0;
};

// "lazy", "eager", "random" (a seed that is new in every process) or "random:SEED"; nothing for
// other words.
std::optional<Timing> ParseTiming(std::string_view text);
// What ParseTiming reads as the same.
std::string TextOf(const Timing& timing);

// The timing of every test that does not name its own, from the next Reset on.
void SetTiming(const Timing& timing);

}  // namespace tactus::cuda_double
