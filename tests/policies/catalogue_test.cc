#include "policies/catalogue.h"

#include <gtest/gtest.h>

#include <set>

#include "policies/plan_names.h"
#include "tests/policies/round_reports.h"

namespace tactus::policies {
namespace {

using Sizes = std::vector<std::uint32_t>;

PlannerOptions With(Axis axis, std::string_view policy) {
  PlannerOptions options{.synchronization = {.period = 8}};
  PolicyOf(options, axis) = policy;
  return options;
}

template <typename Visit>
void ForEachPolicy(const Visit& visit) {
  for (const Axis axis : kAxes) {
    for (const Policy& policy : PoliciesOf(axis)) {
      SCOPED_TRACE(NameOf(axis) + " " + std::string(policy.name));
      visit(axis, policy);
    }
  }
}

TEST(CatalogueTest, EveryPolicyIsMadeAndSaysWhatItDoes) {
  ForEachPolicy([](Axis axis, const Policy& policy) {
    const PlannerOptions options = With(axis, policy.name);

    EXPECT_NE(policy.make(options), nullptr);
    EXPECT_FALSE(SentenceOf(options, axis).empty());
    EXPECT_EQ(SentenceOf(options, axis).find_first_of("{}"), std::string::npos);
    EXPECT_TRUE(UnknownPolicies(options).empty());
  });
}

TEST(CatalogueTest, NamesAreUniqueOnTheirAxisAndAutoIsTheLast) {
  for (const Axis axis : kAxes) {
    std::set<std::string_view> names;
    for (const Policy& policy : PoliciesOf(axis)) EXPECT_TRUE(names.insert(policy.name).second);
    EXPECT_EQ(PoliciesOf(axis).back().name, "auto");
  }
}

TEST(CatalogueTest, AutoExcludesNothingAndNothingExcludesIt) {
  for (const Axis axis : kAxes) {
    EXPECT_TRUE(PoliciesOf(axis).back().traits.empty());
    EXPECT_TRUE(PoliciesOf(axis).back().excludes.empty());
  }
}

TEST(CatalogueTest, EveryChoiceOfAPlanIsAPolicyThatStaysWithIt) {
  for (const std::string_view name : kSynchronizationNames) {
    EXPECT_NE(FindPolicy(Axis::kSynchronization, name), nullptr) << name;
  }
  for (const std::string_view name : kAggregationNames) {
    EXPECT_NE(FindPolicy(Axis::kAggregation, name), nullptr) << name;
  }
  for (const std::string_view name : kLearningRateRuleNames) {
    EXPECT_NE(FindPolicy(Axis::kLearningRate, name), nullptr) << name;
  }
  for (const std::string_view name : kEncodingNames) {
    EXPECT_NE(FindPolicy(Axis::kEncoding, name), nullptr) << name;
  }
}

TEST(CatalogueTest, AnUnknownNameIsNoPolicy) {
  PlannerOptions options{.batch_policy = "quick", .aggregation_policy = "sum"};
  options.synchronization.policy = "never";
  options.learning_rate_policy = "warm";
  options.encoding_policy = "zip";

  EXPECT_EQ(UnknownPolicies(options).size(), kAxes.size());
  EXPECT_EQ(SentenceOf(options, Axis::kBatch), "");
  for (const char* name : {"", "Fixed", "fixed "}) {
    EXPECT_EQ(FindPolicy(Axis::kBatch, name), nullptr) << name;
  }
}

TEST(CatalogueTest, ASentenceHasTheNumbersOfTheJob) {
  PlannerOptions options{.batch_policy = "fixed", .batch = {.per_worker = 48}};
  options.synchronization = {.policy = "periodic", .period = 12};

  EXPECT_EQ(SentenceOf(options, Axis::kBatch), "every worker takes 48 samples a step");
  EXPECT_EQ(SentenceOf(options, Axis::kSynchronization), "what changed is combined every 12 steps");
}

// ---- Batch policies

Sizes SizesAtTheStart(const Policy& policy, const BatchOptions& batch, std::uint32_t members) {
  Observations seen;
  seen.Start({.members = members});
  Plan plan;
  EXPECT_FALSE(policy.make({.batch = batch})->Start(plan, seen).empty()) << policy.name;
  return plan.batch_sizes;
}

TEST(BatchPoliciesTest, StartWithEqualSharesWithinTheBounds) {
  for (const Policy& policy : PoliciesOf(Axis::kBatch)) {
    EXPECT_EQ(SizesAtTheStart(policy, {.per_worker = 7}, 3), (Sizes{7, 7, 7})) << policy.name;
    EXPECT_EQ(SizesAtTheStart(policy, {.per_worker = 2, .batch_min = 4}, 2), (Sizes{4, 4}))
        << policy.name;
    EXPECT_EQ(SizesAtTheStart(policy, {.per_worker = 64, .batch_max = 16}, 2), (Sizes{16, 16}))
        << policy.name;
  }
}

TEST(BatchPoliciesTest, FixedNeverChangesWhateverItSees) {
  const auto policy = FindPolicy(Axis::kBatch, "fixed")->make({});
  Observations seen;
  seen.Start({.members = 2});
  const Plan plan = TwoMembers();
  ObserveRounds(seen, plan, {.first = 0, .count = 100}, {.speeds = {1000, 10}});

  const auto complete = [](const Plan& whole) { return std::optional<Plan>(whole); };
  EXPECT_FALSE(policy->Decide({.in_force = plan, .seen = seen, .complete = complete}));
}

}  // namespace
}  // namespace tactus::policies
