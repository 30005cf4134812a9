// Bytes of a memory that somebody changed, and who knew what he did.

#pragma once

#include <cstdint>
#include <string>

#include "policies/memory.h"

namespace tactus::policies {

// With the right sum over them, so that only what they say can be wrong.
inline std::string Mended(std::string bytes) {
  bytes.resize(bytes.size() - sizeof(std::uint64_t));
  TextSum sum;
  sum.Add(bytes);
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(sum.value() >> shift);
  return bytes;
}

}  // namespace tactus::policies
