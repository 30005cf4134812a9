#include "cuda/ops/sgd.h"

#include <cstddef>

#include "base/check.h"
#include "cuda/ops/clones.h"
#include "cuda/ops/sgd_element.h"

namespace tactus::cuda::host {
namespace {

// One stretch of the flat buffers.
struct Stretch {
  const float* gradients;
  float* parameters;
  float* momentum_buffer;
  std::size_t length;
};

TACTUS_VECTOR_CLONES void PlainLoop(const SgdStep& step, const Stretch& stretch) {
  const SgdStep s = step;
  const float* __restrict gradients = stretch.gradients;
  float* __restrict parameters = stretch.parameters;
  float none = 0;
  for (std::size_t i = 0; i < stretch.length; ++i) {
    SgdElement<SgdKind::kPlain>(s, gradients[i], parameters[i], none);
  }
}

TACTUS_VECTOR_CLONES void MomentumLoop(const SgdStep& step, const Stretch& stretch) {
  const SgdStep s = step;
  const float* __restrict gradients = stretch.gradients;
  float* __restrict parameters = stretch.parameters;
  float* __restrict momentum_buffer = stretch.momentum_buffer;
  for (std::size_t i = 0; i < stretch.length; ++i) {
    SgdElement<SgdKind::kMomentum>(s, gradients[i], parameters[i], momentum_buffer[i]);
  }
}

TACTUS_VECTOR_CLONES void NesterovLoop(const SgdStep& step, const Stretch& stretch) {
  const SgdStep s = step;
  const float* __restrict gradients = stretch.gradients;
  float* __restrict parameters = stretch.parameters;
  float* __restrict momentum_buffer = stretch.momentum_buffer;
  for (std::size_t i = 0; i < stretch.length; ++i) {
    SgdElement<SgdKind::kNesterov>(s, gradients[i], parameters[i], momentum_buffer[i]);
  }
}

}  // namespace

void Sgd(const SgdStep& asked, std::span<const float> gradients, std::span<float> parameters,
         std::span<float> momentum_buffer) {
  SgdStep step = asked;
  if (!Through(step.gate, step.gradient_scale)) return;
  TACTUS_CHECK(gradients.size() == parameters.size());
  TACTUS_CHECK(!step.nesterov || step.momentum > 0);
  const Stretch stretch{gradients.data(), parameters.data(), momentum_buffer.data(),
                        parameters.size()};
  if (step.momentum == 0 && momentum_buffer.empty()) return PlainLoop(step, stretch);
  TACTUS_CHECK(momentum_buffer.size() == parameters.size());
  if (step.nesterov) return NesterovLoop(step, stretch);
  MomentumLoop(step, stretch);
}

}  // namespace tactus::cuda::host
