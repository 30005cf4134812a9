// A transformer's layers, split over the members of a mesh in two dimensions or in one. Private to
// agent/model.

#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>

#include "agent/model/parallel/group.h"

namespace tactus::model {

// What differs between the two splits. Activations are [n, channels] here, n positions of all
// samples of the member's row; all members call the same in the same order. Not thread-safe; the
// groups outlive the passes. Throws LostMesh.
class Split {
 public:
  virtual ~Split() = default;

  // In how many parts the heads, and the channels within a block, are split.
  virtual int parts() const = 0;

  // Tokens int64 [n] -> the residual stream.
  virtual at::Tensor Embed(const at::Tensor& embedding, const at::Tensor& tokens) const = 0;

  // Of the residual stream.
  virtual at::Tensor Norm(const at::Tensor& x, const at::Tensor& weight,
                          const at::Tensor& bias) const = 0;

  // A linear layer from the residual stream to channels of which each member has a part, and one
  // back from these. Weights are as the dense layer has them, [outputs, inputs], but of the
  // member's part (partition.h).
  virtual at::Tensor Open(const at::Tensor& x, const at::Tensor& weight,
                          const at::Tensor& bias) const = 0;
  virtual at::Tensor Close(const at::Tensor& x, const at::Tensor& weight,
                           const at::Tensor& bias) const = 0;
};

// Optimus: q x q members, activations and parameters in blocks.
std::unique_ptr<Split> MakeGridSplit(const Mesh& mesh);

// Megatron's: the residual stream is whole on all members of the row; what a block makes of it, and
// its parameters, are in parts. Two sums for all a block, forward and backward.
//
// Source: [optimus], as the baseline there; primary-algorithms.md 5.c.3.
std::unique_ptr<Split> MakeLineSplit(Group& row);

}  // namespace tactus::model
