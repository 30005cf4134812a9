#include "policies/batch_policy.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "policies/fixed_batch.h"

namespace tactus::policies {
namespace {

using Sizes = std::vector<std::uint32_t>;

TEST(BatchPolicyRegistryTest, NamesAreSortedAndEachMakesAPolicy) {
  const std::vector<std::string> names = BatchPolicyNames();

  EXPECT_EQ(names, (std::vector<std::string>{"fixed", "proportional"}));
  for (const std::string& name : names) EXPECT_NE(MakeBatchPolicy(name, {}), nullptr) << name;
}

TEST(BatchPolicyRegistryTest, AnUnknownNameMakesNone) {
  EXPECT_EQ(MakeBatchPolicy("", {}), nullptr);
  EXPECT_EQ(MakeBatchPolicy("Fixed", {}), nullptr);
  EXPECT_EQ(MakeBatchPolicy("fixed ", {}), nullptr);
}

TEST(BatchPolicyRegistryTest, EveryPolicyStartsWithEqualSharesAndAReason) {
  for (const std::string& name : BatchPolicyNames()) {
    const auto policy = MakeBatchPolicy(name, {.per_worker = 7});

    const BatchDecision decision = policy->Start({.members = 3});

    EXPECT_EQ(decision.batch_sizes, (Sizes{7, 7, 7})) << name;
    EXPECT_FALSE(decision.reason.empty()) << name;
  }
}

TEST(BatchPolicyRegistryTest, EveryPolicyKeepsTheBoundsAtTheStart) {
  for (const std::string& name : BatchPolicyNames()) {
    const auto small = MakeBatchPolicy(name, {.per_worker = 2, .batch_min = 4});
    const auto large = MakeBatchPolicy(name, {.per_worker = 64, .batch_max = 16});

    EXPECT_EQ(small->Start({.members = 2}).batch_sizes, (Sizes{4, 4})) << name;
    EXPECT_EQ(large->Start({.members = 2}).batch_sizes, (Sizes{16, 16})) << name;
  }
}

TEST(FixedBatchTest, NeverChangesWhateverItSees) {
  FixedBatch policy({.per_worker = 8});
  const Sizes sizes = policy.Start({.members = 2}).batch_sizes;

  for (std::uint64_t round = 0; round < 100; ++round) {
    policy.Observe({.round = round, .rank = 0, .samples = 8, .compute_seconds = 0.1});
    policy.Observe({.round = round, .rank = 1, .samples = 8, .compute_seconds = 10});
  }
  const BatchDecision decision = policy.Decide(sizes);

  EXPECT_TRUE(decision.batch_sizes.empty());
  EXPECT_FALSE(decision.reason.empty());
  EXPECT_EQ(decision.predicted_gain, 0);
}

}  // namespace
}  // namespace tactus::policies
