#include "agent/engine/combine/messages.h"

namespace tactus::engine {

void Messages::MakeRoom(std::span<const std::size_t> sizes) {
  places_.clear();
  std::size_t end = 0;
  for (const std::size_t size : sizes) {
    places_.push_back({.offset = end, .length = size});
    end += (size + kAlignment - 1) / kAlignment * kAlignment;
  }
  if (memory_.size() < end) memory_.resize(end);
}

}  // namespace tactus::engine
