#include "agent/subset/craig.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "agent/collective/in_process.h"
#include "agent/subset/facility_location.h"
#include "agent/subset/random_subset.h"
#include "base/rng.h"
#include "base/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tactus::subset {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Samples with a proxy and a class each.
struct World {
  std::size_t width = 1;
  std::uint32_t class_count = 1;
  std::vector<float> values{};
  std::vector<std::uint32_t> classes{};

  std::uint64_t size() const { return classes.size(); }
  double MissedBy(const engine::Subset& subset) const;
};

World RandomWorld(std::uint64_t seed, std::uint64_t samples_max = 120) {
  Rng rng(seed);
  World world{.width = 1 + rng.Below(3),
              .class_count = 1 + static_cast<std::uint32_t>(rng.Below(4))};
  const std::uint64_t samples = world.class_count + rng.Below(samples_max);
  for (std::uint64_t i = 0; i < samples; ++i) {
    world.classes.push_back(static_cast<std::uint32_t>(rng.Below(world.class_count)));
    for (std::size_t k = 0; k < world.width; ++k) {
      world.values.push_back(static_cast<float>(rng.Normal()));
    }
  }
  return world;
}

// How far the weighted sum over the subset is from that over all, of weights whose mean is 1.
double World::MissedBy(const engine::Subset& subset) const {
  const double scale = static_cast<double>(size()) / static_cast<double>(subset.samples.size());
  double missed2 = 0;
  for (std::size_t k = 0; k < width; ++k) {
    double missed = 0;
    for (std::uint64_t i = 0; i < size(); ++i) missed += values[i * width + k];
    for (std::size_t j = 0; j < subset.samples.size(); ++j) {
      const double weight = subset.weights.empty() ? 1 : subset.weights[j];
      missed -= scale * weight * values[subset.samples[j] * width + k];
    }
    missed2 += missed * missed;
  }
  return std::sqrt(missed2);
}

Proxies ProxiesOf(const World& world, const std::vector<std::uint64_t>& samples) {
  Proxies proxies{.width = world.width, .class_count = world.class_count};
  for (const std::uint64_t sample : samples) {
    const float* const row = world.values.data() + sample * world.width;
    if (!std::isfinite(row[0])) {
      ++proxies.excluded;
      continue;
    }
    proxies.samples.push_back(sample);
    proxies.classes.push_back(world.classes[sample]);
    proxies.values.insert(proxies.values.end(), row, row + world.width);
  }
  return proxies;
}

// What each member of a group finds.
std::vector<Selected> SelectAmong(int members, const World& world, std::uint64_t size,
                                  std::vector<std::uint32_t> shares = {}, double weight_max = 1e9) {
  const auto transports = collective::MakeInProcessGroup(members, [] { return Instant{}; });
  std::vector<Selected> selected(static_cast<std::size_t>(members));
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < selected.size(); ++rank) {
    threads.emplace_back([&, rank] {
      const SelectionOptions options{.samples = world.size(),
                                     .size = size,
                                     .seed = 5,
                                     .shares = shares,
                                     .weight_max = weight_max};
      const Proxies own = ProxiesOf(world, PartOf(options, rank, selected.size()));
      selected[rank] = SelectCraig(own, options, *transports[rank]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return selected;
}

std::uint64_t SmallestSize(const World& world) {
  std::map<std::uint32_t, int> classes;
  for (const std::uint32_t one : world.classes) ++classes[one];
  return classes.size();
}

TEST(CraigPaperTest, WeightsAreOfMeanOne) {
  // Section 8h, vectors 1 and 3: counts (3, 2, 1) become (1.5, 1, 0.5).
  const World world{.width = 2,
                    .values = {0, 0, 1, 0, 0, 1, 4, 4, 5, 4, 10, 0},
                    .classes = std::vector<std::uint32_t>(6, 0)};

  const Selected selected = SelectAmong(1, world, 3)[0];

  ASSERT_TRUE(selected.subset);
  EXPECT_THAT(selected.subset->samples, ElementsAre(1, 4, 5));
  EXPECT_THAT(selected.subset->weights, ElementsAre(1.5f, 1.0f, 0.5f));
  EXPECT_NEAR(6 * selected.facts.error, 3.4142136, 1e-6);
  EXPECT_NEAR(world.MissedBy(*selected.subset), 3.1622777, 1e-6);
}

TEST(CraigPropertyTest, EverySampleIsStoodForOnEveryMember) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    const World world = RandomWorld(seed);
    Rng rng(seed + 77);
    const std::uint64_t least = SmallestSize(world);
    const std::uint64_t size = least + rng.Below(world.size() - least + 1);
    const int members = 1 + static_cast<int>(seed % 4);

    const std::vector<Selected> selected = SelectAmong(members, world, size);

    for (const Selected& one : selected) {
      ASSERT_TRUE(one.subset) << one.lost << one.wrong;
      ASSERT_EQ(*one.subset, *selected[0].subset);
    }
    const engine::Subset& subset = *selected[0].subset;
    ASSERT_EQ(subset.samples.size(), size);
    ASSERT_EQ(ReasonAgainst(subset, size), "");
    // The sum of weights is the number of samples, in each class by itself.
    std::map<std::uint32_t, double> weights;
    std::map<std::uint32_t, double> sizes;
    for (const std::uint32_t one : world.classes) sizes[one] += 1;
    const double scale = static_cast<double>(world.size()) / static_cast<double>(size);
    for (std::size_t i = 0; i < size; ++i) {
      const double weight = (subset.weights.empty() ? 1 : subset.weights[i]) * scale;
      weights[world.classes[subset.samples[i]]] += weight;
      ASSERT_GE(weight, 1 - 1e-6);
    }
    for (const auto& [one, sum] : sizes) ASSERT_NEAR(weights[one], sum, 1e-4 * sum);
    // The error bounds what the sum of all misses.
    const double bound = static_cast<double>(world.size()) * selected[0].facts.error;
    ASSERT_LE(world.MissedBy(subset), bound * (1 + 1e-4) + 1e-3);
  }
}

// Of a class that has few picks for its size, the mean is what all have.
TEST(CraigPropertyTest, NoWeightIsAboveTheBoundAndAClassCountsForItsSamples) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const World world = RandomWorld(seed);
    const std::uint64_t size = std::max(SmallestSize(world), world.size() / 4);
    const double weight_max = seed % 3 == 0 ? 1 : 1.5;

    const Selected selected =
        SelectAmong(1 + static_cast<int>(seed % 3), world, size, {}, weight_max)[0];

    const std::vector<std::uint64_t>& sizes = selected.facts.class_sizes;
    const std::vector<std::uint64_t>& quotas = selected.facts.class_quotas;
    const double scale = static_cast<double>(size) / static_cast<double>(world.size());
    std::vector<double> sums(sizes.size());
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t c = world.classes[selected.subset->samples[i]];
      const double mean = scale * static_cast<double>(sizes[c]) / static_cast<double>(quotas[c]);
      const double weight = selected.subset->weights.empty() ? 1 : selected.subset->weights[i];
      ASSERT_LE(weight, std::max(weight_max, mean) * (1 + 1e-6));
      sums[c] += weight;
    }
    for (std::size_t c = 0; c < sizes.size(); ++c) {
      ASSERT_NEAR(sums[c], scale * static_cast<double>(sizes[c]), 1e-4 * size);
    }
  }
}

// Where each member hands all of its samples on, as the class is to have as many, greedy picks
// among all of them.
TEST(CraigPropertyTest, ManyMembersFindWhatOneFindsWhereNoPartIsThinnedOut) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const World world = RandomWorld(seed);
    const std::uint64_t size = std::max(SmallestSize(world), 9 * world.size() / 10);

    const engine::Subset alone = *SelectAmong(1, world, size)[0].subset;
    const std::vector<Selected> four = SelectAmong(4, world, size);

    const bool thinned = [&] {
      for (std::size_t member = 0; member < 4; ++member) {
        std::map<std::uint32_t, std::uint64_t> sizes;
        const SelectionOptions options{.samples = world.size(), .size = size, .seed = 5};
        for (const std::uint64_t sample : PartOf(options, member, 4))
          ++sizes[world.classes[sample]];
        for (const auto& [one, count] : sizes) {
          if (count > four[0].facts.class_quotas[one]) return true;
        }
      }
      return false;
    }();
    if (!thinned) {
      ASSERT_EQ(*four[0].subset, alone);
    }
  }
}

TEST(CraigTest, AllOfTheSamplesAreAllWithoutWeights) {
  const World world = RandomWorld(3);

  for (const int members : {1, 3}) {
    const Selected selected = SelectAmong(members, world, world.size())[0];
    ASSERT_TRUE(selected.subset);
    EXPECT_THAT(selected.subset->weights, IsEmpty());
    EXPECT_EQ(selected.subset->samples.front(), 0u);
    EXPECT_EQ(selected.subset->samples.back(), world.size() - 1);
    EXPECT_EQ(selected.facts.error, 0);
  }
}

TEST(CraigTest, PartsAreAsLargeAsTheSharesAndCoverEachSampleOnce) {
  const SelectionOptions options{.samples = 1000, .size = 10, .shares = {30, 10, 0, 60}};
  std::vector<std::uint64_t> all;

  for (std::size_t member = 0; member < 4; ++member) {
    const std::vector<std::uint64_t> part = PartOf(options, member, 4);
    EXPECT_EQ(part.size(), 10 * options.shares[member]);
    all.insert(all.end(), part.begin(), part.end());
  }

  std::ranges::sort(all);
  std::vector<std::uint64_t> each(1000);
  std::iota(each.begin(), each.end(), 0);
  EXPECT_EQ(all, each);
}

TEST(CraigTest, AFewWithoutAFiniteProxyAreLeftOutAndManyKeepWhatWasChosen) {
  World world = RandomWorld(4, 400);
  while (world.size() < 200) world = RandomWorld(world.size() + 5, 400);
  world.values[7 * world.width] = std::nanf("");

  const Selected few = SelectAmong(2, world, 20)[1];
  for (std::size_t i = 0; i < 10; ++i) world.values[i * world.width] = std::nanf("");
  const Selected many = SelectAmong(2, world, 20)[1];

  ASSERT_TRUE(few.subset);
  EXPECT_EQ(few.facts.excluded, 1u);
  EXPECT_EQ(std::ranges::count(few.subset->samples, 7u), 0);
  EXPECT_FALSE(many.subset);
  EXPECT_TRUE(many.facts.kept);
  EXPECT_THAT(Describe(many.facts), HasSubstr("stays"));
}

TEST(CraigTest, FewerSamplesThanClassesAreRefused) {
  const World world{.class_count = 3, .values = {0, 1, 2, 3}, .classes = {0, 1, 2, 2}};

  const Selected selected = SelectAmong(1, world, 2)[0];

  EXPECT_FALSE(selected.subset);
  EXPECT_EQ(selected.wrong, "gives 2 samples for 3 classes; allowed is one of each, or more");
}

TEST(CraigTest, WhatWasFoundIsDescribed) {
  const std::string text = Describe({.samples = 15000,
                                     .of = 50000,
                                     .class_sizes = {25000, 25000},
                                     .class_quotas = {7500, 7500},
                                     .error = 0.05,
                                     .norm = 0.8,
                                     .weight_max = 4,
                                     .effective = 7000.4,
                                     .proxy_seconds = 1.25,
                                     .greedy_seconds = 0.25});

  EXPECT_EQ(text,
            "15000 of 50000 samples, 30 % of each of 2 classes, weights up to 4 (as even as "
            "7000 equal ones), error 0.05 of 0.8, in 1.5 s (gradients 1.25 s, choice 0.25 s)");
}

// A class that is too large for one greedy choice is chosen piece by piece.
TEST(CraigTest, ALargeClassIsChosenInPieces) {
  Rng rng(9);
  World world{.width = 1};
  for (std::size_t i = 0; i < 16 * kPieceMax + 500; ++i) {
    world.values.push_back(static_cast<float>(rng.Uniform()));
    world.classes.push_back(0);
  }

  const Selected selected = SelectAmong(3, world, 10000)[2];

  ASSERT_TRUE(selected.subset);
  EXPECT_EQ(selected.subset->samples.size(), 10000u);
  const double sum =
      std::accumulate(selected.subset->weights.begin(), selected.subset->weights.end(), 0.0);
  EXPECT_NEAR(sum, 10000, 0.5);
  // Of pieces of 938 the 41 % that were not picked have a neighbour within half a spacing or so.
  EXPECT_LT(selected.facts.error, 0.41 / (2 * 938));
}

TEST(CraigTest, PiecesOfWideProxiesAreSmaller) {
  EXPECT_EQ(PieceMaxOf(1), kPieceMax);
  EXPECT_EQ(PieceMaxOf(4096), kPieceMax);
  EXPECT_EQ(PieceMaxOf(16384), 512u);
  EXPECT_EQ(PieceMaxOf(65536), 256u);
}

// Who computes for long says so meanwhile.
TEST(CraigTest, BesideIsCalledWhileItComputes) {
  Rng rng(4);
  World world{.width = 64};
  for (std::size_t i = 0; i < 2 * kPieceMax; ++i) {
    for (std::size_t k = 0; k < 64; ++k) world.values.push_back(static_cast<float>(rng.Normal()));
    world.classes.push_back(0);
  }
  const auto alone = collective::MakeInProcessGroup(1, [] { return Instant{}; });
  const SelectionOptions options{.samples = 2 * kPieceMax, .size = 300};
  int called = 0;

  const Selected selected = SelectCraig(ProxiesOf(world, PartOf(options, 0, 1)), options, *alone[0],
                                        [&called] { ++called; });

  ASSERT_TRUE(selected.subset);
  EXPECT_GE(called, 8);  // twice 1024^2 x 64 products
}

TEST(RandomSubsetTest, IsDrawnBySeedAndNumber) {
  const engine::Subset drawn = DrawSubset(1000, 300, 1, 1);

  EXPECT_EQ(ReasonAgainst(drawn, 300), "");
  EXPECT_THAT(drawn.weights, IsEmpty());
  EXPECT_EQ(drawn, DrawSubset(1000, 300, 1, 1));
  EXPECT_NE(drawn.samples, DrawSubset(1000, 300, 2, 1).samples);
  EXPECT_NE(drawn.samples, DrawSubset(1000, 300, 1, 2).samples);
  EXPECT_LT(drawn.samples.back(), 1000u);
}

TEST(RandomSubsetTest, SizesAreRoundedAndNeverZero) {
  EXPECT_EQ(SizeOf(50000, 0.3), 15000u);
  EXPECT_EQ(SizeOf(3, 0.01), 1u);
  EXPECT_EQ(SizeOf(7, 1), 7u);
}

}  // namespace
}  // namespace tactus::subset
