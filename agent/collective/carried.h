// What went from one member to another.

#pragma once

#include <cstdint>

namespace tactus::collective {

// What a member has sent to another one and knows to have come, and for how long anything was on
// its way there.
struct Carried {
  std::uint64_t bytes = 0;
  double seconds = 0;
};

}  // namespace tactus::collective
