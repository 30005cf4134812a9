// The messages of one turn of a conversation.

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cuda/ops/segments.h"

namespace tactus::engine {

// A stretch of a message as numbers, as many whole ones as there are; it begins where one may.
template <typename Number>
std::span<Number> NumbersIn(std::span<std::byte> bytes) {
  return {reinterpret_cast<Number*>(bytes.data()), bytes.size() / sizeof(Number)};
}

// Memory for a message to or from each member, used turn after turn.
class Messages {
 public:
  // sizes: by member [bytes]. What stood here is gone. Messages begin at multiples of kAlignment.
  void MakeRoom(std::span<const std::size_t> sizes);

  std::span<std::byte> Of(int member) {
    const cuda::FlatRange place = places_[static_cast<std::size_t>(member)];
    return std::span(memory_).subspan(place.offset, place.length);
  }

 private:
  static constexpr std::size_t kAlignment = 16;

  std::vector<std::byte> memory_;
  std::vector<cuda::FlatRange> places_;  // by member [bytes]
};

}  // namespace tactus::engine
