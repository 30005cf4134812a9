// The buffers of LAMB's tests, each between guard words.

#pragma once

#include <cstddef>

#include "cuda/ops/lamb.h"
#include "tests/cuda/ops/guarded.h"

namespace tactus::cuda {

// The four buffers of one test.
struct LambState {
  explicit LambState(std::size_t length)
      : gradients(length), parameters(length), first(length), second(length) {}

  LambBuffers buffers() {
    return {gradients.span(), parameters.span(), first.span(), second.span()};
  }
  LambBuffers part(const Segment& segment) {
    return {gradients.span().subspan(segment.offset, segment.length),
            parameters.span().subspan(segment.offset, segment.length),
            first.span().subspan(segment.offset, segment.length),
            second.span().subspan(segment.offset, segment.length)};
  }
  bool Intact() const {
    return gradients.Intact() && parameters.Intact() && first.Intact() && second.Intact();
  }

  Guarded gradients;
  Guarded parameters;
  Guarded first;
  Guarded second;
};

inline LambState RandomLambState(Rng& rng, std::size_t length) {
  LambState state(length);
  state.gradients = RandomBuffer(rng, length, 10);
  state.parameters = RandomBuffer(rng, length);
  state.first = RandomBuffer(rng, length, 0.1f);
  state.second = RandomBuffer(rng, length, 0.1f);
  for (float& value : state.second.span()) value *= value;
  return state;
}

inline SegmentTable OneSegment(std::size_t length) { return {{.name = "a", .length = length}}; }

}  // namespace tactus::cuda
