#include "agent/model/fused_ops.h"

#include <vector>

namespace tactus::model {

at::Tensor FusedLinear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const std::int64_t models = weight.size(0);
  const at::Tensor rows = x.reshape({models, -1, weight.size(2)});
  const at::Tensor y = at::baddbmm(bias.unsqueeze(1), rows, weight.transpose(1, 2));
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = weight.size(1);
  return y.reshape(shape);
}

at::Tensor FusedConvolution(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const std::int64_t models = weight.size(0);
  const std::int64_t padding = weight.size(3) / 2;
  // Of an input that all share one wide convolution gives the same, and reads it once.
  const bool shared = models > 1 && x.size(1) == weight.size(2);
  return at::conv2d(x, weight.flatten(0, 1), bias.flatten(), 1, padding, 1, shared ? 1 : models);
}

at::Tensor FusedEmbedding(const at::Tensor& indices, const at::Tensor& table) {
  std::vector<std::int64_t> ones(static_cast<std::size_t>(indices.dim()), 1);
  ones[0] = table.size(0);
  const at::Tensor first =
      (at::arange(table.size(0), indices.options()) * table.size(1)).reshape(ones);
  return at::embedding(table.flatten(0, 1), indices + first);
}

at::Tensor FusedLayerNorm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(x.dim()), 1);
  shape.front() = x.size(0);
  shape.back() = x.size(-1);
  return at::layer_norm(x, {x.size(-1)}) * weight.reshape(shape) + bias.reshape(shape);
}

at::Tensor ToDense(const at::Tensor& x, std::int64_t models) {
  return x.reshape({x.size(0), models, -1}).transpose(0, 1);
}

}  // namespace tactus::model
