#include "agent/model/parallel/norm.h"

#include <torch/csrc/autograd/custom_function.h>

#include <utility>

namespace tactus::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr double kEpsilon = 1e-5;

// Mean and inverse deviation, [n, 1] each, of rows of which this member has some channels.
std::pair<at::Tensor, at::Tensor> Statistics(Group& row, const at::Tensor& x) {
  const at::Tensor own_mean = x.mean(1);
  const at::Tensor own_square = (x - own_mean.unsqueeze(1)).square_().sum(1);
  const at::Tensor all = row.AllGather(at::stack({own_mean, own_square}));  // [q, 2, n]
  const at::Tensor means = all.select(1, 0);
  const at::Tensor mean = means.mean(0);
  const auto channels = static_cast<double>(x.size(1));
  const at::Tensor between = (means - mean).square().sum(0).mul_(channels);
  const at::Tensor variance = all.select(1, 1).sum(0).add_(between).div_(channels * row.size());
  return {mean.unsqueeze(1), variance.add_(kEpsilon).rsqrt_().unsqueeze(1)};
}

struct NormFunction : torch::autograd::Function<NormFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, Group* row) {
    const auto [mean, inverse] = Statistics(*row, x);
    context->saved_data["row"] = reinterpret_cast<std::int64_t>(row);
    context->save_for_backward({x, mean, inverse, weight});
    return (x - mean).mul_(inverse).mul_(weight).add_(bias);
  }

  // dx = inverse (w dy - mean(w dy) - x^ mean(w dy x^)), means over all h channels.
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    Group& row = *reinterpret_cast<Group*>(context->saved_data["row"].toInt());
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& dy = gradients[0];
    const at::Tensor& inverse = saved[2];
    const at::Tensor normal = (saved[0] - saved[1]).mul_(inverse);
    const at::Tensor weighted = dy * saved[3];
    const at::Tensor sums = at::stack({weighted.sum(1), (weighted * normal).sum(1)});
    row.AllSum(sums);
    sums.div_(static_cast<double>(normal.size(1) * row.size()));
    at::Tensor dx = weighted.sub(sums.select(0, 0).unsqueeze(1))
                        .sub_(normal * sums.select(0, 1).unsqueeze(1))
                        .mul_(inverse);
    return {std::move(dx), (dy * normal).sum(0), dy.sum(0), at::Tensor()};
  }
};

}  // namespace

at::Tensor SplitLayerNorm(Group& row, const at::Tensor& x, const at::Tensor& weight,
                          const at::Tensor& bias) {
  return NormFunction::apply(x, weight, bias, &row);
}

}  // namespace tactus::model
