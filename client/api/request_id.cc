#include "client/api/request_id.h"

#include <sys/random.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/check.h"

namespace tactus::api {

std::string NewRequestId() {
  std::array<std::uint8_t, 16> bytes{};
  // Never short for so few bytes once the kernel's generator is ready, which it waits for.
  TACTUS_CHECK(getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  bytes[6] = static_cast<std::uint8_t>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3f) | 0x80);
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 0x0f];
  }
  return text;
}

}  // namespace tactus::api
