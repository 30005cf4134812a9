#include "agent/model/parallel/byte_transformer.h"

#include <cmath>
#include <limits>
#include <utility>

#include "agent/model/parallel/recompute.h"
#include "base/check.h"

namespace tactus::model {

ByteTransformer::ByteTransformer(const BytesLmSizes& sizes, bool recompute,
                                 std::unique_ptr<const Split> split,
                                 const torch::jit::Module& parameters)
    : sizes_(sizes), recompute_(recompute), split_(std::move(split)) {
  for (const auto& parameter : parameters.named_parameters()) {
    parameters_[parameter.name] = parameter.value;
  }
  for (std::int64_t i = 0; i < sizes.layers; ++i) {
    const Block block = BlockNamed("blocks." + std::to_string(i));
    blocks_.emplace_back([this, block](const at::Tensor& x) { return RunBlock(block, x); });
  }
}

at::Tensor ByteTransformer::Logits(const at::Tensor& tokens) {
  samples_ = tokens.size(0);
  const std::int64_t positions = tokens.size(1);
  TACTUS_CHECK(samples_ >= 1 && positions <= sizes_.context);
  at::Tensor x = split_->Embed(parameters_.at("token.weight"), tokens.reshape({-1}));
  const at::Tensor position = parameters_.at("position.weight").slice(0, 0, positions);
  x = (x.view({samples_, positions, -1}) + position).view({samples_ * positions, -1});
  mask_ = at::full({positions, positions}, -std::numeric_limits<float>::infinity(),
                   position.options().requires_grad(false))
              .triu(1);
  for (const auto& block : blocks_) x = recompute_ ? Recomputed(block, x) : block(x);
  const Layer norm = LayerNamed("norm");
  const Layer head = LayerNamed("head");
  return split_->Open(split_->Norm(x, norm.weight, norm.bias), head.weight, head.bias);
}

ByteTransformer::Layer ByteTransformer::LayerNamed(const std::string& name) const {
  return {parameters_.at(name + ".weight"), parameters_.at(name + ".bias")};
}

ByteTransformer::Block ByteTransformer::BlockNamed(const std::string& name) const {
  return {.norm1 = LayerNamed(name + ".norm1"),
          .qkv = LayerNamed(name + ".qkv"),
          .out = LayerNamed(name + ".out"),
          .norm2 = LayerNamed(name + ".norm2"),
          .up = LayerNamed(name + ".up"),
          .down = LayerNamed(name + ".down")};
}

// As bytes_lm.cc has it.
at::Tensor ByteTransformer::RunBlock(const Block& block, const at::Tensor& x) const {
  const Split& split = *split_;
  const at::Tensor normal = split.Norm(x, block.norm1.weight, block.norm1.bias);
  const at::Tensor attended = Attend(split.Open(normal, block.qkv.weight, block.qkv.bias));
  const at::Tensor between = x + split.Close(attended, block.out.weight, block.out.bias);
  const at::Tensor again = split.Norm(between, block.norm2.weight, block.norm2.bias);
  const at::Tensor wide = at::gelu(split.Open(again, block.up.weight, block.up.bias));
  return between + split.Close(wide, block.down.weight, block.down.bias);
}

// The member has whole heads of its samples: nothing travels.
at::Tensor ByteTransformer::Attend(const at::Tensor& qkv) const {
  const std::int64_t positions = mask_.size(0);
  const std::int64_t heads = sizes_.heads / split_->parts();
  const std::int64_t depth = sizes_.width / sizes_.heads;
  const std::vector<at::Tensor> parts =
      qkv.view({samples_, positions, 3, heads, depth}).permute({2, 0, 3, 1, 4}).unbind(0);
  const double scale = 1.0 / std::sqrt(static_cast<double>(depth));
  const at::Tensor scores = at::matmul(parts[0], parts[1].transpose(-2, -1)) * scale + mask_;
  return at::matmul(scores.softmax(-1), parts[2])
      .transpose(1, 2)
      .reshape({samples_ * positions, heads * depth});
}

}  // namespace tactus::model
