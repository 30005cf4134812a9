#include "agent/model/builtins.h"

namespace tactus::model {
namespace {

constexpr std::int64_t kHidden = 256;
constexpr std::int64_t kLastSide = 4;  // 32 pixels, halved three times

}  // namespace

// Pooling comes before the rectifier: the two commute, gradients included, and there is a quarter
// to rectify.
ModuleBlueprint CifarCnn(const CifarCnnSizes& sizes) {
  const std::int64_t w = sizes.width;
  const std::int64_t flat = 4 * w * kLastSide * kLastSide;
  return {.type = "CifarCnn",
          .children = {Convolution("conv1", {.inputs = sizes.channels, .outputs = w}),
                       Convolution("conv2", {.inputs = w, .outputs = 2 * w}),
                       Convolution("conv3", {.inputs = 2 * w, .outputs = 4 * w}),
                       Linear("hidden", flat, kHidden), Linear("output", kHidden, sizes.classes)},
          .source =
              "def forward(self, images):\n"
              "    x = torch.relu_(torch.max_pool2d(self.conv1.forward(images), [2, 2], [2, 2]))\n"
              "    x = torch.relu_(torch.max_pool2d(self.conv2.forward(x), [2, 2], [2, 2]))\n"
              "    x = torch.relu_(torch.max_pool2d(self.conv3.forward(x), [2, 2], [2, 2]))\n"
              "    return self.output.forward(torch.relu_(self.hidden.forward(torch.flatten(x, "
              "1))))\n"};
}

}  // namespace tactus::model
