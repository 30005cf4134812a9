// Products over meshes against products of whole matrices. Whole numbers: every sum is exact.

#include "agent/model/parallel/summa.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/agent/model/parallel/mesh_support.h"

namespace tactus::model {
namespace {

using collective::MeshShape;

at::Tensor Matrix(std::vector<std::int64_t> shape, const std::vector<float>& values) {
  return at::tensor(values).view(shape);
}

// Vector V1 of primary-algorithms.md, 5.h.
struct VectorOne {
  at::Tensor a = Matrix({4, 4}, {1, 2, 3, 4, 0, 1, -1, 2, 2, 0, 1, 1, -1, 3, 0, 2});
  at::Tensor w =
      Matrix({4, 6}, {1, 0, 2, -1, 3, 1, 0, 1, 1, 2, 0, -2, 2, -1, 0, 1, 1, 0, 1, 1, -1, 0, 2, 1});
  at::Tensor product = Matrix(
      {4, 6}, {11, 3, 0, 6, 14, 1, 0, 4, -1, 1, 3, 0, 5, 0, 3, -1, 9, 3, 1, 5, -1, 7, 1, -5});
  at::Tensor dc = Matrix(
      {4, 6}, {-2, -1, 0, 1, 2, -2, -1, 0, 1, 2, -2, -1, 0, 1, 2, -2, -1, 0, 1, 2, -2, -1, 0, 1});
  at::Tensor da = Matrix({4, 4}, {1, 5, 0, -1, -8, 7, -2, -7, 3, -1, -4, -3, -1, -4, -1, 6});
  at::Tensor dw = Matrix({4, 6}, {-3, -1, 6, -2, 0, -3, -2, 4, -5, 1, 2, -2,
                                  -5, -2, 1, -1, 7, -5, -8, 1, 0,  4, 3, -8});
};

TEST(SummaTest, V1ProductsAreExact) {
  const VectorOne v;
  const MeshShape shape{2, 2};
  Assembly product(shape), da(shape), dw(shape);
  OnMesh(shape, [&](const Mesh& mesh) {
    const auto block = [&](const at::Tensor& m) { return BlockOf(m, mesh.i(), mesh.j(), shape); };
    product.Leave(mesh, summa::ProductAB(mesh, block(v.a), block(v.w)));
    da.Leave(mesh, summa::ProductABT(mesh, block(v.dc), block(v.w)));
    dw.Leave(mesh, summa::ProductATB(mesh, block(v.a), block(v.dc)));
  });
  EXPECT_TRUE(product.Whole().equal(v.product)) << product.Whole();
  EXPECT_TRUE(da.Whole().equal(v.da)) << da.Whole();
  EXPECT_TRUE(dw.Whole().equal(v.dw)) << dw.Whole();
}

TEST(SummaTest, V1GradientsComeFromTheBackwardPass) {
  const VectorOne v;
  const MeshShape shape{2, 2};
  Assembly da(shape), dw(shape);
  OnMesh(shape, [&](const Mesh& mesh) {
    const auto block = [&](const at::Tensor& m) { return BlockOf(m, mesh.i(), mesh.j(), shape); };
    const at::Tensor a = block(v.a).requires_grad_(true);
    const at::Tensor w = block(v.w).requires_grad_(true);
    torch::autograd::backward({summa::AB(mesh, a, w)}, {block(v.dc)});
    da.Leave(mesh, a.grad());
    dw.Leave(mesh, w.grad());
  });
  EXPECT_TRUE(da.Whole().equal(v.da)) << da.Whole();
  EXPECT_TRUE(dw.Whole().equal(v.dw)) << dw.Whole();
}

// The three products, each as a function of whole matrices too.
struct Form {
  const char* name;
  at::Tensor (*over_mesh)(const Mesh&, const at::Tensor&, const at::Tensor&);
  at::Tensor (*whole)(const at::Tensor&, const at::Tensor&);
  std::vector<std::int64_t> a;  // in blocks of 2 x 3, ...
  std::vector<std::int64_t> b;
};

const std::vector<Form>& Forms() {
  static const std::vector<Form> forms = {
      {"AB",
       summa::AB,
       [](const at::Tensor& a, const at::Tensor& b) { return at::mm(a, b); },
       {2, 3},
       {3, 4}},
      {"ABT",
       summa::ABT,
       [](const at::Tensor& a, const at::Tensor& b) { return at::mm(a, b.t()); },
       {2, 3},
       {4, 3}},
      {"ATB",
       summa::ATB,
       [](const at::Tensor& a, const at::Tensor& b) { return at::mm(a.t(), b); },
       {3, 2},
       {3, 4}},
  };
  return forms;
}

// Forward and both gradients of one form over q x q.
void HoldAgainstWhole(const Form& form, int q) {
  const MeshShape shape{q, q};
  const at::Tensor a = WholeNumbers({q * form.a[0], q * form.a[1]}, 5, 1).requires_grad_(true);
  const at::Tensor b = WholeNumbers({q * form.b[0], q * form.b[1]}, 5, 2).requires_grad_(true);
  const at::Tensor c = form.whole(a, b);
  const at::Tensor dc = WholeNumbers(c.sizes().vec(), 5, 3);
  torch::autograd::backward({c}, {dc});
  Assembly of_c(shape), of_a(shape), of_b(shape);
  OnMesh(shape, [&](const Mesh& mesh) {
    const auto block = [&](const at::Tensor& m) {
      return BlockOf(m.detach(), mesh.i(), mesh.j(), shape);
    };
    const at::Tensor own_a = block(a).requires_grad_(true);
    const at::Tensor own_b = block(b).requires_grad_(true);
    const at::Tensor own_c = form.over_mesh(mesh, own_a, own_b);
    torch::autograd::backward({own_c}, {block(dc)});
    of_c.Leave(mesh, own_c);
    of_a.Leave(mesh, own_a.grad());
    of_b.Leave(mesh, own_b.grad());
  });
  EXPECT_TRUE(of_c.Whole().equal(c)) << form.name << " over " << q << " x " << q;
  EXPECT_TRUE(of_a.Whole().equal(a.grad())) << form.name << " over " << q << " x " << q;
  EXPECT_TRUE(of_b.Whole().equal(b.grad())) << form.name << " over " << q << " x " << q;
}

TEST(SummaTest, AllFormsAndTheirGradientsAreThoseOfWholeMatrices) {
  for (const Form& form : Forms()) {
    for (const int q : {1, 2, 3}) HoldAgainstWhole(form, q);
  }
}

// <AB, dC> = <A, dC B'> = <B, A' dC>: invariant 3 of 5.g, over 20 seeds.
TEST(SummaTest, InnerProductsAgree) {
  const MeshShape shape{2, 2};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const at::Tensor a = WholeNumbers({4, 6}, 3, seed);
    const at::Tensor b = WholeNumbers({6, 8}, 3, seed + 100);
    const at::Tensor dc = WholeNumbers({4, 8}, 3, seed + 200);
    Assembly c(shape), da(shape), db(shape);
    OnMesh(shape, [&](const Mesh& mesh) {
      const auto block = [&](const at::Tensor& m) { return BlockOf(m, mesh.i(), mesh.j(), shape); };
      c.Leave(mesh, summa::ProductAB(mesh, block(a), block(b)));
      da.Leave(mesh, summa::ProductABT(mesh, block(dc), block(b)));
      db.Leave(mesh, summa::ProductATB(mesh, block(a), block(dc)));
    });
    const float inner = (c.Whole() * dc).sum().item<float>();
    EXPECT_EQ(inner, (a * da.Whole()).sum().item<float>()) << seed;
    EXPECT_EQ(inner, (b * db.Whole()).sum().item<float>()) << seed;
  }
}

// A product is linear in each operand: the difference quotient of whole numbers is the gradient.
TEST(SummaTest, GradientsAreDifferenceQuotients) {
  const MeshShape shape{2, 2};
  const at::Tensor a = WholeNumbers({4, 4}, 3, 1);
  const at::Tensor b = WholeNumbers({4, 4}, 3, 2);
  Assembly da(shape);
  const auto sum_at = [&](const at::Tensor& at) {
    Assembly c(shape);
    OnMesh(shape, [&](const Mesh& mesh) {
      c.Leave(mesh, summa::ProductAB(mesh, BlockOf(at, mesh.i(), mesh.j(), shape),
                                     BlockOf(b, mesh.i(), mesh.j(), shape)));
    });
    return c.Whole().sum().item<float>();
  };
  OnMesh(shape, [&](const Mesh& mesh) {
    const at::Tensor own = BlockOf(a, mesh.i(), mesh.j(), shape).requires_grad_(true);
    summa::AB(mesh, own, BlockOf(b, mesh.i(), mesh.j(), shape)).sum().backward();
    da.Leave(mesh, own.grad());
  });
  for (std::int64_t i = 0; i < 4; ++i) {
    for (std::int64_t j = 0; j < 4; ++j) {
      at::Tensor above = a.clone();
      at::Tensor below = a.clone();
      above[i][j] += 1;
      below[i][j] -= 1;
      EXPECT_EQ((sum_at(above) - sum_at(below)) / 2, da.Whole()[i][j].item<float>());
    }
  }
}

// A weight as it is stored, [outputs, inputs], is an operand seen from the side.
TEST(SummaTest, AnOperandMayBeTransposedInMemory) {
  const MeshShape shape{2, 2};
  const at::Tensor a = WholeNumbers({4, 6}, 3, 1);
  const at::Tensor weight = WholeNumbers({8, 6}, 3, 2);
  Assembly c(shape);
  Assembly gradient({2, 2});
  OnMesh(shape, [&](const Mesh& mesh) {
    // Block (inputs i, outputs j) of the transposed weight, stored by outputs.
    const at::Tensor own = BlockOf(weight, mesh.j(), mesh.i(), shape).requires_grad_(true);
    const at::Tensor product = summa::AB(mesh, BlockOf(a, mesh.i(), mesh.j(), shape), own.t());
    product.sum().backward();
    c.Leave(mesh, product);
    EXPECT_TRUE(own.grad().is_contiguous());
    gradient.Leave(mesh, own.grad().t());
  });
  EXPECT_TRUE(c.Whole().equal(at::mm(a, weight.t())));
  EXPECT_TRUE(gradient.Whole().equal(a.sum(0).unsqueeze(1).expand({6, 8})));
}

TEST(SummaTest, AMeshThatEndsIsSaid) {
  std::vector<collective::MeshGroups> groups =
      collective::MakeInProcessMeshes(4, {2, 2}, [] { return Instant{}; });
  groups[3] = {};  // has left
  Group row(*groups[2].row);
  Group column(*groups[2].column);
  Group::Pair(row, column);
  const at::Tensor block = at::ones({2, 2});
  EXPECT_THROW(summa::ProductAB({.row = row, .column = column}, block, block), LostMesh);
}

}  // namespace
}  // namespace tactus::model
