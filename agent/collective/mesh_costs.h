// What decides which messages a collective over a mesh is made of; the simulator counts them too.

#pragma once

#include <cstddef>

namespace tactus::collective {

// What a member may send more than the least possible to save the second step, which costs as much
// time as sending so much. [elements]
inline constexpr std::size_t kExtraLengthMax = 4096;

// Longer buffers are worked off in pieces of this length, which bounds the scratch memory.
// [elements]
inline constexpr std::size_t kPieceLength = std::size_t{1} << 20;

// Of the rest of a message that is still to come when its first bytes are there: of less nobody can
// tell how fast a link is. [bytes]
inline constexpr std::size_t kMeasuredMin = std::size_t{64} << 10;

}  // namespace tactus::collective
