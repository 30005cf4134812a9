#include "crypto/random.h"

#include <sys/random.h>
#include <sys/types.h>

#include <cerrno>

namespace tactus::crypto {

bool FillRandom(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t filled = getrandom(bytes.data(), bytes.size(), 0);
    if (filled < 0 && errno == EINTR) continue;
    if (filled <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(filled));
  }
  return true;
}

}  // namespace tactus::crypto
