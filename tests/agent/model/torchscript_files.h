// TorchScript files such as a user would bring, made to order.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tactus::model {

// A tensor of a module. Its values are small, differ from one another and are always the same.
struct ScriptTensor {
  std::string name = {};
  std::vector<std::int64_t> shape = {};
  std::optional<float> fill = {};  // instead of the varied values
  std::string tied_to = {};        // the name of an earlier one: the very same tensor
  std::string first_rows_of = {};  // the name of an earlier one: a view of its first two rows
  bool parameter = true;           // false: a buffer
  bool needs_gradient = true;      // of a parameter
  bool float64 = false;
  bool transposed = false;  // not contiguous; two dimensions
};

// Saves a module with these tensors and methods.
void WriteTorchScript(const std::string& path, const std::vector<ScriptTensor>& tensors,
                      const std::string& source);

// A classifier for vectors: tanh layer, then linear; smooth, so that differences approximate
// gradients. Parameters in the order w1 [hidden, inputs], b1, w2 [classes, hidden], b2.
struct ClassifierSizes {
  std::int64_t inputs = 3;
  std::int64_t hidden = 4;
  std::int64_t classes = 2;
};
void WriteClassifier(const std::string& path, const ClassifierSizes& sizes);

}  // namespace tactus::model
