// What a fuzz target holds the code to.

#pragma once

#include <cstdio>
#include <cstdlib>

namespace tactus::fuzz {

// Stops the process, which libFuzzer takes for a finding, when a promise is broken.
inline void Require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

}  // namespace tactus::fuzz
