// Activation checkpointing: a part of a model keeps its input alone and computes the rest again
// when its gradients are due. Private to agent/model.

#pragma once

#include <ATen/ATen.h>

#include <functional>

namespace tactus::model {

// part(x), of which nothing but x is kept until the backward pass, where it runs once more. The
// part outlives the passes, and is the same function both times; parameters that it uses get their
// gradients as ever. Requires: x needs a gradient, or nobody needs those of the part.
at::Tensor Recomputed(const std::function<at::Tensor(const at::Tensor&)>& part,
                      const at::Tensor& x);

}  // namespace tactus::model
