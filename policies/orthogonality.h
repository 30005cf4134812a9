// How far the members' gradients agree: whether they say the same or each something of its own.

#pragma once

#include <cstdint>

#include "policies/adascale.h"

namespace tactus::policies {

// What Adasum combined. [gradient^2]
struct AdasumNorms {
  double combined_norm2 = 0;       // ||combined||^2
  double parts_norm2 = 0;          // sum_i ||v_i||^2
  std::uint32_t contributors = 0;  // P
};

// The share of the parts' energy that Adasum kept:
//
//   o = ||combined||^2 / sum_i ||v_i||^2
//
// Returns o in [1 / P, 1]: 1 / P if the parts are parallel and equally long, so that they were
// averaged, 1 if they are orthogonal, so that they were summed. Parts that point against each other
// can leave less than 1 / P; that counts as 1 / P. 1 for a single part, and where there was nothing
// to combine or a norm is not finite.
//
// Source: design. That Adasum averages parallel and sums orthogonal parts: [horovod] adasum.h.
double Orthogonality(const AdasumNorms& norms);

// The like of a mean gradient, from the mean cosine c of the members' gradients: equal to Adasum's
// at both ends, c = 0 and c = 1, and linear between them.
//
//   o = 1 - c (1 - 1/P),   c = (||g||^2 / m - k) / (1 - k)
//   m = sum_i b_i ||g_i||^2 / B,   k = sum_i b_i^2 / B^2
//
// as ||g||^2 = sum_i (b_i / B)^2 ||g_i||^2 + sum_{i != j} (b_i b_j / B^2) g_i . g_j. With equal
// samples k = 1/P and c = (P^2 ||g||^2 - sum_i ||g_i||^2) / ((P - 1) sum_i ||g_i||^2).
//
// samples_squared  [samples^2]  sum_i b_i^2, in (0, B^2)
// Returns o in [1 / P, 1]; 1 for a single part, without facts of mean gradients, and where the
// facts are not Usable.
//
// Approximated: every ||g_i||^2 is taken for their sample-weighted mean m, and a pair counts as
// b_i b_j. With unequal samples the gradients of small batches are longer by their noise, so that c
// is off by a little. And Adasum keeps more between the ends: (1 - c/2)^2 (1 + c) of two equally
// long parts.
//
// Source: design.
double Orthogonality(const UpdateFacts& facts, double samples_squared);

}  // namespace tactus::policies
