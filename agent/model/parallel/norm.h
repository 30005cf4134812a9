// Layer norm of rows whose channels are split over a mesh's row. Private to agent/model.

#pragma once

#include <ATen/ATen.h>

#include "agent/model/parallel/group.h"

namespace tactus::model {

// x [n, h / q], the group's members have the other channels; weight, bias [h / q], of these
// channels. Of each row's h channels y = (x - mean) / sqrt(variance + 1e-5) * weight + bias, where
// the variance is that of h, not of h - 1, values. The gradients of weight and bias are those of
// this member's rows alone. The group outlives the passes. Throws LostMesh.
//
// Forward moves 2 (q - 1) numbers a row, backward two sums.
//
// Source: [optimus]; primary-algorithms.md 5.c.2.
// Differs: mean and squared deviations of each member's channels are gathered and combined (the
// parallel form of Welford's), instead of sums of x and of x^2, whose difference cancels.
at::Tensor SplitLayerNorm(Group& row, const at::Tensor& x, const at::Tensor& weight,
                          const at::Tensor& bias);

}  // namespace tactus::model
