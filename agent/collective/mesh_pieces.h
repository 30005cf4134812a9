// The pieces in which long buffers travel over a mesh: the same on all members, also on those whose
// buffers are in other memory than the host's, which bring them up and down piece by piece.

#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "agent/collective/mesh_costs.h"

namespace tactus::collective {

// Elements of a piece of a buffer whose elements have this type. Pieces of floats and of bytes are
// equally long in bytes.
template <typename T>
inline constexpr std::size_t kPieceElements = kPieceLength * sizeof(float) / sizeof(T);

// How many pieces a buffer of floats has. [elements]
inline std::size_t PiecesIn(std::size_t length) {
  return (length + kPieceLength - 1) / kPieceLength;
}

// How many exchanges a long one is made of, at least one; of both sides the same, as one's outgoing
// bytes are the other's incoming. Where one direction is over before the other, nothing travels in
// it.
inline std::size_t PiecesOfExchange(std::size_t outgoing_bytes, std::size_t incoming_bytes) {
  constexpr std::size_t kBytes = kPieceElements<std::byte>;
  const std::size_t longer = std::max(outgoing_bytes, incoming_bytes);
  return std::max<std::size_t>((longer + kBytes - 1) / kBytes, 1);
}

// The piece of that number, counted from 0; empty behind the buffer's end.
template <typename T>
std::span<T> PieceOf(std::span<T> buffer, std::size_t number) {
  const std::size_t begin = std::min(number * kPieceElements<T>, buffer.size());
  return buffer.subspan(begin, std::min(kPieceElements<T>, buffer.size() - begin));
}

// Elements of what each of so many members brings to a gathering that are gathered at once: what
// comes of all is one piece at most.
inline std::size_t PieceOfGathering(std::size_t members) {
  return std::max<std::size_t>(kPieceLength / std::max<std::size_t>(members, 1), 1);
}

// How many pieces a gathering has; at least one.
inline std::size_t PiecesOfGathering(std::size_t own_length, std::size_t members) {
  const std::size_t length = PieceOfGathering(members);
  return std::max<std::size_t>((own_length + length - 1) / length, 1);
}

}  // namespace tactus::collective
