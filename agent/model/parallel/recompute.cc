#include "agent/model/parallel/recompute.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

namespace tactus::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using PartFunction = std::function<at::Tensor(const at::Tensor&)>;

struct RecomputedFunction : torch::autograd::Function<RecomputedFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const PartFunction* part) {
    context->saved_data["part"] = reinterpret_cast<std::int64_t>(part);
    context->save_for_backward({x});
    return (*part)(x);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto* part = reinterpret_cast<const PartFunction*>(context->saved_data["part"].toInt());
    const at::AutoGradMode with_gradients(true);
    const at::Tensor x = context->get_saved_variables()[0].detach().requires_grad_(true);
    torch::autograd::backward({(*part)(x)}, {gradients[0]});
    return {x.grad(), at::Tensor()};
  }
};

}  // namespace

at::Tensor Recomputed(const PartFunction& part, const at::Tensor& x) {
  return RecomputedFunction::apply(x, &part);
}

}  // namespace tactus::model
