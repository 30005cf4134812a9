#include <string>
#include <utility>
#include <vector>

#include "agent/model/builtins.h"

namespace tactus::model {
namespace {

constexpr int kStages = 4;

// Two 3x3 convolutions beside a residual path, which is a 1x1 convolution where the shape changes.
ModuleBlueprint BasicBlock(std::int64_t inputs, std::int64_t outputs, std::int64_t stride) {
  ModuleBlueprint block{
      .type = "BasicBlock",
      .children = {Convolution(
                       "conv1",
                       {.inputs = inputs, .outputs = outputs, .stride = stride, .bias = false}),
                   BatchNorm("bn1", outputs),
                   Convolution("conv2", {.inputs = outputs, .outputs = outputs, .bias = false}),
                   BatchNorm("bn2", outputs)},
      .source =
          "def forward(self, x):\n"
          "    y = torch.relu_(self.bn1.forward(self.conv1.forward(x)))\n"
          "    y = self.bn2.forward(self.conv2.forward(y))\n"};
  if (stride == 1 && inputs == outputs) {
    block.source += "    return torch.relu_(y + x)\n";
    return block;
  }
  block.children.push_back(Sequential(
      "downsample",
      {Convolution(
           "",
           {.inputs = inputs, .outputs = outputs, .kernel = 1, .stride = stride, .bias = false}),
       BatchNorm("", outputs)}));
  block.source +=
      "    x = self.downsample.forward(x)\n"
      "    return torch.relu_(y + x)\n";
  return block;
}

}  // namespace

ModuleBlueprint Resnet18(const Resnet18Sizes& sizes) {
  ModuleBlueprint root{
      .type = "Resnet18",
      .children = {Convolution("conv1",
                               {.inputs = sizes.channels, .outputs = sizes.width, .bias = false}),
                   BatchNorm("bn1", sizes.width)},
      .source =
          "def forward(self, images):\n    x = "
          "torch.relu_(self.bn1.forward(self.conv1.forward(images)))\n"};
  std::int64_t inputs = sizes.width;
  for (int stage = 0; stage < kStages; ++stage) {
    const std::int64_t outputs = sizes.width << stage;
    const std::string name = "layer" + std::to_string(stage + 1);
    root.children.push_back(Sequential(
        name, {BasicBlock(inputs, outputs, stage == 0 ? 1 : 2), BasicBlock(outputs, outputs, 1)}));
    root.source += "    x = self." + name + ".forward(x)\n";
    inputs = outputs;
  }
  root.children.push_back(Linear("fc", inputs, sizes.classes));
  root.source += "    return self.fc.forward(x.mean([2, 3]))\n";
  return root;
}

}  // namespace tactus::model
