// Layers of several models at once: B of one shape, with weights of their own. Private to this
// folder.
//
// Dense layers take [B, n, ..., features], convolutions [n, B channels, height, width]; parameters
// are those of the models, stacked: [B, ...]. What is of one model depends on nothing of another.
//
// Source: spec of fused arrays, operator map; [hfta].

#pragma once

#include <torch/script.h>

#include <cstdint>

namespace tactus::model {

// weight [B, outputs, inputs], bias [B, outputs]: x W^T + b by baddbmm.
at::Tensor FusedLinear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

// weight [B, outputs, inputs, k, k], bias [B, outputs]; by groups, one a model, padded by k / 2.
// x may be [n, channels, height, width], the same for all models.
at::Tensor FusedConvolution(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

// Rows of table [B, rows, width] by indices [B, ...], each at least 0 and below `rows`, which is
// not looked at here (CheckIndices): one look-up in a table of all rows, so that an index behind a
// model's own would be another's.
at::Tensor FusedEmbedding(const at::Tensor& indices, const at::Tensor& table);

// Over the last dimension; weight and bias [B, features].
at::Tensor FusedLayerNorm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

// [n, B channels, ...] -> [B, n, channels ...], flattened.
at::Tensor ToDense(const at::Tensor& x, std::int64_t models);

}  // namespace tactus::model
