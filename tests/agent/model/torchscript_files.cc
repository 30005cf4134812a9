#include "tests/agent/model/torchscript_files.h"

#include <torch/script.h>

namespace tactus::model {
namespace {

at::Tensor Values(const ScriptTensor& choice) {
  const auto options = at::TensorOptions().dtype(choice.float64 ? at::kDouble : at::kFloat);
  if (choice.fill) return torch::full(choice.shape, *choice.fill, options);
  std::int64_t count = 1;
  for (const std::int64_t size : choice.shape) count *= size;
  const at::Tensor index = torch::arange(1, count + 1, options);
  const at::Tensor values = (torch::sin(index * 1.7) * 0.4).reshape(choice.shape);
  return choice.transposed ? values.t() : values;
}

}  // namespace

void WriteTorchScript(const std::string& path, const std::vector<ScriptTensor>& tensors,
                      const std::string& source) {
  torch::jit::Module module("__torch__.Given");
  module.register_attribute("training", c10::BoolType::get(), true);
  for (const ScriptTensor& tensor : tensors) {
    at::Tensor value;
    if (!tensor.tied_to.empty()) {
      value = module.attr(tensor.tied_to).toTensor();
    } else if (!tensor.first_rows_of.empty()) {
      value = module.attr(tensor.first_rows_of).toTensor().detach().slice(0, 0, 2);
    } else {
      value = Values(tensor);
    }
    if (tensor.parameter && tensor.needs_gradient) value.requires_grad_(true);
    module.register_parameter(tensor.name, value, /*is_buffer=*/!tensor.parameter);
  }
  module.define(source);
  module.save(path);
}

void WriteClassifier(const std::string& path, const ClassifierSizes& sizes) {
  WriteTorchScript(path,
                   {{.name = "w1", .shape = {sizes.hidden, sizes.inputs}},
                    {.name = "b1", .shape = {sizes.hidden}},
                    {.name = "w2", .shape = {sizes.classes, sizes.hidden}},
                    {.name = "b2", .shape = {sizes.classes}}},
                   "def forward(self, x):\n"
                   "    h = torch.tanh(torch.linear(x, self.w1, self.b1))\n"
                   "    return torch.linear(h, self.w2, self.b2)\n");
}

}  // namespace tactus::model
