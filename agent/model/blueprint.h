// A model as plain data: what a built-in consists of, before libtorch makes a module of it.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tactus::model {

// How a tensor starts.
enum class Initial { kZero, kOne, kUniform, kNormal };

// One parameter or buffer of a module, float32.
struct TensorBlueprint {
  std::string name = {};
  std::vector<std::int64_t> shape = {};
  Initial initial = Initial::kZero;
  double scale = 0;     // kUniform: in [-scale, scale); kNormal: the standard deviation
  bool trained = true;  // false: a buffer
};

// A module: its tensors in registration order, then its children, then its methods.
struct ModuleBlueprint {
  std::string name = {};  // under which the parent knows it; empty for the root
  std::string type = {};  // class name in the saved TorchScript
  std::vector<TensorBlueprint> tensors = {};
  std::vector<ModuleBlueprint> children = {};
  std::string source = {};  // TorchScript text of its methods; may be empty for a mere container
};

// Layers as PyTorch has them, with the names of parameters and the initial distributions of
// torch.nn: weights and biases of Linear and Conv uniform in +-1/sqrt(fan_in), norms one and zero.
ModuleBlueprint Linear(const std::string& name, std::int64_t inputs, std::int64_t outputs);
ModuleBlueprint Embedding(const std::string& name, std::int64_t rows, std::int64_t width);
ModuleBlueprint LayerNorm(const std::string& name, std::int64_t width);
ModuleBlueprint BatchNorm(const std::string& name, std::int64_t channels);

// Sizes of a convolution with a square kernel, padded so that stride 1 keeps the image's size.
struct ConvolutionSizes {
  std::int64_t inputs = 1;   // channels
  std::int64_t outputs = 1;  // channels
  std::int64_t kernel = 3;   // odd
  std::int64_t stride = 1;
  bool bias = true;
};
ModuleBlueprint Convolution(const std::string& name, const ConvolutionSizes& sizes);

// A module that only holds others, named "0", "1", ... in their order.
ModuleBlueprint List(const std::string& name, std::vector<ModuleBlueprint> children);

// The same, with a forward that runs them one after the other.
ModuleBlueprint Sequential(const std::string& name, std::vector<ModuleBlueprint> children);

}  // namespace tactus::model
