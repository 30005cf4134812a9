#include "base/check.h"
#include "cuda/ops/convert.h"
#include "cuda/ops/convert_element.h"
#include "cuda/ops/launch.cuh"
#include "cuda/ops/sweep.cuh"

namespace tactus::cuda::kernels {
namespace {

// `width` neighbouring elements of 16 bits.
template <int width>
struct BitsPack {
  std::uint32_t at[width];
};

// Reads from[0 .. width); for a width of 4 `from` is aligned to 8 bytes.
template <int width>
__device__ inline BitsPack<width> LoadBits(const std::uint16_t* from) {
  if constexpr (width == 4) {
    const uint2 four = *reinterpret_cast<const uint2*>(from);
    return {{four.x & 0xffff, four.x >> 16, four.y & 0xffff, four.y >> 16}};
  } else {
    return {{*from}};
  }
}

template <int width>
__device__ inline void StoreBits(std::uint16_t* to, const std::uint32_t (&bits)[width]) {
  if constexpr (width == 4) {
    __stwb(reinterpret_cast<uint2*>(to),
           make_uint2(bits[0] | bits[1] << 16, bits[2] | bits[3] << 16));
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
  __device__ Pack<width> Read(std::size_t i) const {
    return Load<width>(from + i);
  }
  template <int width>
  __device__ void Write(std::size_t i, const Pack<width>& x) const {
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
  __device__ BitsPack<width> Read(std::size_t i) const {
    return LoadBits<width>(from + i);
  }
  template <int width>
  __device__ void Write(std::size_t i, const BitsPack<width>& bits) const {
    Pack<width> x;
    for (int k = 0; k < width; ++k) {
      x.at[k] = OneNan(factor * Format::Back(static_cast<std::uint16_t>(bits.at[k])));
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
  SweepPairs(stream, CutOfBoth(to.size(), from.data(), to.data()),
             ToBody<Format>{.factor = factor, .from = from.data(), .to = to.data()});
}

template <class Format>
void From(Stream stream, float factor, std::span<const std::uint16_t> from, std::span<float> to) {
  TACTUS_CHECK(from.size() == to.size());
  SweepPairs(stream, CutOfBoth(to.size(), to.data(), from.data()),
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
