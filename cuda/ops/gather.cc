#include "cuda/ops/gather.h"

#include <algorithm>

#include "cuda/ops/clones.h"

namespace tactus::cuda::host {
namespace {

TACTUS_VECTOR_CLONES void AddLoop(const float* from, float* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] += from[i];
}

TACTUS_VECTOR_CLONES void ReplaceLoop(const float* from, float* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = 0.0f + from[i];
}

}  // namespace

void Gather(const Gathering& gathering, std::span<float> out) {
  RequireFit(gathering, out);
  std::size_t end = 0;  // of what is done
  for (const GatherPart& part : gathering.parts) {
    float* const to = out.data() + part.offset;
    if (gathering.adds) {
      AddLoop(part.from, to, part.length);
    } else {
      std::ranges::fill(out.subspan(end, part.offset - end), 0.0f);
      ReplaceLoop(part.from, to, part.length);
    }
    end = part.offset + part.length;
  }
  if (!gathering.adds) std::ranges::fill(out.subspan(end), 0.0f);
}

}  // namespace tactus::cuda::host
