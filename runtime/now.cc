#include "runtime/now.h"

#include <chrono>

namespace tactus::runtime {

Instant Now() { return Instant(std::chrono::steady_clock::now().time_since_epoch()); }

std::int64_t WallNow() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace tactus::runtime
