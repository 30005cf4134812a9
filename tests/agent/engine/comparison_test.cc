// Members that compare what all should hold alike: who differs takes over what most hold.

#include "agent/engine/comparison.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "agent/collective/in_process.h"
#include "base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/survivor.h"

namespace tactus::engine {
namespace {

using collective::Transport;
using policies::Plan;
using policies::Synchronization;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(ComparisonsTest, TheyTakeTheirShareOfTheTimeAndNoMore) {
  Comparisons comparisons({}, Seconds(100));
  EXPECT_FALSE(comparisons.Due(Seconds(109)));
  EXPECT_TRUE(comparisons.Due(Seconds(110)));

  comparisons.Take(Seconds(120), Seconds(1));

  EXPECT_FALSE(comparisons.Due(Seconds(319)));
  EXPECT_TRUE(comparisons.Due(Seconds(320)));
  EXPECT_FALSE(Comparisons({.on = false}, {}).Due(Seconds(1e6)));
}

TEST(JudgeHashesTest, WhatMostHoldIsRight) {
  using Hashes = std::vector<HashedParameters>;
  EXPECT_THAT(JudgeHashes(Hashes{{7}}).wrong, IsEmpty());
  EXPECT_THAT(JudgeHashes(Hashes{{7}, {7}, {7}}).wrong, IsEmpty());

  const Comparison one = JudgeHashes(Hashes{{5}, {7}, {7}});
  EXPECT_EQ(one.right, 1u);
  EXPECT_THAT(one.wrong, ElementsAre(0u));
  EXPECT_TRUE(one.majority);

  const Comparison two = JudgeHashes(Hashes{{7}, {5}});
  EXPECT_EQ(two.right, 0u);
  EXPECT_THAT(two.wrong, ElementsAre(1u));
  EXPECT_FALSE(two.majority);

  const Comparison most = JudgeHashes(Hashes{{1}, {2}, {3}, {3}});
  EXPECT_EQ(most.right, 2u);
  EXPECT_THAT(most.wrong, ElementsAre(0u, 1u));
  EXPECT_FALSE(most.majority) << "two of four";
}

TEST(JudgeHashesTest, OfAsManyWhatIsFiniteIsRight) {
  const HashedParameters lost = {.hash = 7, .finite = false};
  const Comparison two = JudgeHashes(std::vector<HashedParameters>{lost, {5}});
  EXPECT_EQ(two.right, 1u);
  EXPECT_THAT(two.wrong, ElementsAre(0u));
  EXPECT_FALSE(two.majority);

  EXPECT_EQ(JudgeHashes(std::vector<HashedParameters>{lost, {5}, {6}}).right, 1u);
  EXPECT_EQ(JudgeHashes(std::vector<HashedParameters>{{5}, lost, lost}).right, 1u)
      << "most hold it";
  EXPECT_THAT(JudgeHashes(std::vector<HashedParameters>{lost, lost}).wrong, IsEmpty());
}

TEST(ExchangeTest, EachHearsOfEverybodysBits) {
  const std::vector<HashedParameters> own = {
      {0}, {.hash = 0xffffffffffffffff, .finite = false}, {0x0123456789abcdef}};
  auto transports = collective::MakeInProcessGroup(3, SurvivorTime);
  std::vector<std::vector<HashedParameters>> heard(3);
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < 3; ++rank) {
      threads.emplace_back([&, rank] { Exchange(*transports[rank], own[rank], heard[rank]); });
    }
  }
  for (const auto& each : heard) EXPECT_EQ(each, own);
}

// ---- Of engines that train

struct Found {
  std::uint64_t rounds = 0;
  Comparison comparison{};
};

// Some members that compare and validate each time that it is due, as a worker's life does.
class Comparing {
 public:
  explicit Comparing(const EngineOptions& options, std::size_t size) : found_(size) {
    for (std::size_t i = 0; i < size; ++i) members_.push_back(std::make_unique<Survivor>(options));
  }

  // Trains to the end. In the round after `rounds` the bit of a parameter of `victim` flips.
  void Train(const Plan& plan, std::uint64_t rounds, std::size_t victim, std::size_t parameter,
             unsigned bit) {
    auto transports =
        collective::MakeInProcessGroup(static_cast<int>(members_.size()), SurvivorTime);
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
      threads.emplace_back([&, rank] {
        const auto flip = [&, rank](RoundEngine& engine, Transport&) {
          if (rank == victim && engine.rounds() == rounds) Flip(*members_[rank], parameter, bit);
          return true;
        };
        members_[rank]->TrainIn(*transports[rank], plan, {}, flip,
                                [&, rank](RoundEngine& engine) { AtStep(engine, rank); });
      });
    }
  }

  const std::vector<Found>& found(std::size_t rank) const { return found_[rank]; }
  std::size_t comparisons() const { return comparisons_; }
  Survivor& operator[](std::size_t rank) { return *members_[rank]; }

  // After each step, and after a comparison that found something; may be empty.
  std::function<void(std::size_t rank, RoundEngine& engine)> at_step{};
  std::function<void(std::size_t rank, RoundEngine& engine)> on_found{};

  static void Flip(Survivor& member, std::size_t parameter, unsigned bit) {
    std::vector<float> values = member.parameters();
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(values[parameter]) ^ (1u << bit);
    values[parameter] = std::bit_cast<float>(bits);
    member.device().Copy(values, member.member().parameters);
  }

 private:
  void AtStep(RoundEngine& engine, std::size_t rank) {
    if (at_step) at_step(rank, engine);
    if (engine.comparison_due()) Compare(engine, rank);
    if (!engine.validation_due()) return;
    engine.TakeValidation({.loss = 1, .samples = 10, .end = SurvivorTime()});
  }

  void Compare(RoundEngine& engine, std::size_t rank) {
    engine.Compare(members_[rank]->Hash());
    if (rank == 0) ++comparisons_;
    if (auto comparison = engine.TakeComparison()) {
      found_[rank].push_back({.rounds = engine.rounds(), .comparison = *comparison});
      if (on_found) on_found(rank, engine);
    }
  }

  std::vector<std::unique_ptr<Survivor>> members_;
  std::vector<std::vector<Found>> found_;
  std::size_t comparisons_ = 0;
};

// Rounds between two comparisons at most: 50 ms, of which a round takes three or more.
constexpr std::uint64_t kApart = 20;

EngineOptions Often(std::uint64_t rounds) {
  return {.train_samples = 157,
          .micro_batch = 2,
          .optimizer = SgdOptions{.learning_rate = 0.001, .momentum = 0.9},
          .stop = {.rounds = rounds},
          .comparison = {.share = 1, .least_between = std::chrono::milliseconds(50)}};
}

TEST(CompareTest, AMemberWithAFlippedBitTakesOverWhatTheOthersHold) {
  Comparing three(Often(200), 3);

  three.Train({.batch_sizes = {3, 2, 4}}, 100, 1, 5, 20);

  for (std::size_t rank = 0; rank < 3; ++rank) {
    ASSERT_EQ(three.found(rank).size(), 1u) << rank;
    EXPECT_GE(three.found(rank)[0].rounds, 100u);
    EXPECT_LT(three.found(rank)[0].rounds, 100 + kApart);
    EXPECT_THAT(three.found(rank)[0].comparison.wrong, ElementsAre(1u));
    EXPECT_EQ(three[rank].parameters(), three[0].parameters());
    EXPECT_EQ(three[rank].State(), three[0].State());
  }
}

// A low bit may be rounded away by an update before anybody looks: then all hold the same again.
TEST(CompareTest, AHundredFlipsAreFoundWhateverTheBit) {
  Rng rng(11);
  int found = 0;
  for (int i = 0; i < 100; ++i) {
    const std::size_t size = 3 + rng.Below(3);
    const auto victim = static_cast<std::size_t>(rng.Below(size));
    const std::uint64_t round = 5 + rng.Below(40);
    Comparing group(Often(45 + 2 * kApart), size);

    group.Train({.batch_sizes = std::vector<std::uint32_t>(size, 2)}, round, victim,
                rng.Below(Survivor::kLength), static_cast<unsigned>(rng.Below(32)));

    found += static_cast<int>(group.found(0).size());
    for (std::size_t rank = 0; rank < size; ++rank) {
      ASSERT_EQ(group.found(rank).size(), group.found(0).size()) << "flip " << i;
      ASSERT_LE(group.found(rank).size(), 1u) << "flip " << i;
      for (const Found& each : group.found(rank)) {
        EXPECT_THAT(each.comparison.wrong, ElementsAre(static_cast<std::uint32_t>(victim)));
      }
      EXPECT_EQ(group[rank].parameters(), group[0].parameters()) << "flip " << i;
    }
  }
  EXPECT_GE(found, 90);
}

// TACTUS_COMPARED_ROUNDS of each way; 2,000 of the ordinary tests.
TEST(CompareTest, WhereNothingIsWrongNobodyIsAccused) {
  const char* const given = std::getenv("TACTUS_COMPARED_ROUNDS");
  const std::uint64_t rounds = given == nullptr ? 2000 : std::stoull(given);
  const std::vector<Plan> plans = {{},
                                   {.aggregation = policies::Aggregation::kAdasum},
                                   {.synchronization = Synchronization::kPeriodic, .period = 3},
                                   {.synchronization = Synchronization::kDelayed, .period = 4},
                                   {.encoding = policies::Encoding::kFloat16}};
  for (Plan plan : plans) {
    plan.batch_sizes = {3, 2, 4};
    Comparing three(Often(rounds), 3);

    three.Train(plan, rounds + 1, 0, 0, 0);

    EXPECT_GT(three.comparisons(), rounds / kApart);
    for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_THAT(three.found(rank), IsEmpty());
  }
}

TEST(CompareTest, WhereRoundsLookAheadNobodyCompares) {
  EngineOptions options = Often(200);
  options.look_ahead = true;
  Comparing three(options, 3);

  three.Train({.synchronization = Synchronization::kDelayed, .period = 4, .batch_sizes = {3, 2, 4}},
              1000, 0, 0, 0);

  EXPECT_EQ(three.comparisons(), 0u);
}

// Parameters that are no numbers spoil every round from the first on: it is not waited for time.
TEST(CompareTest, ANumberThatIsNotFiniteIsLookedIntoAtOnce) {
  EngineOptions options = Often(100);
  options.comparison.least_between = Seconds(1e6);
  options.nonfinite_rounds_max = 3;
  Comparing three(options, 3);

  three.Train({.batch_sizes = {3, 2, 4}}, 50, 2, 7, 30);  // near 1: the exponent becomes all ones

  ASSERT_LE(three.found(0).size(), 1u);
  EXPECT_EQ(three[0].member().rounds, 100u) << three[0].reason();
  EXPECT_EQ(three[2].parameters(), three[0].parameters());
}

// Of two nobody is most: that of the first rank is lost, and is not what the other takes over.
TEST(CompareTest, OfTwoTheOneWithNumbersIsRight) {
  EngineOptions options = Often(100);
  options.comparison.least_between = Seconds(1e6);
  options.nonfinite_rounds_max = 3;
  Comparing two(options, 2);

  two.Train({.batch_sizes = {3, 2}}, 50, 0, 7, 30);  // near 1: the exponent becomes all ones

  EXPECT_EQ(two[0].member().rounds, 100u) << two[0].reason();
  EXPECT_EQ(two[1].parameters(), two[0].parameters());
  for (const float value : two[0].parameters()) EXPECT_TRUE(std::isfinite(value));
}

// Where a member was wrong another one's copy of its part of the optimizer's state counts, also for
// the checkpoint that is due at this very edge.
TEST(CompareTest, WhatWasGatheredAtTheEdgeIsOfTheRightMembers) {
  EngineOptions options = Often(100);
  options.optimizer = AdamOptions{.learning_rate = 0.001};
  options.shards = {.by = ShardBy::kEqual, .copies = 2};
  Comparing three(options, 3);
  bool spoilt = false;
  three.at_step = [&](std::size_t rank, RoundEngine& engine) {
    if (rank == 0) engine.RequestResiduals();  // of all state, at each edge
    if (rank != 1 || spoilt || engine.rounds() < 50 || !engine.comparison_due()) return;
    // Of a round before all would have taken over its part of the parameters.
    spoilt = true;
    Comparing::Flip(three[1], 20, 20);
    for (ShardPiece& piece : three[1].member().shard->pieces()) {
      three[1].device().Fill(1e6f, piece.buffers[0].span());
    }
  };
  std::vector<std::vector<float>> gathered;
  std::vector<std::vector<ShardStretch>> held(3);
  std::vector<std::vector<std::vector<float>>> state(3);  // of each member, buffer by buffer
  three.on_found = [&](std::size_t rank, RoundEngine& engine) {
    if (rank == 0) gathered = engine.State().optimizer;
    const OptimizerShard& shard = *three[rank].member().shard;
    held[rank] = shard.held();
    shard.CopyOut(state[rank]);
    three[rank].device().Synchronize();
  };

  three.Train({.batch_sizes = {3, 2, 4}}, 1000, 0, 0, 0);

  ASSERT_EQ(three.found(0).size(), 1u) << three[0].reason();
  EXPECT_THAT(three.found(0)[0].comparison.wrong, ElementsAre(1u));
  ASSERT_EQ(gathered.size(), 2u);
  // Who was wrong holds nothing until the next round gives it its part again.
  std::vector<bool> covered(gathered[0].size());
  for (std::size_t rank = 0; rank < 3; ++rank) {
    std::size_t at = 0;
    for (const ShardStretch& stretch : held[rank]) {
      for (std::size_t i = 0; i < stretch.length(); ++i) {
        EXPECT_EQ(gathered[0][stretch.begin + i], state[rank][0][at + i]) << rank;
        covered[stretch.begin + i] = true;
      }
      at += stretch.length();
    }
  }
  EXPECT_THAT(covered, Each(true));
  for (const float value : gathered[0]) EXPECT_LT(std::abs(value), 1e5f);
}

// Rank 0 keeps for all what was validated.
TEST(CompareTest, WhatIsValidatedWasCompared) {
  EngineOptions options = Often(60);
  options.comparison.least_between = Seconds(1e6);
  options.validation = {.policy = ValidationPolicy::kAuto, .rounds = 20, .samples = 10};
  Comparing three(options, 3);

  three.Train({.batch_sizes = {3, 2, 4}}, 35, 0, 5, 20);

  ASSERT_EQ(three.found(1).size(), 1u);
  EXPECT_EQ(three.found(1)[0].rounds, 40u);
  EXPECT_THAT(three.found(1)[0].comparison.wrong, ElementsAre(0u));
}

}  // namespace
}  // namespace tactus::engine
