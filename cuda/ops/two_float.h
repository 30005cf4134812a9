// TwoFloat: a sum of products of float32 kept in two float32, for devices whose float64 is a 32nd
// or a 64th of their float32; and the same sum in float64, for numbers beyond its range.
//
// A thread adds up the few elements of a chunk that are its own. What is kept is high + low:
//
//   p + r = a b        exactly: p rounded, r by a fused multiply-add
//   h + l = high + p   exactly: h rounded, l by Knuth's TwoSum
//   high <- h, low <- low + (l + r)
//
// so that only the sums of l and r round. With u = 2^-24, k terms and S the sum of |a b|:
// |l| <= u S and |r| <= u |a b|, so after the jth term |low| <= u (j + 1) S; that sum and l + r err
// by u of themselves each:
//
//   |error| <= u^2 S (k + 1 + (k + 1) (k + 2) / 2) < 2^-38 S for k <= 33.
//
// Of random numbers it is some 2^-46. All this is while nothing overflows, and while what is lost
// below the smallest float32, 2^-150 a term, is nothing next to S: see HoldsSquares. Ten operations
// of float32 for two of the float64 pipe, a conversion and a fused multiply-add.
//
// Source: Knuth, The Art of Computer Programming 2, 4.2.2 theorem B, memory, unverified.

#pragma once

#include <cmath>
#include <cstdint>

#include "cuda/ops/host_device.h"

namespace tactus::cuda {

class TwoFloat {
 public:
  TACTUS_HOST_DEVICE void Add(float a, float b) {
    const float product = a * b;
    const float rest = std::fma(a, b, -product);
    const float sum = high_ + product;
    const float of_product = sum - high_;
    const float lost = (high_ - (sum - of_product)) + (product - of_product);
    high_ = sum;
    low_ += lost + rest;
    seen_ |= __builtin_bit_cast(std::uint32_t, a);
  }

  TACTUS_HOST_DEVICE double value() const {
    return static_cast<double>(high_) + static_cast<double>(low_);
  }

  // Of a sum of squares: whether the bound holds, as nothing overflowed and 33 times 2^-150 is
  // below 2^-44 of it, or as all were zeros. Otherwise, and so where an element is not finite, the
  // sum is to be made anew in float64. Of two vectors whose squares it holds the products are
  // within it, too, and within 2^-44 of the product of the norms.
  TACTUS_HOST_DEVICE bool HoldsSquares() const {
    return (high_ >= 0x1p-100f && high_ - high_ == 0) || (seen_ & 0x7fffffff) == 0;
  }

 private:
  float high_ = 0;
  float low_ = 0;
  std::uint32_t seen_ = 0;  // of the first factors; costs nothing where nobody asks
};

// The same sum in float64, of any finite numbers: a product of two float32 is exact there.
class Float64Sum {
 public:
  TACTUS_HOST_DEVICE void Add(float a, float b) {
    value_ = std::fma(static_cast<double>(a), static_cast<double>(b), value_);
  }
  TACTUS_HOST_DEVICE double value() const { return value_; }

 private:
  double value_ = 0;
};

}  // namespace tactus::cuda
