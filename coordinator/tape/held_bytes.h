// How much memory a frame holds while it waits to be written.

#pragma once

#include <cstddef>

#include "coordinator/tape/frames.h"

namespace tactus::tape {

// Bytes of the frame and of all that it owns, without what an allocator adds. Takes a time in
// proportion to the number of its strings and structs: less than a copy.
std::size_t HeldBytes(const Frame& frame);

}  // namespace tactus::tape
