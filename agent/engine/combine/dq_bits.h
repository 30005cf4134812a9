// DQ-SGD's rule: how many bits a value gets.
//
// The bits that reach a given error with the least to send give every step the same share of it,
// and that comes to one spacing of the quantised values, whatever they are of, which shrinks
// geometrically to the end of training:
//
//   Delta_n = 1 / (kappa alpha^((N-1-n)/2))       n = 0 .. N-1 of N steps
//   b       = 1 + ceil(log2(1 + nu / Delta_n))    nu: the largest magnitude of what is quantised
//
// With rho = alpha^(-(N-1)/2), how many times finer the last step is than the first, and p = n /
// (N-1) of the training done, Delta = rho^(1-p) / kappa: no number of steps has to be known, and
// kappa says how fine the end is.
//
// Pure functions, of the same bits wherever they are computed: all members have to come to the same
// lengths of messages.
//
// Source: design; DQ-SGD as derived from its abstract. Differs: kappa is calibrated, by the bits
// that the first steps are to have, where the paper has constants of the loss that nobody knows.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tactus::engine {

inline constexpr unsigned kDqBitsMin = 2;  // one bit has no level
inline constexpr unsigned kDqBitsMax = 8;
inline constexpr unsigned kDqDense = 32;  // float32: more than kDqBitsMax would be needed

// Positive levels s of so many bits, >= 2.
constexpr unsigned DqLevels(unsigned bits) { return (1u << (bits - 1)) - 1; }

// Delta of a training of which `progress` in [0, 1] is done, where it is `last` at the end.
double DqSpacing(double last, double rho, double progress);

// b for values up to `largest` >= 0 in steps of `spacing` > 0: 0 where all are zero, else
// kDqBitsMin to kDqBitsMax, or kDqDense.
unsigned DqBits(double largest, double spacing);

// Bits of the sum of so many members' codes: the least that hold it exactly, up to kDqBitsMax; 0:
// it takes more.
unsigned DqSumBits(unsigned bits, unsigned members);

// What is quantised together.
struct DqUnit {
  std::size_t length = 0;  // [values]
  float largest = 0;       // magnitude, >= 0
};

// The finest spacing with which the units take no more than `bits` a value, by DqBits and counting
// those of units that are not zero; coarser ones than their largest would give no fewer bits. 0:
// all are zero.
double DqSpacingFor(std::span<const DqUnit> units, double bits);

}  // namespace tactus::engine
