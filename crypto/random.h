// Bytes that nobody can guess.

#pragma once

#include <cstddef>
#include <span>

namespace tactus::crypto {

// Fills it from the system's source, which is there from the system's start on. Any thread. False:
// the system gives none, as to a process that may not ask.
[[nodiscard]] bool FillRandom(std::span<std::byte> bytes);

}  // namespace tactus::crypto
