#include "runtime/now.h"

#include <chrono>
#include <ctime>

namespace tactus::runtime {

Instant Now() { return Instant(std::chrono::steady_clock::now().time_since_epoch()); }

std::int64_t WallNow() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::int64_t WallSeconds() { return WallNow() / 1'000'000'000; }

std::string UtcText(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[32] = "";
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace tactus::runtime
