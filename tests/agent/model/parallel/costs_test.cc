// What a layer moves and keeps, each cell of the paper's tables by counting.
//
// A layer is what a model of two has more than a model of one. The formulas are the specification's
// with pipelined broadcasts, without the factor log q of trees; of the q panels of an operand one
// is the member's own and never moves, which is the factor (q - 1) / q.
//
// Source: [optimus]; primary-algorithms.md 5.c.3, 5.c.4.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "agent/model/parallel/partition.h"
#include "agent/model/parallel/partitioned_model.h"
#include "tests/agent/collective/groups.h"
#include "tests/agent/model/parallel/memory_watch.h"
#include "tests/agent/model/parallel/mesh_support.h"

namespace tactus::model {
namespace {

// A batch of b samples of s positions, h channels, p devices.
struct Sizes {
  double b = 0;
  double s = 0;
  double h = 0;
  double p = 1;
};

double OneDimension(const Sizes& z) { return 4 * (z.p - 1) / z.p * z.b * z.s * z.h; }
double Operands(const Sizes& z) { return 7 * z.b * z.s * z.h + 12 * z.h * z.h; }
double Tree(const Sizes& z) { return std::log2(z.p) / (2 * std::sqrt(z.p)) * Operands(z); }
double Pipelined(const Sizes& z) { return Operands(z) / std::sqrt(z.p); }

// The vector has nine digits.
void ExpectNine(double actual, double expected) { EXPECT_NEAR(actual, expected, 5e-9 * expected); }

TEST(CostsTest, V4FormulasAreTheSpecifications) {
  const Sizes small{.b = 60, .s = 512, .h = 2048, .p = 4};
  ExpectNine(OneDimension(small), 188743680);
  ExpectNine(2 * OneDimension(small), 377487360);
  ExpectNine(Tree(small), 245366784);
  ExpectNine(3 * Tree(small), 736100352);
  const Sizes large{.b = 384, .s = 512, .h = 8192, .p = 64};
  ExpectNine(OneDimension(large), 6.34178765e9);
  ExpectNine(2 * OneDimension(large), 1.26835753e10);
  ExpectNine(Tree(large), 4.52984832e9);
  ExpectNine(3 * Tree(large), 1.3589545e10);
}

constexpr std::uint64_t kCounted = 36;  // as many for each of 1, 2, 4 and 9 members
constexpr std::uint64_t kContext = 8;
constexpr std::uint64_t kWidth = 24;
constexpr std::uint64_t kTokens = kCounted * kContext;

// What one member moves forward, and backward.
struct Moved {
  Volume forward;
  Volume backward;
};

Volume Minus(const Volume& a, const Volume& b) {
  return {.broadcast = a.broadcast - b.broadcast,
          .summed = a.summed - b.summed,
          .all_summed = a.all_summed - b.all_summed,
          .gathered = a.gathered - b.gathered};
}

// Of every member.
std::vector<Moved> MovedWith(ModelOptions options, std::uint32_t layers) {
  options.layers = layers;
  const ExampleSet examples = Tokens(kCounted, kContext);
  std::vector<Moved> moved(options.mesh.devices);
  OnParts(options, [&](int rank, BoundPart& part) {
    Moved& own = moved[static_cast<std::size_t>(rank)];
    const Examples share = ShareOf(examples, 0, kCounted, rank, options.mesh.devices);
    EXPECT_TRUE(part.model->Evaluate(share).ok());
    own.forward = part.model->TakeMoved();
    part.Step(share);
    own.backward = Minus(part.model->TakeMoved(), own.forward);
  });
  return moved;
}

std::vector<Moved> MovedByALayer(const ModelOptions& options) {
  std::vector<Moved> two = MovedWith(options, 2);
  const std::vector<Moved> one = MovedWith(options, 1);
  for (std::size_t rank = 0; rank < two.size(); ++rank) {
    two[rank].forward = Minus(two[rank].forward, one[rank].forward);
    two[rank].backward = Minus(two[rank].backward, one[rank].backward);
  }
  return two;
}

ModelOptions Lm(MeshKind kind, std::uint32_t devices, bool recompute) {
  ModelOptions options = SmallLm(kind, devices);
  options.recompute = recompute;
  return options;
}

TEST(CostsTest, ALayerInTwoDimensionsMovesWhatTheFormulasSay) {
  for (const std::uint64_t q : {2, 3}) {
    const double products =
        Pipelined({.b = kCounted, .s = kContext, .h = kWidth, .p = static_cast<double>(q * q)}) *
        static_cast<double>(q - 1) / static_cast<double>(q);
    for (const bool recompute : {false, true}) {
      const auto devices = static_cast<std::uint32_t>(q * q);
      for (const Moved& moved : MovedByALayer(Lm(MeshKind::k2d, devices, recompute))) {
        EXPECT_EQ(static_cast<double>(moved.forward.broadcast), products);
        EXPECT_EQ(moved.forward.summed, 0U);
        // Twice products, and forward once more where it is computed again.
        EXPECT_EQ(static_cast<double>(moved.backward.broadcast + moved.backward.summed),
                  (recompute ? 3 : 2) * products);
        // Beside the formulas: two numbers a token and norm, of two norms.
        EXPECT_EQ(moved.forward.gathered, 2 * 2 * (kTokens / q) * (q - 1));
        EXPECT_EQ(moved.backward.gathered, recompute ? moved.forward.gathered : 0);
        // And in the backward pass sums of two numbers a token and norm, and gradients of vectors:
        // 13 h / q of a layer, in one sum with all others, rounded down once.
        const std::uint64_t norms = 2 * (2 * 2 * (kTokens / q) * (q - 1) / q);
        const std::uint64_t vectors = 2 * 13 * (kWidth / q) * (q - 1) / q;
        EXPECT_NEAR(static_cast<double>(moved.backward.all_summed),
                    static_cast<double>(norms + vectors), 1);
        EXPECT_EQ(moved.forward.all_summed, 0U);
      }
    }
  }
}

TEST(CostsTest, ALayerInOneDimensionMovesWhatTheFormulasSay) {
  for (const std::uint32_t devices : {2U, 4U}) {
    const double forward = OneDimension(
        {.b = kCounted, .s = kContext, .h = kWidth, .p = static_cast<double>(devices)});
    for (const bool recompute : {false, true}) {
      for (const Moved& moved : MovedByALayer(Lm(MeshKind::k1d, devices, recompute))) {
        EXPECT_EQ(static_cast<double>(moved.forward.Total()), forward);
        EXPECT_EQ(static_cast<double>(moved.forward.all_summed), forward);
        EXPECT_EQ(static_cast<double>(moved.backward.Total()), (recompute ? 2 : 1) * forward);
      }
    }
  }
}

// What is counted is what sockets carry: payload in and out, and the headers of messages, 8 bytes
// each. Of two members, so that short sums go no other way than long ones.
TEST(CostsTest, SocketsCarryWhatIsCounted) {
  ModelOptions options = SmallLm(MeshKind::k2d, 4);
  options.width = 96;
  const ExampleSet examples = Tokens(64, kContext);
  const std::vector<collective::TcpMeeting> meetings = collective::MeetInMemory(4);
  std::vector<double> counted(4);
  std::vector<double> carried(4);
  collective::OnEveryRank(4, [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    collective::ConnectedMesh mesh = collective::ConnectTcpMesh(meetings[index], 1, {2, 2});
    ASSERT_EQ(mesh.reason, "");
    const auto bytes = [&mesh] {
      return static_cast<double>(mesh.groups.row->awaiting().bytes_moved +
                                 mesh.groups.column->awaiting().bytes_moved);
    };
    BoundPart part(options, mesh.groups);
    const double before = bytes();
    part.Step(ShareOf(examples, 0, 64, rank, 4));
    carried[index] = bytes() - before;
    counted[index] = 4 * static_cast<double>(part.model->TakeMoved().Total());
    EXPECT_EQ(mesh.world.front()->StartBarrier()->Wait().progress, collective::Progress::kDone);
  });
  double all_counted = 0;
  double all_carried = 0;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    all_counted += 2 * counted[rank];  // what is sent is received, too
    all_carried += carried[rank];
  }
  EXPECT_GE(all_carried, all_counted);
  EXPECT_LE(all_carried, 1.02 * all_counted);
}

// The most that one member has taken for tensors in a pass.
std::vector<std::int64_t> PeaksWith(ModelOptions options, std::uint32_t layers) {
  options.layers = layers;
  const ExampleSet examples = Tokens(kCounted, kContext);
  std::vector<std::int64_t> peaks(options.mesh.devices);
  OnParts(options, [&](int rank, BoundPart& part) {
    const Examples share = ShareOf(examples, 0, kCounted, rank, options.mesh.devices);
    const MemoryWatch watch;
    part.Step(share);
    peaks[static_cast<std::size_t>(rank)] = watch.peak();
  });
  return peaks;
}

// With recomputation a layer keeps its input alone: b s h / p in two dimensions, b s h in one.
TEST(CostsTest, ALayerKeepsItsInput) {
  struct Case {
    MeshKind kind;
    std::uint32_t devices;
    std::uint64_t kept;
  };
  for (const Case& each :
       {Case{MeshKind::k2d, 1, kTokens * kWidth}, Case{MeshKind::k2d, 4, kTokens * kWidth / 4},
        Case{MeshKind::k2d, 9, kTokens * kWidth / 9}, Case{MeshKind::k1d, 4, kTokens * kWidth}}) {
    const ModelOptions options = Lm(each.kind, each.devices, true);
    const std::vector<std::int64_t> four = PeaksWith(options, 4);
    const std::vector<std::int64_t> two = PeaksWith(options, 2);
    for (std::size_t rank = 0; rank < four.size(); ++rank) {
      EXPECT_EQ(four[rank] - two[rank], static_cast<std::int64_t>(2 * 4 * each.kept))
          << each.devices << " devices, rank " << rank;
    }
  }
}

// Without it a layer keeps what its gradients need; the input alone is less than a tenth.
TEST(CostsTest, RecomputationKeepsLess) {
  for (const bool recompute : {false, true}) {
    const ModelOptions options = Lm(MeshKind::k2d, 4, recompute);
    const std::int64_t layer = (PeaksWith(options, 4)[0] - PeaksWith(options, 2)[0]) / 2;
    const auto input = static_cast<std::int64_t>(4 * kTokens * kWidth / 4);
    EXPECT_EQ(layer == input, recompute);
    EXPECT_EQ(layer > 10 * input, !recompute);
  }
}

}  // namespace
}  // namespace tactus::model
