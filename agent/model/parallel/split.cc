#include "agent/model/parallel/split.h"

#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "agent/model/parallel/norm.h"
#include "agent/model/parallel/summa.h"
#include "agent/model/parallel/vocabulary.h"

namespace tactus::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The same on all members going forward; backward, what each of them made of it is summed.
struct FanOut : torch::autograd::Function<FanOut> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, Group* row) {
    context->saved_data["row"] = reinterpret_cast<std::int64_t>(row);
    return x.view_as(x);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor sum = gradients[0].clone(at::MemoryFormat::Contiguous);
    reinterpret_cast<Group*>(context->saved_data["row"].toInt())->AllSum(sum);
    return {sum, at::Tensor()};
  }
};

// The opposite: a sum over the members, whose gradient all of them have.
struct SumUp : torch::autograd::Function<SumUp> {
  static at::Tensor forward(AutogradContext* /*context*/, const at::Tensor& term, Group* row) {
    at::Tensor sum = term.clone(at::MemoryFormat::Contiguous);
    row->AllSum(sum);
    return sum;
  }
  static variable_list backward(AutogradContext* /*context*/, const variable_list& gradients) {
    return {gradients[0], at::Tensor()};
  }
};

class GridSplit final : public Split {
 public:
  explicit GridSplit(const Mesh& mesh) : mesh_(mesh) {}

  int parts() const override { return mesh_.row.size(); }

  at::Tensor Embed(const at::Tensor& embedding, const at::Tensor& tokens) const override {
    return SummaEmbedding(mesh_, embedding, tokens);
  }
  at::Tensor Norm(const at::Tensor& x, const at::Tensor& weight,
                  const at::Tensor& bias) const override {
    return SplitLayerNorm(mesh_.row, x, weight, bias);
  }
  at::Tensor Open(const at::Tensor& x, const at::Tensor& weight,
                  const at::Tensor& bias) const override {
    return summa::AB(mesh_, x, weight.t()).add_(bias);
  }
  at::Tensor Close(const at::Tensor& x, const at::Tensor& weight,
                   const at::Tensor& bias) const override {
    return Open(x, weight, bias);
  }

 private:
  const Mesh mesh_;
};

class LineSplit final : public Split {
 public:
  explicit LineSplit(Group& row) : row_(row) {}

  int parts() const override { return row_.size(); }

  at::Tensor Embed(const at::Tensor& embedding, const at::Tensor& tokens) const override {
    return LineEmbedding(row_, embedding, tokens);
  }
  at::Tensor Norm(const at::Tensor& x, const at::Tensor& weight,
                  const at::Tensor& bias) const override {
    return at::layer_norm(x, {x.size(1)}, weight, bias);
  }
  at::Tensor Open(const at::Tensor& x, const at::Tensor& weight,
                  const at::Tensor& bias) const override {
    return at::linear(FanOut::apply(x, &row_), weight, bias);
  }
  at::Tensor Close(const at::Tensor& x, const at::Tensor& weight,
                   const at::Tensor& bias) const override {
    return SumUp::apply(at::linear(x, weight), &row_).add_(bias);
  }

 private:
  Group& row_;
};

}  // namespace

std::unique_ptr<Split> MakeGridSplit(const Mesh& mesh) { return std::make_unique<GridSplit>(mesh); }

std::unique_ptr<Split> MakeLineSplit(Group& row) { return std::make_unique<LineSplit>(row); }

}  // namespace tactus::model
