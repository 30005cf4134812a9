// What layouts of a transformer cost, by numbers that were computed by hand, and which is chosen.

#include "policies/parallelism.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/rng.h"
#include "gtest/gtest.h"

namespace tactus::policies {
namespace {

constexpr MeshShape kOne{.kind = MeshKind::kNone, .devices = 1};

MeshShape OneD(std::uint32_t devices) { return {.kind = MeshKind::kOneD, .devices = devices}; }
MeshShape TwoD(std::uint32_t devices) { return {.kind = MeshKind::kTwoD, .devices = devices}; }

// Vectors V4 of the specification's section 5.h, by trees, with recompute.
TEST(ParallelismPaperTest, ElementsOfALayerMatchTheVectors) {
  const MeshTraining trees{.pipelined = false};
  const TransformerSizes small{.hidden = 2048, .heads = 32, .sequence = 512};
  const TransformerSizes large{.hidden = 8192, .heads = 64, .sequence = 512};

  EXPECT_EQ(ForwardElements(OneD(4), small, 60, trees), 188743680);
  EXPECT_EQ(BackwardElements(OneD(4), small, 60, trees), 377487360);
  EXPECT_EQ(ForwardElements(TwoD(4), small, 60, trees), 245366784);
  EXPECT_EQ(BackwardElements(TwoD(4), small, 60, trees), 736100352);
  EXPECT_NEAR(ForwardElements(OneD(64), large, 384, trees), 6.34178765e9, 10);
  EXPECT_NEAR(BackwardElements(OneD(64), large, 384, trees), 1.26835753e10, 50);
  EXPECT_NEAR(ForwardElements(TwoD(64), large, 384, trees), 4.52984832e9, 10);
  EXPECT_NEAR(BackwardElements(TwoD(64), large, 384, trees), 1.3589545e10, 50);
}

TEST(ParallelismTest, RingsDropTheTreesLogarithm) {
  const TransformerSizes sizes{.hidden = 64, .heads = 8, .sequence = 16};

  const double tree = ForwardElements(TwoD(64), sizes, 8, {.pipelined = false});

  EXPECT_DOUBLE_EQ(ForwardElements(TwoD(64), sizes, 8, {}), tree / 3);  // log2(8)
}

TEST(ParallelismTest, OneDeviceSendsNothing) {
  const TransformerSizes sizes{.hidden = 64, .heads = 8, .sequence = 16};
  for (const MeshShape& shape : {kOne, OneD(1), TwoD(1)}) {
    EXPECT_EQ(ForwardElements(shape, sizes, 8, {}), 0);
    EXPECT_EQ(BackwardElements(shape, sizes, 8, {}), 0);
  }
}

// 12 b s h^2 + 2 b s^2 h = 96 + 16 a layer, 4 passes; 3 x 1 x 2 x 2 x 5 with the vocabulary.
TEST(ParallelismTest, ProductsAreThoseOfLayersAndVocabulary) {
  const TransformerSizes sizes{
      .layers = 3, .hidden = 2, .heads = 1, .vocabulary = 5, .sequence = 2};

  EXPECT_EQ(Products(kOne, sizes, 1, {}), 4 * 3 * (96 + 16) + 60);
  EXPECT_EQ(Products(kOne, sizes, 1, {.recompute = false}), 3 * 3 * (96 + 16) + 60);
  EXPECT_EQ(Products(OneD(2), sizes, 1, {}), (4 * 3 * (96 + 16) + 60) / 2.0);
}

// One layer, h = 2, v = 4, s = 1. Parameters 12 h^2 + v h = 56, twice with two buffers of state:
//
//   one device, b = 1, n = 1   4 x 56;  kept 2, forward 6 + 4 + 8, backward 10 + 4 + 2, scores 2
//   1-D of 2,   b = 1, n = 2   4 x 28;  kept 2, forward 3 + 4 + 4, backward 5 + 4 + 2,  scores 2
//   2-D of 4,   b = 2, n = 2   4 x 14;  kept 1, forward 3 + 2 + 4, backward 5 + 2 + 1,  scores 2,
//                              panels 4 + 4
TEST(ParallelismTest, BytesAreThoseOfTheTable) {
  TransformerSizes sizes{.layers = 1, .hidden = 2, .heads = 1, .vocabulary = 4, .sequence = 1};
  EXPECT_EQ(MeshBytes(kOne, sizes, 1, {}), 4 * (224 + 2 + 18 + 16 + 2));
  sizes.heads = 2;
  EXPECT_EQ(MeshBytes(OneD(2), sizes, 1, {}), 4 * (112 + 2 + 11 + 11 + 2));
  EXPECT_EQ(MeshBytes(TwoD(4), sizes, 2, {}), 4 * (56 + 1 + 9 + 8 + 2 + 8));
}

// 12 N h^2 = 24 x 16, v h = 20, s h = 12.
TEST(ParallelismTest, ParametersAreThoseOfLayersTablesAndPositions) {
  TransformerSizes sizes{.layers = 2, .hidden = 4, .heads = 4, .vocabulary = 5, .sequence = 3};
  EXPECT_EQ(Parameters(TwoD(4), sizes), (384 + 20) / 4);
  sizes.positions = 3;
  sizes.tied = false;
  EXPECT_EQ(Parameters(kOne, sizes), 384 + 2 * 20 + 12);
  EXPECT_EQ(Parameters(OneD(4), sizes), (384 + 2 * 20) / 4 + 12);
  EXPECT_EQ(Parameters(TwoD(4), sizes), (384 + 2 * 20) / 4 + 12 / 2);
  // Whatever else there is, it is there for both: twice, and two buffers of state, of what
  // positions add.
  TransformerSizes without = sizes;
  without.positions = 0;
  EXPECT_EQ(MeshBytes(OneD(4), sizes, 1, {}) - MeshBytes(OneD(4), without, 1, {}), 4 * 4 * 12);
  const MeshPlace two{.per_node = 4, .replicas = 2, .one_node = true};
  EXPECT_DOUBLE_EQ(SecondsOf(TwoD(4), sizes, 2, {}, two, {}).gradients, 4 * (424 / 4 + 6));
}

TEST(ParallelismTest, TheLargestBatchFitsAndOneMoreDoesNot) {
  const TransformerSizes sizes{
      .layers = 4, .hidden = 64, .heads = 8, .vocabulary = 256, .sequence = 32};
  for (const MeshShape& shape : {kOne, OneD(4), TwoD(4), TwoD(16)}) {
    const std::uint64_t most = LargestBatch(shape, sizes, {}, 40e6);
    const std::uint64_t step = shape == TwoD(4) ? 2 : shape == TwoD(16) ? 4 : 1;
    ASSERT_GT(most, 0u);
    EXPECT_EQ(most % step, 0u);
    EXPECT_LE(MeshBytes(shape, sizes, most, {}), 40e6);
    EXPECT_GT(MeshBytes(shape, sizes, most + step, {}), 40e6);
  }
  EXPECT_EQ(LargestBatch(kOne, sizes, {}, 1000), 0u);
}

TEST(ParallelismTest, WhatCannotBeSplitHasANearestChoice) {
  const TransformerSizes sizes{.hidden = 48, .heads = 6};

  EXPECT_EQ(ReasonAgainst(TwoD(6), sizes),
            "found 2d with 6 devices, allowed is a square; the nearest is 4");
  EXPECT_EQ(ReasonAgainst(TwoD(7), sizes),
            "found 2d with 7 devices, allowed is a square; the nearest is 9");
  EXPECT_EQ(ReasonAgainst(TwoD(16), sizes),
            "found 6 heads, which 4 rows do not divide; the nearest layout that does is of 9 "
            "devices");
  EXPECT_EQ(ReasonAgainst(OneD(4), sizes),
            "found 6 heads, which 4 devices do not divide; the nearest layout that does is of 3 "
            "devices");
  EXPECT_EQ(ReasonAgainst(TwoD(9), sizes, 10),
            "found a batch of 10, which 3 rows do not divide; the nearest is 9");
  EXPECT_EQ(ReasonAgainst(TwoD(9), sizes, 9), "");
  EXPECT_EQ(ReasonAgainst(OneD(6), sizes, 5), "");
  EXPECT_NE(ReasonAgainst({.kind = MeshKind::kNone, .devices = 2}, sizes), "");
}

// 1e6 multiply-adds a second; 1-D of 4 with b s h = 4: forward 12, backward 24 elements, 144 bytes.
TEST(ParallelismTest, SecondsAreProductsBytesAndMessages) {
  const TransformerSizes sizes{.hidden = 4, .heads = 4, .vocabulary = 1, .sequence = 1};
  const MeshLinks links{.within = 1000, .between = 100, .latency = 0.5};

  const MeshSeconds inside =
      SecondsOf(OneD(4), sizes, 1, {}, {.products_per_second = 1e6, .per_node = 4}, links);
  const MeshSeconds across =
      SecondsOf(OneD(4), sizes, 1, {}, {.products_per_second = 1e6, .per_node = 2}, links);

  EXPECT_DOUBLE_EQ(inside.compute, Products(OneD(4), sizes, 1, {}) / 1e6);
  const double messages = 4 * 2 * 2 * 3;  // passes, sums in each, halves of a sum, steps
  EXPECT_DOUBLE_EQ(inside.transfer, 144 / 1000.0 + 0.5 * messages);
  EXPECT_DOUBLE_EQ(across.transfer, 144 / 100.0 + 0.5 * messages);
  EXPECT_EQ(inside.gradients, 0);
}

std::vector<MeshDevice> Devices(std::size_t count, const std::string& node, double speed,
                                std::uint64_t memory) {
  std::vector<MeshDevice> devices;
  for (std::size_t i = 0; i < count; ++i) {
    devices.push_back({.name = node + "/" + std::to_string(i),
                       .node = node,
                       .products_per_second = speed,
                       .memory_bytes = memory});
  }
  return devices;
}

MeshAsk Ask() {
  return {.sizes = {.layers = 8, .hidden = 512, .heads = 8, .vocabulary = 1024, .sequence = 128},
          .links = {.within = 1e10, .between = 1e9, .latency = 1e-5},
          .batch = 16};
}

// Parameters 25.7 M; four buffers of them are 411 MB.
TEST(ChooseMeshTest, AModelThatFitsADeviceIsNotSplit) {
  MeshAsk ask = Ask();
  ask.devices = Devices(4, "a", 1e12, 2'000'000'000);

  const MeshChoice choice = ChooseMesh(ask);

  ASSERT_EQ(choice.replicas.size(), 4u);
  for (const MeshReplica& replica : choice.replicas) EXPECT_EQ(replica.shape, kOne);
  EXPECT_TRUE(choice.idle.empty());
  EXPECT_NE(choice.reason.find("4 x one device"), std::string::npos) << choice.reason;
}

TEST(ChooseMeshTest, SlowDevicesFormAMeshBesideAFastOne) {
  MeshAsk ask = Ask();
  ask.devices = Devices(1, "fast", 4e12, 2'000'000'000);
  for (const MeshDevice& slow : Devices(4, "slow", 1e12, 300'000'000)) ask.devices.push_back(slow);

  const MeshChoice choice = ChooseMesh(ask);

  ASSERT_EQ(choice.replicas.size(), 2u);
  EXPECT_EQ(choice.replicas[0].shape, kOne);
  EXPECT_EQ(choice.replicas[0].devices, (std::vector<std::size_t>{0}));
  EXPECT_EQ(choice.replicas[1].shape.devices, 4u);
  EXPECT_EQ(choice.replicas[1].devices, (std::vector<std::size_t>{1, 2, 3, 4}));
  EXPECT_NE(choice.reason.find(" beside 1 x "), std::string::npos) << choice.reason;
}

// The same two by two: meshes lie within nodes, the slow link between them.
TEST(ChooseMeshTest, FastLinksLieWithinReplicas) {
  MeshAsk ask = Ask();
  for (const char* node : {"a", "b"}) {
    for (const MeshDevice& device : Devices(2, node, 1e12, 350'000'000)) {
      ask.devices.push_back(device);
    }
  }
  std::swap(ask.devices[1], ask.devices[2]);  // a b a b

  const MeshChoice choice = ChooseMesh(ask);

  ASSERT_EQ(choice.replicas.size(), 2u);
  EXPECT_EQ(choice.replicas[0].devices, (std::vector<std::size_t>{0, 2}));
  EXPECT_EQ(choice.replicas[1].devices, (std::vector<std::size_t>{1, 3}));
}

TEST(ChooseMeshTest, AModelThatFitsNowhereIsRefusedWithTheMissingBytes) {
  MeshAsk ask = Ask();
  ask.devices = Devices(4, "a", 1e12, 50'000'000);

  const MeshChoice choice = ChooseMesh(ask);

  EXPECT_TRUE(choice.replicas.empty());
  EXPECT_EQ(choice.idle.size(), 4u);
  const double least =
      std::min(MeshBytes(OneD(4), ask.sizes, 1, {}), MeshBytes(TwoD(4), ask.sizes, 2, {}));
  EXPECT_EQ(choice.missing_bytes, least - 50e6);
  EXPECT_NE(choice.reason.find(std::to_string(static_cast<std::uint64_t>(choice.missing_bytes)) +
                               " bytes"),
            std::string::npos)
      << choice.reason;
}

TEST(ChooseMeshTest, WhatIsAskedForIsTaken) {
  MeshAsk ask = Ask();
  ask.devices = Devices(4, "a", 1e12, 2'000'000'000);
  ask.any_kind = false;
  ask.kind = MeshKind::kTwoD;
  ask.mesh_devices = 4;

  const MeshChoice choice = ChooseMesh(ask);

  ASSERT_EQ(choice.replicas.size(), 1u);
  EXPECT_EQ(choice.replicas[0].shape, TwoD(4));
  EXPECT_EQ(choice.alternatives.size(), 1u);
}

TEST(ChooseMeshTest, SoManyDevicesAreAskedForOfAnyKind) {
  MeshAsk ask = Ask();
  ask.devices = Devices(4, "a", 1e12, 2'000'000'000);
  ask.mesh_devices = 4;

  const MeshChoice choice = ChooseMesh(ask);

  ASSERT_EQ(choice.replicas.size(), 1u);
  EXPECT_EQ(choice.replicas[0].shape.devices, 4u);
  for (const MeshAlternative& each : choice.alternatives) EXPECT_EQ(each.shape.devices, 4u);
}

// 1,000 random clusters: nobody in two places, only devices that are alike together, all fits, and
// the same comes again.
TEST(ChooseMeshPropertyTest, PlacesEachDeviceOnceWhereItFits) {
  int placed_any = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    MeshAsk ask = Ask();
    ask.batch = 1 + rng.Below(64);
    const std::size_t nodes = 1 + rng.Below(4);
    for (std::size_t node = 0; node < nodes; ++node) {
      const auto speed = 1e12 * static_cast<double>(1 + rng.Below(3));
      const std::uint64_t memory = 100'000'000 * (1 + rng.Below(8));
      for (const MeshDevice& device :
           Devices(1 + rng.Below(5), "n" + std::to_string(node), speed, memory)) {
        ask.devices.push_back(device);
      }
    }

    const MeshChoice choice = ChooseMesh(ask);
    const MeshChoice again = ChooseMesh(ask);

    std::vector<int> places(ask.devices.size());
    for (const std::size_t device : choice.idle) ++places[device];
    for (const MeshReplica& replica : choice.replicas) {
      ASSERT_EQ(replica.devices.size(), replica.shape.devices);
      ASSERT_EQ(ReasonAgainst(replica.shape, ask.sizes, replica.batch), "");
      const MeshDevice& first = ask.devices[replica.devices.front()];
      for (const std::size_t device : replica.devices) {
        ++places[device];
        ASSERT_EQ(ask.devices[device].products_per_second, first.products_per_second);
        ASSERT_EQ(ask.devices[device].memory_bytes, first.memory_bytes);
        ASSERT_LE(MeshBytes(replica.shape, ask.sizes, replica.batch, {}),
                  static_cast<double>(ask.devices[device].memory_bytes));
      }
    }
    ASSERT_EQ(std::ranges::count(places, 1), std::ssize(places));
    ASSERT_EQ(choice.replicas.empty(), choice.missing_bytes > 0);
    ASSERT_EQ(choice.reason, again.reason);
    ASSERT_EQ(choice.idle, again.idle);
    placed_any += choice.replicas.empty() ? 0 : 1;
  }
  EXPECT_GT(placed_any, 500);
}

// Equal ones within nodes first, then equal ones of several nodes, then what is left.
TEST(FormMeshesTest, EqualDevicesOfANodeComeTogetherFirst) {
  std::vector<MeshDevice> devices = Devices(3, "a", 1, 8);
  for (const MeshDevice& device : Devices(3, "b", 1, 8)) devices.push_back(device);
  for (const MeshDevice& device : Devices(2, "c", 5, 8)) devices.push_back(device);
  devices.push_back(Devices(1, "c", 2, 8).front());

  const std::vector<std::vector<std::size_t>> meshes = FormMeshes(devices, 2);

  const std::vector<std::vector<std::size_t>> expected = {{6, 7}, {0, 1}, {3, 4}, {2, 5}};
  EXPECT_EQ(meshes, expected);  // 8, which is like no other, is left over
  std::vector<std::vector<std::size_t>> threes = FormMeshes(devices, 3);
  std::ranges::sort(threes);
  EXPECT_EQ(threes, (std::vector<std::vector<std::size_t>>{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}}));
}

TEST(FormMeshesTest, NoDeviceIsInTwo) {
  Rng rng = Rng(11).Fork("meshes");
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<MeshDevice> devices;
    const std::size_t nodes = 1 + rng.Below(4);
    for (std::size_t node = 0; node < nodes; ++node) {
      for (const MeshDevice& device :
           Devices(rng.Below(5), std::to_string(node), 1 + static_cast<double>(rng.Below(2)), 8)) {
        devices.push_back(device);
      }
    }
    const std::size_t each = 1 + rng.Below(4);
    std::vector<bool> placed(devices.size());
    const auto meshes = FormMeshes(devices, each);
    EXPECT_EQ(meshes.size(), devices.size() / each);
    for (const std::vector<std::size_t>& mesh : meshes) {
      EXPECT_EQ(mesh.size(), each);
      for (const std::size_t device : mesh) {
        EXPECT_FALSE(placed[device]);
        placed[device] = true;
      }
    }
  }
}

}  // namespace
}  // namespace tactus::policies
