#include <string>
#include <utility>
#include <vector>

#include "agent/model/builtins.h"

namespace tactus::model {
namespace {

constexpr std::int64_t kBytes = 256;
constexpr double kMatrixDeviation = 0.02;

// Attention and MLP, each behind a norm and beside a residual path.
ModuleBlueprint Block(const BytesLmSizes& sizes) {
  const std::int64_t width = sizes.width;
  const std::string shape = "    heads, depth = " + std::to_string(sizes.heads) + ", " +
                            std::to_string(width / sizes.heads) + "\n";
  return {
      .type = "Block",
      .children = {LayerNorm("norm1", width), Linear("qkv", width, 3 * width),
                   Linear("out", width, width), LayerNorm("norm2", width),
                   Linear("up", width, 4 * width), Linear("down", 4 * width, width)},
      .source =
          "def forward(self, x, mask):\n" + shape +
          "    n, t, w = x.size(0), x.size(1), x.size(2)\n"
          "    parts = self.qkv.forward(self.norm1.forward(x)).view([n, t, 3, heads, depth])\n"
          "    q, k, v = parts.permute([2, 0, 3, 1, 4]).unbind(0)\n"
          "    scores = (q @ k.transpose(-2, -1)) * (depth ** -0.5) + mask\n"
          "    y = (scores.softmax(-1) @ v).transpose(1, 2).reshape([n, t, w])\n"
          "    x = x + self.out.forward(y)\n"
          "    return x + self.down.forward(torch.gelu(self.up.forward(self.norm2.forward(x))))\n"};
}

// As in the model it was taken from: normal matrices, biases and norms as the layers have them.
void SetMatrices(ModuleBlueprint& module) {
  for (TensorBlueprint& tensor : module.tensors) {
    if (tensor.shape.size() < 2) continue;
    tensor.initial = Initial::kNormal;
    tensor.scale = kMatrixDeviation;
  }
  for (ModuleBlueprint& child : module.children) SetMatrices(child);
}

}  // namespace

ModuleBlueprint BytesLm(const BytesLmSizes& sizes) {
  std::vector<ModuleBlueprint> blocks;
  std::string source =
      "def forward(self, tokens):\n"
      "    t = tokens.size(1)\n"
      "    x = self.token.forward(tokens) + self.position.weight[:t]\n"
      "    mask = torch.triu(x.detach().new_full([t, t], float(\"-inf\")), 1)\n";
  for (std::int64_t i = 0; i < sizes.layers; ++i) {
    blocks.push_back(Block(sizes));
    source += "    x = getattr(self.blocks, \"" + std::to_string(i) + "\").forward(x, mask)\n";
  }
  source += "    return self.head.forward(self.norm.forward(x))\n";
  ModuleBlueprint root{
      .type = "BytesLm",
      .children = {Embedding("token", kBytes, sizes.width),
                   Embedding("position", sizes.context, sizes.width),
                   List("blocks", std::move(blocks)), LayerNorm("norm", sizes.width),
                   Linear("head", sizes.width, kBytes)},
      .source = std::move(source)};
  SetMatrices(root);
  return root;
}

}  // namespace tactus::model
