// What the language of kernels adds to C++, for the double of the CUDA runtime: qualifiers, the
// place of a thread in its grid, barriers, exchanges within a warp, and the intrinsics that Tactus
// uses.

#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tests/support/cuda_double/grid.h"

#define __host__
#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
// Blocks run one after the other, so one copy for all of them; filled with not-a-numbers before
// each.
#define __shared__ static __attribute__((section("cuda_double_shared")))

inline constexpr int warpSize = 32;

// An access of any of these, or of a number of 8 bytes, at an address that its size does not divide
// stops the process: what includes this is compiled with -fsanitize=alignment.
template <typename T>
struct alignas(16) Vector4 {
  T x, y, z, w;
};
using float4 = Vector4<float>;
using uint4 = Vector4<unsigned>;
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

struct alignas(8) float2 {
  float x, y;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

// Every thread of the block that has not ended meets at the same place.
inline void __syncthreads(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  tactus::cuda_double::BlockBarrier({file, line});
}

inline void __syncwarp(unsigned mask = 0xffffffffu, const char* file = __builtin_FILE(),
                       int line = __builtin_LINE()) {
  tactus::cuda_double::WarpExchange(mask, 0, {file, line});
}

inline void __threadfence() {}
inline void __threadfence_block() {}

namespace tactus::cuda_double {

// Hands `value` round the lanes of `mask` and takes that of lane `from`.
template <class T>
T Shuffle(unsigned mask, T value, unsigned from, Place place) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  const std::uint64_t* const lanes = WarpExchange(mask, bits, place);
  std::memcpy(&value, &lanes[from], sizeof(T));
  return value;
}

// The lane that a shuffle within groups of `width` lanes reads: its own where the source is
// outside.
inline unsigned Within(int width, unsigned source) {
  const unsigned group = static_cast<unsigned>(width);
  return source / group == Lane() / group ? source : Lane();
}

}  // namespace tactus::cuda_double

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize,
              const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  namespace d = tactus::cuda_double;
  const unsigned group = static_cast<unsigned>(width);
  const unsigned from = d::Lane() / group * group + static_cast<unsigned>(source) % group;
  return d::Shuffle(mask, value, from, {file, line});
}

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                   const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  namespace d = tactus::cuda_double;
  return d::Shuffle(mask, value, d::Within(width, d::Lane() + delta), {file, line});
}

template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize,
                 const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  namespace d = tactus::cuda_double;
  return d::Shuffle(mask, value, d::Within(width, d::Lane() - delta), {file, line});
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = warpSize,
                  const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  namespace d = tactus::cuda_double;
  const unsigned from = d::Lane() ^ static_cast<unsigned>(lane_mask);
  return d::Shuffle(mask, value, d::Within(width, from), {file, line});
}

inline unsigned __ballot_sync(unsigned mask, int predicate, const char* file = __builtin_FILE(),
                              int line = __builtin_LINE()) {
  const std::uint64_t* const lanes =
      tactus::cuda_double::WarpExchange(mask, predicate != 0 ? 1 : 0, {file, line});
  unsigned ballot = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1) != 0 && lanes[lane] != 0) ballot |= 1u << lane;
  }
  return ballot;
}

inline int __any_sync(unsigned mask, int predicate, const char* file = __builtin_FILE(),
                      int line = __builtin_LINE()) {
  return __ballot_sync(mask, predicate, file, line) != 0 ? 1 : 0;
}

inline int __all_sync(unsigned mask, int predicate, const char* file = __builtin_FILE(),
                      int line = __builtin_LINE()) {
  return __ballot_sync(mask, predicate, file, line) == mask ? 1 : 0;
}

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int bit = 0; bit < 32; ++bit) reversed |= (x >> bit & 1u) << (31 - bit);
  return reversed;
}
inline unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>(std::uint64_t{x} * y >> 32);
}
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __dsqrt_rn(double x) { return std::sqrt(x); }

// As the toolkit's: of integers of one type, and of floating-point numbers without the NaNs.
template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
T min(T x, T y) {
  return x < y ? x : y;
}
template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
T max(T x, T y) {
  return x > y ? x : y;
}
inline float min(float x, float y) { return std::fmin(x, y); }
inline float max(float x, float y) { return std::fmax(x, y); }
inline double min(double x, double y) { return std::fmin(x, y); }
inline double max(double x, double y) { return std::fmax(x, y); }

template <class T>
T __ldg(const T* place) {
  return *place;
}
template <class T>
T __ldcg(const T* place) {
  return *place;
}
template <class T>
T __ldcs(const T* place) {
  return *place;
}
template <class T>
void __stwb(T* place, T value) {
  *place = value;
}
template <class T>
void __stcs(T* place, T value) {
  *place = value;
}

// Atomic operations of integers alone: on floating-point numbers they would make a sum depend on
// the order in which blocks run, which no kernel of ours may.
template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
T atomicAdd(T* place, std::type_identity_t<T> value) {
  const T before = *place;
  *place += value;
  return before;
}
inline unsigned atomicInc(unsigned* place, unsigned last) {
  const unsigned before = *place;
  *place = before >= last ? 0 : before + 1;
  return before;
}
template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
T atomicMax(T* place, std::type_identity_t<T> value) {
  const T before = *place;
  if (value > before) *place = value;
  return before;
}
template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
T atomicMin(T* place, std::type_identity_t<T> value) {
  const T before = *place;
  if (value < before) *place = value;
  return before;
}
template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
T atomicOr(T* place, std::type_identity_t<T> value) {
  const T before = *place;
  *place |= value;
  return before;
}
template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
T atomicExch(T* place, std::type_identity_t<T> value) {
  const T before = *place;
  *place = value;
  return before;
}
