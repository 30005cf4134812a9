#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/check.h"
#include "cuda/ops/gather.h"
#include "cuda/ops/launch.cuh"
#include "cuda/ops/reduce.cuh"
#include "cuda/ops/sweep.cuh"
#include "cuda/ops/vector.h"

namespace tactus::cuda::kernels {
namespace {

struct GatherBody {
  static constexpr int kSums = 1;

  float* out;
  std::uint32_t count;  // of parts
  bool adds;
  GatherPart parts[kGatherPartsMax];

  __device__ Cut CutAt(std::size_t offset, std::size_t length) const {
    return CutOf(length, out + offset);
  }

  // The last part that begins at i or before; the first, where none does.
  __device__ const GatherPart& PartAt(std::size_t i) const {
    std::uint32_t first = 0;
    for (std::uint32_t left = count; left > 1;) {
      const std::uint32_t half = left / 2;
      if (parts[first + half].offset <= i) first += half;
      left -= half;
    }
    return parts[first];
  }

  // A pack has elements of one part at most, as parts begin at multiples of 4.
  template <int width>
  __device__ Pack<width> Put(std::size_t i) const {
    Pack<width> pack{};
    if (adds) pack = Load<width>(out + i);
    const GatherPart& part = PartAt(i);
    const std::size_t at = i - part.offset;  // beyond any length where i is before the part
    const std::size_t left = at < part.length ? part.length - at : 0;
    if (left >= width && (width == 1 || PhaseOf(part.from) == 0)) {
      const Pack<width> values = Load<width>(part.from + at);
      for (int k = 0; k < width; ++k) pack.at[k] += values.at[k];
    } else {
      for (int k = 0; k < width; ++k) {
        if (static_cast<std::size_t>(k) < left) pack.at[k] += part.from[at + k];
      }
    }
    Store(out + i, pack);
    return pack;
  }

  template <int width>
  __device__ void At(std::size_t i) const {
    Put<width>(i);
  }

  // What two float32 do not hold is gone over again, when it was put already.
  template <int width, class Sum>
  __device__ void Add(std::size_t i, Sum (&sums)[kSums]) const {
    Pack<width> pack;
    if constexpr (std::is_same_v<Sum, TwoFloat>) {
      pack = Put<width>(i);
    } else {
      pack = Load<width>(out + i);
    }
    for (int k = 0; k < width; ++k) sums[0].Add(pack.at[k], pack.at[k]);
  }
  __device__ static bool Hold(const TwoFloat (&sums)[kSums]) { return sums[0].HoldsSquares(); }
};
static_assert(sizeof(GatherBody) + sizeof(ChunkRows) + sizeof(SumsViews) <= 4096);

// Of at most kGatherPartsMax parts, whose offsets are lessened by `origin`.
GatherBody BodyOf(std::span<const GatherPart> parts, std::size_t origin, bool adds, float* out) {
  GatherBody body{};
  body.out = out;
  body.count = static_cast<std::uint32_t>(parts.size());
  body.adds = adds;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    body.parts[i] = parts[i];
    body.parts[i].offset -= origin;
  }
  return body;
}

}  // namespace

void Gather(Stream stream, const Gathering& gathering, std::span<float> out, const SumsInto& into) {
  RequireFit(gathering, out);
  TACTUS_CHECK(PhaseOf(out.data()) == 0);
  const std::span<const GatherPart> parts = gathering.parts;
  if (parts.size() <= kGatherPartsMax && !into.sums.empty()) {
    return SumOfBuffer<true>(stream, BodyOf(parts, 0, gathering.adds, out.data()), out.size(),
                             into);
  }
  // The first launch begins at the front, each at its first part, and goes to the next one's.
  std::size_t begin = 0;
  for (std::size_t first = 0; begin < out.size(); first += kGatherPartsMax) {
    const std::size_t next = first + kGatherPartsMax;
    const std::size_t end = next < parts.size() ? parts[next].offset : out.size();
    const GatherBody body =
        BodyOf(parts.subspan(first, std::min(kGatherPartsMax, parts.size() - first)), begin,
               gathering.adds, out.data() + begin);
    Sweep(stream, CutOf(end - begin, body.out), body);
    begin = end;
  }
  if (!into.sums.empty()) AddSquaredNorm(stream, out, into);
}

}  // namespace tactus::cuda::kernels
