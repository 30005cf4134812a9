// TACTUS_CHECK: an invariant of ours, held in every build. Never a test of input from outside.

#pragma once

#include <cstdio>
#include <cstdlib>

namespace tactus::internal {

[[noreturn]] inline void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace tactus::internal

// Stops the process with the place and the condition when `condition` is false.
#define TACTUS_CHECK(condition)       \
  ((condition) ? static_cast<void>(0) \
               : ::tactus::internal::CheckFailed(#condition, __FILE__, __LINE__))
