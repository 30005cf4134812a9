// The transformer of bytes_lm.cc, split over a mesh. Private to agent/model.

#pragma once

#include <torch/script.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/model/builtins.h"
#include "agent/model/parallel/split.h"

namespace tactus::model {

// The forward pass of one member over its parts of the parameters. It neither moves nor dies before
// the last backward pass.
class ByteTransformer {
 public:
  // parameters: the member's parts by the dense model's names (partition.h). recompute: of a
  // block's activations its input alone is kept.
  ByteTransformer(const BytesLmSizes& sizes, bool recompute, std::unique_ptr<const Split> split,
                  const torch::jit::Module& parameters);
  ByteTransformer(const ByteTransformer&) = delete;
  ByteTransformer& operator=(const ByteTransformer&) = delete;

  // tokens int64 [n, t] of the row's samples, n >= 1, t <= context -> logits [n t, c] of its
  // part of the 256 bytes (vocabulary.h). Throws LostMesh, and what libtorch throws.
  at::Tensor Logits(const at::Tensor& tokens);

 private:
  // A layer's two tensors.
  struct Layer {
    at::Tensor weight;
    at::Tensor bias;
  };
  struct Block {
    Layer norm1, qkv, out, norm2, up, down;
  };

  Layer LayerNamed(const std::string& name) const;
  Block BlockNamed(const std::string& name) const;
  at::Tensor RunBlock(const Block& block, const at::Tensor& x) const;
  at::Tensor Attend(const at::Tensor& qkv) const;

  const BytesLmSizes sizes_;
  const bool recompute_;
  const std::unique_ptr<const Split> split_;
  std::map<std::string, at::Tensor> parameters_;
  std::vector<std::function<at::Tensor(const at::Tensor&)>> blocks_;

  // Of the pass under way, whose backward pass needs them, too.
  std::int64_t samples_ = 0;
  at::Tensor mask_;  // [t, t]: -inf for what is still to come
};

}  // namespace tactus::model
