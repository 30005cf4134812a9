// Matrix products over a mesh of q x q members, by SUMMA: member (i, j) has block (i, j) of every
// operand and of every result, so that nothing is ever laid out anew between products. Private to
// agent/model.
//
//   AB    C_ij = sum over t of A_it B_tj    A travels along rows, B along columns
//   ABT   C_it = sum over j of A_ij B_tj'   B travels along columns, the sum along rows
//   ATB   C_tj = sum over i of A_it' B_ij   A travels along rows, the sum along columns
//
// The three are closed under differentiation. What step t + 1 needs is under way while step t
// multiplies, and so is the sum of step t - 1: two buffers of each kind.
//
// Source: [optimus]; primary-algorithms.md 5.c.1.

#pragma once

#include <ATen/ATen.h>

#include "agent/model/parallel/group.h"

namespace tactus::model::summa {

// Blocks are matrices of float32 without holes in memory. mesh: as many rows as columns. All
// members call the same products in the same order. Throws LostMesh.
at::Tensor ProductAB(const Mesh& mesh, const at::Tensor& a, const at::Tensor& b);
// The result's layout: that of `like`, or row by row where that is undefined.
at::Tensor ProductABT(const Mesh& mesh, const at::Tensor& a, const at::Tensor& b);
at::Tensor ProductATB(const Mesh& mesh, const at::Tensor& a, const at::Tensor& b,
                      const at::Tensor& like = {});

// The same as functions that autograd knows; backward passes go through the mesh, too, on all
// members in the same order. The groups outlive the passes. Both operands' gradients are always
// computed, as all members have to take part.
at::Tensor AB(const Mesh& mesh, const at::Tensor& a, const at::Tensor& b);
at::Tensor ABT(const Mesh& mesh, const at::Tensor& a, const at::Tensor& b);
at::Tensor ATB(const Mesh& mesh, const at::Tensor& a, const at::Tensor& b);

}  // namespace tactus::model::summa
