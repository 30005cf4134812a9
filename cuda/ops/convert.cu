#include "base/check.h"
#include "cuda/ops/convert.h"
#include "cuda/ops/convert_element.h"
#include "cuda/ops/launch.cuh"
#include "cuda/ops/sweep.cuh"

namespace tactus::cuda::kernels {
namespace {

// Reads from[0 .. width) into `bits`; for a width of 4 `from` is aligned to 8 bytes.
template <int width>
__device__ inline void LoadBits(const std::uint16_t* from, std::uint32_t (&bits)[width]) {
  if constexpr (width == 4) {
    const uint2 four = *reinterpret_cast<const uint2*>(from);
    bits[0] = four.x & 0xffff;
    bits[1] = four.x >> 16;
    bits[2] = four.y & 0xffff;
    bits[3] = four.y >> 16;
  } else {
    bits[0] = *from;
  }
}

template <int width>
__device__ inline void StoreBits(std::uint16_t* to, const std::uint32_t (&bits)[width]) {
  if constexpr (width == 4) {
    *reinterpret_cast<uint2*>(to) = make_uint2(bits[0] | bits[1] << 16, bits[2] | bits[3] << 16);
  } else {
    *to = static_cast<std::uint16_t>(bits[0]);
  }
}

// Format: how one element is converted either way.
struct Bfloat16 {
  __device__ static std::uint32_t Of(float x) { return Bfloat16Of(x); }
  __device__ static float Back(std::uint16_t bits) { return OfBfloat16(bits); }
};

struct Float16 {
  __device__ static std::uint32_t Of(float x) { return Float16Of(x); }
  __device__ static float Back(std::uint16_t bits) { return OfFloat16(bits); }
};

template <class Format>
struct ToBody {
  float factor;
  const float* from;
  std::uint16_t* to;

  template <int width>
  __device__ void At(std::size_t i) const {
    const Pack<width> x = Load<width>(from + i);
    std::uint32_t bits[width];
    for (int k = 0; k < width; ++k) bits[k] = Format::Of(factor * x.at[k]);
    StoreBits(to + i, bits);
  }
};

template <class Format>
struct FromBody {
  float factor;
  const std::uint16_t* from;
  float* to;

  template <int width>
  __device__ void At(std::size_t i) const {
    std::uint32_t bits[width];
    LoadBits(from + i, bits);
    Pack<width> x;
    for (int k = 0; k < width; ++k) {
      x.at[k] = OneNan(factor * Format::Back(static_cast<std::uint16_t>(bits[k])));
    }
    Store(to + i, x);
  }
};

// Fours only where the narrow ones then begin at 8 bytes.
Cut CutOfBoth(std::size_t n, const float* wide, const std::uint16_t* narrow) {
  const Cut cut = CutOf(n, {wide});
  const bool aligned = reinterpret_cast<std::uintptr_t>(narrow + cut.head) % sizeof(uint2) == 0;
  return aligned ? cut : Cut{.n = n, .head = n, .fours = 0};
}

template <class Format>
void To(Stream stream, float factor, std::span<const float> from, std::span<std::uint16_t> to) {
  TACTUS_CHECK(from.size() == to.size());
  Sweep(stream, CutOfBoth(to.size(), from.data(), to.data()),
        ToBody<Format>{.factor = factor, .from = from.data(), .to = to.data()});
}

template <class Format>
void From(Stream stream, float factor, std::span<const std::uint16_t> from, std::span<float> to) {
  TACTUS_CHECK(from.size() == to.size());
  Sweep(stream, CutOfBoth(to.size(), to.data(), from.data()),
        FromBody<Format>{.factor = factor, .from = from.data(), .to = to.data()});
}

}  // namespace

void ToBfloat16(Stream stream, float factor, std::span<const float> from,
                std::span<std::uint16_t> to) {
  To<Bfloat16>(stream, factor, from, to);
}

void ToFloat16(Stream stream, float factor, std::span<const float> from,
               std::span<std::uint16_t> to) {
  To<Float16>(stream, factor, from, to);
}

void FromBfloat16(Stream stream, float factor, std::span<const std::uint16_t> from,
                  std::span<float> to) {
  From<Bfloat16>(stream, factor, from, to);
}

void FromFloat16(Stream stream, float factor, std::span<const std::uint16_t> from,
                 std::span<float> to) {
  From<Float16>(stream, factor, from, to);
}

}  // namespace tactus::cuda::kernels
