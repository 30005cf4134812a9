#include "agent/model/blueprint.h"

#include <cmath>
#include <utility>

namespace tactus::model {
namespace {

double UniformScale(std::int64_t fan_in) { return 1.0 / std::sqrt(static_cast<double>(fan_in)); }

// "[3, 3]": a size that is the same in both directions, as TorchScript has it.
std::string Square(std::int64_t size) {
  return "[" + std::to_string(size) + ", " + std::to_string(size) + "]";
}

}  // namespace

ModuleBlueprint Linear(const std::string& name, std::int64_t inputs, std::int64_t outputs) {
  const double scale = UniformScale(inputs);
  return {.name = name,
          .type = "Linear",
          .tensors =
              {{.name = "weight",
                .shape = {outputs, inputs},
                .initial = Initial::kUniform,
                .scale = scale},
               {.name = "bias", .shape = {outputs}, .initial = Initial::kUniform, .scale = scale}},
          .source =
              "def forward(self, x):\n"
              "    return torch.linear(x, self.weight, self.bias)\n"};
}

ModuleBlueprint Embedding(const std::string& name, std::int64_t rows, std::int64_t width) {
  return {.name = name,
          .type = "Embedding",
          .tensors =
              {{.name = "weight", .shape = {rows, width}, .initial = Initial::kNormal, .scale = 1}},
          .source =
              "def forward(self, indices):\n"
              "    return torch.embedding(self.weight, indices)\n"};
}

ModuleBlueprint LayerNorm(const std::string& name, std::int64_t width) {
  return {.name = name,
          .type = "LayerNorm",
          .tensors = {{.name = "weight", .shape = {width}, .initial = Initial::kOne},
                      {.name = "bias", .shape = {width}}},
          .source = "def forward(self, x):\n    return torch.layer_norm(x, [" +
                    std::to_string(width) + "], self.weight, self.bias, 1e-05)\n"};
}

ModuleBlueprint BatchNorm(const std::string& name, std::int64_t channels) {
  return {.name = name,
          .type = "BatchNorm2d",
          .tensors = {{.name = "weight", .shape = {channels}, .initial = Initial::kOne},
                      {.name = "bias", .shape = {channels}},
                      {.name = "running_mean", .shape = {channels}, .trained = false},
                      {.name = "running_var",
                       .shape = {channels},
                       .initial = Initial::kOne,
                       .trained = false}},
          .source =
              "def forward(self, x):\n"
              "    return torch.batch_norm(x, self.weight, self.bias, self.running_mean,\n"
              "        self.running_var, self.training, 0.1, 1e-05, True)\n"};
}

ModuleBlueprint Convolution(const std::string& name, const ConvolutionSizes& sizes) {
  const double scale = UniformScale(sizes.inputs * sizes.kernel * sizes.kernel);
  ModuleBlueprint module{
      .name = name,
      .type = "Conv2d",
      .tensors = {{.name = "weight",
                   .shape = {sizes.outputs, sizes.inputs, sizes.kernel, sizes.kernel},
                   .initial = Initial::kUniform,
                   .scale = scale}},
      .source = {}};
  if (sizes.bias) {
    module.tensors.push_back(
        {.name = "bias", .shape = {sizes.outputs}, .initial = Initial::kUniform, .scale = scale});
  }
  module.source = std::string("def forward(self, x):\n    return torch.conv2d(x, self.weight, ") +
                  (sizes.bias ? "self.bias" : "None") + ", " + Square(sizes.stride) + ", " +
                  Square(sizes.kernel / 2) + ", [1, 1], 1)\n";
  return module;
}

ModuleBlueprint List(const std::string& name, std::vector<ModuleBlueprint> children) {
  for (std::size_t i = 0; i < children.size(); ++i) children[i].name = std::to_string(i);
  return {.name = name, .type = "ModuleList", .children = std::move(children), .source = {}};
}

ModuleBlueprint Sequential(const std::string& name, std::vector<ModuleBlueprint> children) {
  ModuleBlueprint module = List(name, std::move(children));
  module.type = "Sequential";
  module.source = "def forward(self, x):\n";
  for (const ModuleBlueprint& child : module.children) {
    module.source += "    x = getattr(self, \"" + child.name + "\").forward(x)\n";
  }
  module.source += "    return x\n";
  return module;
}

}  // namespace tactus::model
