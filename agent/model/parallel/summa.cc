#include "agent/model/parallel/summa.h"

#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "base/check.h"

namespace tactus::model::summa {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

int SideOf(const Mesh& mesh) {
  TACTUS_CHECK(mesh.row.size() == mesh.column.size());
  return mesh.row.size();
}

// An uninitialised matrix for a term of a.t() b, with the layout of `like`: row by row or column by
// column.
at::Tensor MatrixATB(const at::Tensor& a, const at::Tensor& b, const at::Tensor& like) {
  const std::int64_t rows = a.size(1);
  const std::int64_t columns = b.size(1);
  const at::TensorOptions options = b.options().requires_grad(false);
  const bool by_columns = like.defined() && !like.is_contiguous();
  return by_columns ? at::empty({columns, rows}, options).t() : at::empty({rows, columns}, options);
}

// The panels of one operand, one step ahead of their use.
class Panels {
 public:
  Panels(Group& group, const at::Tensor& own) : group_(group), own_(own) { Start(); }

  // Of the next step; the one behind it is under way from now on.
  at::Tensor Next() {
    at::Tensor panel = coming_.Take();
    Start();
    return panel;
  }

 private:
  void Start() {
    if (step_ < group_.size()) coming_ = group_.StartBroadcast(own_, step_);
    ++step_;
  }

  Group& group_;
  const at::Tensor& own_;
  int step_ = 0;
  Underway coming_;
};

// The sums of steps, of which each goes to another member: one is under way while the next term is
// computed.
class Sums {
 public:
  explicit Sums(Group& group) : group_(group) {}

  void Add(at::Tensor term) {
    Finish();
    leaving_ = group_.StartRootSum(std::move(term), step_++);
  }

  // The one of this member, when all are done.
  at::Tensor Own() {
    Finish();
    return std::move(own_);
  }

 private:
  void Finish() {
    at::Tensor sum = leaving_.Take();
    if (step_ - 1 == group_.rank()) own_ = std::move(sum);
  }

  Group& group_;
  int step_ = 0;
  Underway leaving_;
  at::Tensor own_;
};

// Groups are pointed to from autograd's graph.
void Keep(AutogradContext& context, const Mesh& mesh) {
  context.saved_data["row"] = reinterpret_cast<std::int64_t>(&mesh.row);
  context.saved_data["column"] = reinterpret_cast<std::int64_t>(&mesh.column);
}

Mesh Kept(AutogradContext& context) {
  return {.row = *reinterpret_cast<Group*>(context.saved_data["row"].toInt()),
          .column = *reinterpret_cast<Group*>(context.saved_data["column"].toInt())};
}

// A gradient as autograd gives it may be expanded, or any view.
at::Tensor WithoutHoles(const at::Tensor& tensor) {
  return tensor.is_non_overlapping_and_dense() ? tensor : tensor.contiguous();
}

struct FunctionAB : torch::autograd::Function<FunctionAB> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& a, const at::Tensor& b,
                            const Mesh& mesh) {
    Keep(*context, mesh);
    context->save_for_backward({a, b});
    return ProductAB(mesh, a, b);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Mesh mesh = Kept(*context);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor gradient = WithoutHoles(gradients[0]);
    at::Tensor of_a = ProductABT(mesh, gradient, saved[1]);
    return {std::move(of_a), ProductATB(mesh, saved[0], gradient, saved[1]), at::Tensor()};
  }
};

struct FunctionABT : torch::autograd::Function<FunctionABT> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& a, const at::Tensor& b,
                            const Mesh& mesh) {
    Keep(*context, mesh);
    context->save_for_backward({a, b});
    return ProductABT(mesh, a, b);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Mesh mesh = Kept(*context);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor gradient = WithoutHoles(gradients[0]);
    at::Tensor of_a = ProductAB(mesh, gradient, saved[1]);
    return {std::move(of_a), ProductATB(mesh, gradient, saved[0], saved[1]), at::Tensor()};
  }
};

struct FunctionATB : torch::autograd::Function<FunctionATB> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& a, const at::Tensor& b,
                            const Mesh& mesh) {
    Keep(*context, mesh);
    context->save_for_backward({a, b});
    return ProductATB(mesh, a, b);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Mesh mesh = Kept(*context);
    const variable_list saved = context->get_saved_variables();
    const at::Tensor gradient = WithoutHoles(gradients[0]);
    at::Tensor of_a = ProductABT(mesh, saved[1], gradient);
    return {std::move(of_a), ProductAB(mesh, saved[0], gradient), at::Tensor()};
  }
};

}  // namespace

at::Tensor ProductAB(const Mesh& mesh, const at::Tensor& a, const at::Tensor& b) {
  Panels a_panels(mesh.row, a);
  Panels b_panels(mesh.column, b);
  at::Tensor c = at::empty({a.size(0), b.size(1)}, a.options());
  for (int step = 0; step < SideOf(mesh); ++step) {
    const at::Tensor a_panel = a_panels.Next();
    const at::Tensor b_panel = b_panels.Next();
    if (step == 0) {
      at::mm_out(c, a_panel, b_panel);
    } else {
      c.addmm_(a_panel, b_panel);
    }
  }
  return c;
}

at::Tensor ProductABT(const Mesh& mesh, const at::Tensor& a, const at::Tensor& b) {
  Panels panels(mesh.column, b);
  Sums sums(mesh.row);
  for (int step = 0; step < SideOf(mesh); ++step) sums.Add(at::mm(a, panels.Next().t()));
  return sums.Own();
}

at::Tensor ProductATB(const Mesh& mesh, const at::Tensor& a, const at::Tensor& b,
                      const at::Tensor& like) {
  Panels panels(mesh.row, a);
  Sums sums(mesh.column);
  for (int step = 0; step < SideOf(mesh); ++step) {
    at::Tensor term = MatrixATB(a, b, like);
    at::mm_out(term, panels.Next().t(), b);
    sums.Add(std::move(term));
  }
  return sums.Own();
}

at::Tensor AB(const Mesh& mesh, const at::Tensor& a, const at::Tensor& b) {
  return FunctionAB::apply(a, b, mesh);
}

at::Tensor ABT(const Mesh& mesh, const at::Tensor& a, const at::Tensor& b) {
  return FunctionABT::apply(a, b, mesh);
}

at::Tensor ATB(const Mesh& mesh, const at::Tensor& a, const at::Tensor& b) {
  return FunctionATB::apply(a, b, mesh);
}

}  // namespace tactus::model::summa
