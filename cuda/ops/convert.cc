#include "cuda/ops/convert.h"

#include <cstddef>

#include "base/check.h"
#include "cuda/ops/clones.h"
#include "cuda/ops/convert_element.h"

namespace tactus::cuda::host {
namespace {

TACTUS_VECTOR_CLONES void ToBfloat16Loop(float factor, const float* __restrict from,
                                         std::uint16_t* __restrict to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] = Bfloat16Of(factor * from[i]);
}

TACTUS_VECTOR_CLONES void ToFloat16Loop(float factor, const float* __restrict from,
                                        std::uint16_t* __restrict to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] = Float16Of(factor * from[i]);
}

TACTUS_VECTOR_CLONES void FromBfloat16Loop(float factor, const std::uint16_t* __restrict from,
                                           float* __restrict to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] = OneNan(factor * OfBfloat16(from[i]));
}

TACTUS_VECTOR_CLONES void FromFloat16Loop(float factor, const std::uint16_t* __restrict from,
                                          float* __restrict to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] = OneNan(factor * OfFloat16(from[i]));
}

}  // namespace

void ToBfloat16(float factor, std::span<const float> from, std::span<std::uint16_t> to) {
  TACTUS_CHECK(from.size() == to.size());
  ToBfloat16Loop(factor, from.data(), to.data(), to.size());
}

void ToFloat16(float factor, std::span<const float> from, std::span<std::uint16_t> to) {
  TACTUS_CHECK(from.size() == to.size());
  ToFloat16Loop(factor, from.data(), to.data(), to.size());
}

void FromBfloat16(float factor, std::span<const std::uint16_t> from, std::span<float> to) {
  TACTUS_CHECK(from.size() == to.size());
  FromBfloat16Loop(factor, from.data(), to.data(), to.size());
}

void FromFloat16(float factor, std::span<const std::uint16_t> from, std::span<float> to) {
  TACTUS_CHECK(from.size() == to.size());
  FromFloat16Loop(factor, from.data(), to.data(), to.size());
}

}  // namespace tactus::cuda::host
