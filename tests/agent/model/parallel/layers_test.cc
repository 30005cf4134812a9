// Layer norm, embedding, cross entropy and recomputation, each split against the whole.

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>

#include "agent/model/parallel/norm.h"
#include "agent/model/parallel/recompute.h"
#include "agent/model/parallel/split.h"
#include "agent/model/parallel/vocabulary.h"
#include "tests/agent/model/parallel/mesh_support.h"

namespace tactus::model {
namespace {

using collective::MeshShape;

at::Tensor Vector(const std::vector<float>& values) { return at::tensor(values); }

void ExpectNear(const at::Tensor& actual, const at::Tensor& expected, double bound) {
  ASSERT_EQ(actual.sizes(), expected.sizes());
  EXPECT_LE((actual - expected).abs().max().item<double>(), bound)
      << actual << "\nexpected " << expected;
}

// The vectors have nine digits, and their numbers are below 4: half a unit of the last one, and two
// roundings of a float32 of that size.
constexpr double kDigits = 5e-9 + 2 * 4 * 0x1.0p-24;

// Vector V2 of primary-algorithms.md, 5.h: h = 4 in two parts.
TEST(NormTest, V2OutputsAndGradients) {
  const MeshShape shape{1, 2};
  Assembly y(shape), dx(shape), dweight(shape), dbias(shape);
  OnMesh(shape, [&](const Mesh& mesh) {
    const auto part = [&](const std::vector<float>& values) {
      return BlockOf(Vector(values).unsqueeze(0), 0, mesh.j(), shape);
    };
    const at::Tensor x = part({.5, -1, 2, .25}).requires_grad_(true);
    const at::Tensor weight = part({1, 2, .5, 1}).squeeze(0).requires_grad_(true);
    const at::Tensor bias = part({0, .1, -.1, 0}).squeeze(0).requires_grad_(true);
    const at::Tensor own = SplitLayerNorm(mesh.row, x, weight, bias);
    torch::autograd::backward({own}, {part({.1, -.2, .3, .4})});
    y.Leave(mesh, own);
    dx.Leave(mesh, x.grad());
    dweight.Leave(mesh, weight.grad().unsqueeze(0));
    dbias.Leave(mesh, bias.grad().unsqueeze(0));
  });
  const auto row = [](const std::vector<float>& values) { return Vector(values).unsqueeze(0); };
  ExpectNear(y.Whole(), row({0.0586207803, -2.59655589, 0.632759754, -0.175862341}), kDigits);
  ExpectNear(dx.Whole(), row({0.0256240127, -0.214179298, -0.156642294, 0.34519758}), kDigits);
  ExpectNear(dweight.Whole(), row({0.00586207803, 0.269655589, 0.439655852, -0.0703449364}),
             kDigits);
  ExpectNear(dbias.Whole(), row({.1, -.2, .3, .4}), kDigits);
}

// Invariant 4 of 5.g, where sums of squares would cancel: a mean of 1000 and deviations of 0.01.
TEST(NormTest, OutputsHaveMeanZeroAndVarianceOneFarFromZero) {
  const MeshShape shape{1, 3};
  const at::Tensor x = at::arange(24, at::kFloat).view({2, 12}) * 0x1.0p-7F + 1000;
  Assembly y(shape);
  OnMesh(shape, [&](const Mesh& mesh) {
    y.Leave(mesh, SplitLayerNorm(mesh.row, BlockOf(x, 0, mesh.j(), shape), at::ones({4}),
                                 at::zeros({4})));
  });
  // The mean is rounded to 2^-14, of deviations of 2^-7 * 3.45; the rest is far smaller. Epsilon
  // takes 1e-5 / (2 variance).
  const double variance = 143.0 / 12 * 0x1.0p-14;
  ExpectNear(y.Whole().mean(1), at::zeros({2}), 0x1.0p-14 / std::sqrt(variance));
  ExpectNear(y.Whole().square().mean(1), at::full({2}, variance / (variance + 1e-5)), 1e-3);
}

// Vector V3 of 5.h: v = 4 in two parts; and the same with the last class not existing.
TEST(CrossEntropyTest, V3LossAndGradient) {
  const MeshShape shape{1, 2};
  const at::Tensor logits = Vector({1, 2, 3, .5}).unsqueeze(0);
  const std::vector<std::pair<std::int64_t, float>> cases = {{4, 0.460773489F}, {3, 0.407605964F}};
  for (const auto& [classes, expected] : cases) {
    Assembly gradient(shape);
    OnMesh(shape, [&, classes = classes, expected = expected](const Mesh& mesh) {
      const at::Tensor own = BlockOf(logits, 0, mesh.j(), shape).requires_grad_(true);
      const at::Tensor loss =
          SplitCrossEntropy(mesh.row, own, at::tensor({std::int64_t{2}}), classes);
      EXPECT_NEAR(loss.item<float>(), expected, kDigits);
      loss.sum().backward();
      gradient.Leave(mesh, own.grad());
    });
    if (classes == 4) {
      ExpectNear(gradient.Whole(),
                 Vector({0.0853688935, 0.232056712, -0.369204457, 0.0517788513}).unsqueeze(0),
                 kDigits);
    } else {
      EXPECT_EQ(gradient.At(0, 1)[0][1].item<float>(), 0);
    }
    // Invariant 5: the row of the gradient sums to 0.
    EXPECT_NEAR(gradient.Whole().sum().item<float>(), 0, kDigits);
  }
}

// Random rows against libtorch's own, 7 classes in three parts of three.
TEST(CrossEntropyTest, RowsAreThoseOfTheWholeAndIgnoredOnesHaveNothing) {
  const MeshShape shape{1, 3};
  const at::Tensor logits = WholeNumbers({5, 9}, 3, 1);
  const at::Tensor targets = at::tensor(std::vector<std::int64_t>{0, 3, 6, -1, 4});
  const at::Tensor whole = logits.narrow(1, 0, 7).clone().requires_grad_(true);
  const at::Tensor loss = at::cross_entropy_loss(whole, targets, {}, at::Reduction::None, -1);
  loss.sum().backward();
  Assembly gradient(shape);
  OnMesh(shape, [&](const Mesh& mesh) {
    const at::Tensor own = BlockOf(logits, 0, mesh.j(), shape).requires_grad_(true);
    const at::Tensor split = SplitCrossEntropy(mesh.row, own, targets, 7);
    ExpectNear(split.detach(), loss.detach(), kDigits);
    split.sum().backward();
    gradient.Leave(mesh, own.grad());
    // Ties go to the lowest class, as argmax has it.
    const at::Tensor right = SplitRightAnswers(mesh.row, own.detach(), targets, 7);
    EXPECT_TRUE(right.equal(whole.detach().argmax(1).eq(targets).to(at::kFloat)));
  });
  ExpectNear(gradient.Whole().narrow(1, 0, 7), whole.grad(), kDigits);
  EXPECT_EQ(gradient.Whole().narrow(1, 7, 2).abs().max().item<float>(), 0);
  EXPECT_EQ(gradient.Whole()[3].abs().max().item<float>(), 0);
}

// Logits of hundreds: exponentials alone would overflow.
TEST(CrossEntropyTest, LargeLogitsDoNotOverflow) {
  const MeshShape shape{1, 2};
  const at::Tensor logits = Vector({300, -300, 301, 0}).unsqueeze(0);
  OnMesh(shape, [&](const Mesh& mesh) {
    const at::Tensor loss = SplitCrossEntropy(mesh.row, BlockOf(logits, 0, mesh.j(), shape),
                                              at::tensor({std::int64_t{2}}), 4);
    // ln(1 + e^-1), at a rounding of 301.
    EXPECT_NEAR(loss.item<float>(), 0.313261688F, 301 * 0x1.0p-24);
  });
}

// Whole numbers: forward and gradient are exact. 7 tokens, of which the last part lacks some.
void HoldEmbeddingAgainstWhole(const MeshShape& shape, bool grid) {
  const int parts = grid ? shape.rows : shape.columns;
  const std::int64_t rows = parts * ((7 + parts - 1) / parts);
  at::Tensor padded = at::zeros({rows, 6});
  padded.narrow(0, 0, 7).copy_(WholeNumbers({7, 6}, 9, 1));
  const at::Tensor tokens = at::tensor(std::vector<std::int64_t>{3, 0, 6, 3, 2, 1});
  const at::Tensor dy = WholeNumbers({6, 6}, 9, 2);
  const at::Tensor whole = padded.clone().requires_grad_(true);
  torch::autograd::backward({at::embedding(whole, tokens)}, {dy});
  const MeshShape cut = grid ? shape : MeshShape{parts, 1};
  Assembly y(shape);
  std::vector<at::Tensor> gradients(static_cast<std::size_t>(shape.devices()));
  OnMesh(shape, [&](const Mesh& mesh) {
    const int i = grid ? mesh.i() : mesh.j();
    const at::Tensor own = BlockOf(padded, i, grid ? mesh.j() : 0, cut).requires_grad_(true);
    // In 2-D a row has samples of its own.
    const at::Tensor of_row = grid ? tokens.chunk(shape.rows)[static_cast<std::size_t>(i)] : tokens;
    const at::Tensor x =
        grid ? SummaEmbedding(mesh, own, of_row) : LineEmbedding(mesh.row, own, of_row);
    torch::autograd::backward({x}, {grid ? BlockOf(dy, i, mesh.j(), shape) : dy});
    y.Leave(mesh, x);
    EXPECT_TRUE(own.grad().equal(BlockOf(whole.grad(), i, grid ? mesh.j() : 0, cut)));
  });
  const at::Tensor expected = at::embedding(padded, tokens);
  EXPECT_TRUE(grid ? y.Whole().equal(expected) : y.At(0, 0).equal(expected));
}

TEST(EmbeddingTest, SplitInTwoDimensionsIsThatOfTheWhole) {
  for (const int q : {1, 2, 3}) HoldEmbeddingAgainstWhole({q, q}, true);
}

TEST(EmbeddingTest, SplitInOneDimensionIsThatOfTheWhole) {
  for (const int parts : {1, 2, 4}) HoldEmbeddingAgainstWhole({1, parts}, false);
}

// A layer there and back, in whole numbers, in one dimension; products have their own tests.
TEST(SplitTest, ALineOpensAndClosesAsTheWhole) {
  const MeshShape shape{1, 2};
  const at::Tensor x = WholeNumbers({3, 4}, 3, 1);
  const at::Tensor up = WholeNumbers({8, 4}, 3, 2);
  const at::Tensor down = WholeNumbers({4, 8}, 3, 3);
  const at::Tensor up_bias = WholeNumbers({8}, 3, 4);
  const at::Tensor down_bias = WholeNumbers({4}, 3, 5);
  const at::Tensor whole = x.clone().requires_grad_(true);
  const at::Tensor expected = at::linear(at::linear(whole, up, up_bias), down, down_bias);
  expected.sum().backward();
  OnMesh(shape, [&](const Mesh& mesh) {
    const std::unique_ptr<Split> split = MakeLineSplit(mesh.row);
    const auto j = static_cast<std::size_t>(mesh.j());
    const at::Tensor own = x.clone().requires_grad_(true);
    const at::Tensor wide = split->Open(own, up.chunk(2)[j], up_bias.chunk(2)[j]);
    const at::Tensor y = split->Close(wide, down.chunk(2, 1)[j], down_bias);
    y.sum().backward();
    EXPECT_TRUE(y.equal(expected));
    EXPECT_TRUE(own.grad().equal(whole.grad()));
  });
}

TEST(RecomputeTest, GradientsAreThoseOfWhatWasKept) {
  const at::Tensor weight = WholeNumbers({4, 4}, 3, 1).requires_grad_(true);
  int runs = 0;
  const std::function<at::Tensor(const at::Tensor&)> part = [&](const at::Tensor& x) {
    ++runs;
    return at::gelu(at::mm(x, weight));
  };
  const at::Tensor input = WholeNumbers({4, 4}, 3, 2);
  const at::Tensor kept = input.clone().requires_grad_(true);
  part(kept).sum().backward();
  const at::Tensor of_weight = weight.grad().clone();
  weight.mutable_grad().reset();
  runs = 0;
  const at::Tensor again = input.clone().requires_grad_(true);
  Recomputed(part, again).sum().backward();
  EXPECT_EQ(runs, 2);
  EXPECT_TRUE(again.grad().equal(kept.grad()));
  EXPECT_TRUE(weight.grad().equal(of_weight));
}

}  // namespace
}  // namespace tactus::model
