#include "client/api/request_id.h"

#include <sys/random.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/escaping.h"
#include "base/check.h"

namespace tactus::api {

std::string NewRequestId() {
  std::array<std::uint8_t, 16> bytes{};
  // Never short for so few bytes once the kernel's generator is ready, which it waits for.
  TACTUS_CHECK(getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  bytes[6] = static_cast<std::uint8_t>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3f) | 0x80);
  std::string text =
      absl::BytesToHexString({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  for (const std::size_t hyphen : {8, 13, 18, 23}) text.insert(hyphen, 1, '-');
  return text;
}

}  // namespace tactus::api
