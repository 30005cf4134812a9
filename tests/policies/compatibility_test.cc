#include "policies/compatibility.h"

#include <gtest/gtest.h>

#include <functional>

#include "policies/catalogue.h"
#include "policies/plan_names.h"

namespace tactus::policies {
namespace {

// ---- The choices of a job

// By name, as a test says them.
struct Choices {
  std::string batch = "proportional";
  std::string synchronization = "every_step";
  std::string aggregation = "average";
  std::string learning_rate = "constant";
  std::string encoding = "dense";
  std::string optimizer = "sgd";
  double momentum = 0;
  std::optional<double> clip_norm{};
  std::string shard = "none";
  std::string mesh = "none";
};

std::vector<Conflict> ConflictsOf(const Choices& choices) {
  PlannerOptions options{.batch_policy = choices.batch,
                         .aggregation_policy = choices.aggregation,
                         .learning_rate_policy = choices.learning_rate,
                         .encoding_policy = choices.encoding,
                         .optimizer = choices.optimizer,
                         .momentum = choices.momentum,
                         .clip_norm = choices.clip_norm,
                         .shard = choices.shard,
                         .mesh = choices.mesh};
  options.synchronization.policy = choices.synchronization;
  return policies::ConflictsOf(options);
}

const std::vector<std::string> kBatches = {"fixed", "proportional", "abs", "auto"};
const std::vector<std::string> kSynchronizations = {
    "every_step", "periodic", "post_local", "adacomm", "delayed", "lsgd", "decentlam", "auto"};
const std::vector<std::string> kAggregations = {"average", "adasum", "auto"};
const std::vector<std::string> kLearningRates = {"constant", "linear", "sqrt", "adascale", "auto"};
const std::vector<std::string> kEncodingPolicies = {"dense",  "float16", "bfloat16", "dq",
                                                    "sketch", "adacomp", "one_bit",  "auto"};
const std::vector<std::string> kOptimizers = {"sgd", "adam", "adamw", "lamb", "lion"};

void ForEach(const std::function<void(const Choices&)>& visit) {
  for (const std::string& batch : kBatches)
    for (const std::string& synchronization : kSynchronizations)
      for (const std::string& aggregation : kAggregations)
        for (const std::string& learning_rate : kLearningRates)
          for (const std::string& encoding : kEncodingPolicies)
            for (const std::string& optimizer : kOptimizers)
              for (const double momentum : {0.0, 0.9})
                for (const char* shard : {"none", "memory"})
                  for (const char* mesh : {"none", "2d"})
                    visit({batch,
                           synchronization,
                           aggregation,
                           learning_rate,
                           encoding,
                           optimizer,
                           momentum,
                           {},
                           shard,
                           mesh});
}

std::string Shown(const Choices& c) {
  return c.batch + " " + c.synchronization + " " + c.aggregation + " " + c.learning_rate + " " +
         c.encoding + " " + c.optimizer + " " + std::to_string(c.momentum) + " " + c.shard + " " +
         c.mesh;
}

// The rules in prose, for choices without auto: the slow twin of the table.
bool Possible(const Choices& c) {
  const bool by_step = c.synchronization == "every_step" && c.encoding != "one_bit";
  if (c.shard != "none" && !by_step) return false;
  const bool adascale = c.learning_rate == "adascale";
  const bool exact = c.encoding == "dense" || c.encoding.ends_with("float16");
  const bool by_step_or_period =
      c.synchronization == "every_step" || c.synchronization == "periodic" ||
      c.synchronization == "post_local" || c.synchronization == "adacomm";
  if (c.mesh != "none" && !(by_step_or_period && c.encoding != "one_bit")) return false;
  if (adascale && (c.aggregation == "adasum" || c.optimizer != "sgd")) return false;
  if (c.encoding != "dense" && c.aggregation == "adasum") return false;
  if (adascale && !exact) return false;
  const bool divided = c.optimizer.starts_with("adam") || c.optimizer == "lamb";
  if (c.encoding == "one_bit") {
    if (c.synchronization != "every_step" || !divided || c.clip_norm) return false;
  }
  const bool summed = c.encoding != "dense" || c.aggregation == "adasum" || adascale;
  const bool own = c.synchronization == "lsgd" || c.synchronization == "decentlam";
  if (own && summed) return false;
  if (c.synchronization == "decentlam" && c.optimizer != "sgd") return false;
  if (c.batch == "abs" && c.synchronization != "delayed") return false;
  const bool remembers = c.optimizer != "sgd" || c.momentum > 0;
  const bool whole_step = c.synchronization == "delayed" || c.shard != "none";
  const bool single_in_parts = c.mesh != "none" && c.synchronization != "periodic";
  if ((whole_step || single_in_parts) && c.aggregation == "adasum" && remembers) return false;
  return c.optimizer == "sgd" || c.synchronization != "adacomm";
}

// What a name stands for.
std::vector<std::string> Concrete(const std::string& name, std::vector<std::string> all) {
  if (name != "auto") return {name};
  std::erase(all, "auto");
  return all;
}

// Some values of the axes left to the coordinator make the job possible.
bool SomeValuePossible(const Choices& c) {
  for (const std::string& batch : Concrete(c.batch, kBatches))
    for (const std::string& synchronization : Concrete(c.synchronization, kSynchronizations))
      for (const std::string& aggregation : Concrete(c.aggregation, kAggregations))
        for (const std::string& rate : Concrete(c.learning_rate, kLearningRates))
          for (const std::string& encoding : Concrete(c.encoding, kEncodingPolicies))
            if (Possible({batch, synchronization, aggregation, rate, encoding, c.optimizer,
                          c.momentum, c.clip_norm, c.shard, c.mesh}))
              return true;
  return false;
}

TEST(ConflictsOracleTest, AJobIsRefusedExactlyWhenNoValueOfItsAxesFits) {
  int visited = 0;
  ForEach([&](const Choices& choices) {
    ++visited;
    EXPECT_EQ(ConflictsOf(choices).empty(), SomeValuePossible(choices)) << Shown(choices);
  });

  EXPECT_EQ(visited, 4 * 8 * 3 * 5 * 8 * 5 * 2 * 2 * 2);
}

TEST(ConflictsTest, TheDefaultsGoTogether) { EXPECT_TRUE(ConflictsOf(Choices{}).empty()); }

TEST(ConflictsTest, LeavingEveryAxisToTheCoordinatorIsNoConflictWithAnyOptimizer) {
  for (const std::string& optimizer : kOptimizers) {
    EXPECT_TRUE(ConflictsOf({"auto", "auto", "auto", "auto", "auto", optimizer}).empty())
        << optimizer;
  }
}

TEST(ConflictsTest, WhatMembersKeepToThemselvesIsNoSum) {
  for (const auto& choices : {Choices{.synchronization = "lsgd", .encoding = "dq"},
                              Choices{.synchronization = "lsgd", .encoding = "float16"},
                              Choices{.synchronization = "lsgd", .aggregation = "adasum"},
                              Choices{.synchronization = "lsgd", .learning_rate = "adascale"}}) {
    const std::vector<Conflict> conflicts = ConflictsOf(choices);
    ASSERT_EQ(conflicts.size(), 1u) << Shown(choices);
    EXPECT_EQ(conflicts.front().field, "adapt.synchronization.policy");
    EXPECT_NE(conflicts.front().reason.find("parameters"), std::string::npos);
  }
  EXPECT_FALSE(ConflictsOf({.batch = "abs", .synchronization = "lsgd"}).empty());
  EXPECT_FALSE(ConflictsOf({.batch = "abs", .synchronization = "decentlam"}).empty());
  const std::vector<Conflict> of_adam =
      ConflictsOf({.synchronization = "decentlam", .optimizer = "adam"});
  ASSERT_EQ(of_adam.size(), 1u);
  EXPECT_EQ(of_adam[0].other, "optimizer");
}

TEST(ConflictsTest, NameBothFieldsAndSayWhy) {
  const std::vector<Conflict> conflicts =
      ConflictsOf({.aggregation = "adasum", .learning_rate = "adascale"});

  ASSERT_EQ(conflicts.size(), 1u);
  EXPECT_EQ(conflicts[0].field, "adapt.learning_rate.policy");
  EXPECT_EQ(conflicts[0].other, "adapt.aggregation.policy");
  EXPECT_EQ(conflicts[0].reason,
            "found adascale, which does not go with adapt.aggregation.policy adasum: both take the "
            "place of the rule that scales the learning rate: Adasum is made to keep that of one "
            "worker, and what it combines is not the mean that AdaScale's gain assumes; take "
            "constant with adasum, or average with adascale");
}

TEST(ConflictsTest, AllOfAJobAreFoundAtOnce) {
  const std::vector<Conflict> conflicts = ConflictsOf({.batch = "abs",
                                                       .synchronization = "adacomm",
                                                       .aggregation = "adasum",
                                                       .learning_rate = "adascale",
                                                       .optimizer = "lamb"});

  std::vector<std::string> fields;
  for (const Conflict& conflict : conflicts)
    fields.push_back(conflict.field + " " + conflict.other);
  EXPECT_EQ(fields, (std::vector<std::string>{"adapt.learning_rate.policy adapt.aggregation.policy",
                                              "adapt.aggregation.policy adapt.batch.policy",
                                              "adapt.batch.policy adapt.synchronization.policy",
                                              "adapt.learning_rate.policy optimizer",
                                              "adapt.synchronization.policy optimizer"}));
}

TEST(ConflictsTest, WhatAdasumCombinesTravelsDense) {
  for (const char* encoding : {"float16", "bfloat16"}) {
    const std::vector<Conflict> conflicts =
        ConflictsOf({.aggregation = "adasum", .encoding = encoding});

    ASSERT_EQ(conflicts.size(), 1u);
    EXPECT_EQ(conflicts[0].field, "adapt.encoding.policy");
    EXPECT_EQ(conflicts[0].other, "adapt.aggregation.policy");
    EXPECT_EQ(conflicts[0].reason,
              "found " + std::string(encoding) +
                  ", which does not go with adapt.aggregation.policy adasum: adasum goes by "
                  "products of whole vectors, which travel dense; take average, or dense");
    EXPECT_TRUE(ConflictsOf({.aggregation = "auto", .encoding = encoding}).empty());
  }
  EXPECT_TRUE(ConflictsOf({.aggregation = "adasum", .encoding = "auto"}).empty());
}

TEST(ConflictsTest, SumsThatHideTheNoiseHaveNoGainOfAdascale) {
  for (const char* encoding : {"dq", "sketch", "adacomp"}) {
    const std::vector<Conflict> conflicts =
        ConflictsOf({.learning_rate = "adascale", .encoding = encoding});

    ASSERT_EQ(conflicts.size(), 1u) << encoding;
    EXPECT_EQ(conflicts[0].field, "adapt.encoding.policy");
    EXPECT_EQ(conflicts[0].other, "adapt.learning_rate.policy");
    EXPECT_TRUE(ConflictsOf({.learning_rate = "auto", .encoding = encoding}).empty());
  }
}

TEST(ConflictsTest, SignsOfTheMomentumAreOfEveryStepAndOfGradientsThatAreNotCut) {
  const Choices right{.encoding = "one_bit", .optimizer = "adamw"};
  EXPECT_TRUE(ConflictsOf(right).empty());
  const auto other_of = [](const Choices& choices) {
    const std::vector<Conflict> conflicts = ConflictsOf(choices);
    EXPECT_EQ(conflicts.size(), 1u);
    return conflicts.empty() ? "" : conflicts[0].other;
  };

  for (const char* synchronization : {"periodic", "post_local", "delayed"}) {
    Choices choices = right;
    choices.synchronization = synchronization;
    EXPECT_EQ(other_of(choices), "adapt.synchronization.policy") << synchronization;
  }
  Choices clipped = right;
  clipped.clip_norm = 0.5;
  EXPECT_EQ(other_of(clipped), "optimizer.clip_norm");
  EXPECT_EQ(ConflictsOf(clipped)[0].reason,
            "found one_bit, which does not go with optimizer.clip_norm 0.50: gradients do not "
            "travel, so that their norm is not known; leave it out, or take another encoding");
  EXPECT_EQ(other_of({.encoding = "one_bit", .optimizer = "lion"}), "optimizer");
  clipped.encoding = "dq";
  EXPECT_TRUE(ConflictsOf(clipped).empty());
}

TEST(ConflictsTest, StepsOfAMembersOwnNeedAllOfTheOptimizersState) {
  for (const char* synchronization : {"periodic", "post_local", "adacomm", "delayed"}) {
    const std::vector<Conflict> conflicts =
        ConflictsOf({.synchronization = synchronization, .shard = "equal"});
    ASSERT_EQ(conflicts.size(), 1u) << synchronization;
    EXPECT_EQ(conflicts[0].field, "adapt.synchronization.policy");
    EXPECT_EQ(conflicts[0].other, "optimizer.shard");
  }
  EXPECT_EQ(ConflictsOf({.encoding = "one_bit", .optimizer = "adam", .shard = "memory"})[0].field,
            "adapt.encoding.policy");
  EXPECT_EQ(ConflictsOf({.aggregation = "adasum", .optimizer = "lion", .shard = "equal"})[0].field,
            "adapt.aggregation.policy");
  EXPECT_TRUE(ConflictsOf({.aggregation = "adasum", .shard = "equal"}).empty()) << "no memory";
  EXPECT_TRUE(
      ConflictsOf({.synchronization = "auto", .encoding = "auto", .shard = "memory"}).empty());
}

TEST(ConflictsTest, WindowsOfLocalStepsTellAdascaleTheNoise) {
  for (const char* local : {"periodic", "post_local", "adacomm"}) {
    EXPECT_TRUE(ConflictsOf({.synchronization = local, .learning_rate = "adascale"}).empty())
        << local;
  }
}

TEST(ConflictsTest, AnElasticBatchNeedsDelayedSynchronization) {
  EXPECT_EQ(ConflictsOf({.batch = "abs"}).size(), 1u);
  EXPECT_TRUE(ConflictsOf({.batch = "abs", .synchronization = "delayed"}).empty());
  EXPECT_TRUE(ConflictsOf({.batch = "abs", .synchronization = "auto"}).empty());
}

TEST(ConflictsTest, DelayedGradientsWithMomentumAreLeftToTheUser) {
  EXPECT_TRUE(ConflictsOf({.synchronization = "delayed", .optimizer = "sgd"}).empty());
}

TEST(ConflictsTest, WhatIsCombinedLateIsGradientsWhichAdasumTakesOnlyWithoutMemory) {
  const Choices late = {.synchronization = "delayed", .aggregation = "adasum"};
  EXPECT_TRUE(ConflictsOf(late).empty());

  Choices remembering = late;
  remembering.momentum = 0.5;
  const std::vector<Conflict> conflicts = ConflictsOf(remembering);

  ASSERT_EQ(conflicts.size(), 1u);
  EXPECT_EQ(conflicts[0].field, "adapt.aggregation.policy");
  EXPECT_EQ(conflicts[0].other, "adapt.synchronization.policy");
}

TEST(ConflictsTest, AnUnknownNameConflictsWithNothing) {
  EXPECT_TRUE(ConflictsOf({.learning_rate = "Adascale", .optimizer = "adam"}).empty());
}

// ---- Plans

TEST(AllowedTest, AgreesWithTheRulesOnChoicesForEveryPlan) {
  std::vector<std::pair<std::string, double>> optimizers = {{"sgd", 0.9}};
  for (const std::string& optimizer : kOptimizers) optimizers.emplace_back(optimizer, 0);
  for (const auto synchronization :
       {Synchronization::kEveryStep, Synchronization::kPeriodic, Synchronization::kDelayed}) {
    for (const auto aggregation : {Aggregation::kAverage, Aggregation::kAdasum}) {
      for (const auto rule : {LearningRateRule::kConstant, LearningRateRule::kLinear,
                              LearningRateRule::kSqrt, LearningRateRule::kAdascale}) {
        for (const EncodingRow& row : kEncodings) {
          for (const auto& [optimizer, momentum] : optimizers) {
            const Plan plan = {.synchronization = synchronization,
                               .aggregation = aggregation,
                               .learning_rate_rule = rule,
                               .encoding = row.encoding};
            const Choices same = {"fixed",
                                  std::string(NameOf(synchronization)),
                                  std::string(NameOf(aggregation)),
                                  std::string(NameOf(rule)),
                                  std::string(NameOf(row.encoding)),
                                  optimizer,
                                  momentum,
                                  {}};

            EXPECT_EQ(Allowed(plan, {.name = optimizer, .momentum = momentum}), Possible(same))
                << Shown(same);
          }
        }
      }
    }
  }
}

TEST(AllowedTest, APeriodIsAllowedWithAdam) {
  EXPECT_TRUE(
      Allowed({.synchronization = Synchronization::kPeriodic, .period = 8}, {.name = "adam"}));
}

TEST(AllowedTest, AdascaleIsRefusedWithAdasumAndNotWithAPeriod) {
  EXPECT_FALSE(Allowed(
      {.aggregation = Aggregation::kAdasum, .learning_rate_rule = LearningRateRule::kAdascale},
      {}));
  EXPECT_TRUE(Allowed({.synchronization = Synchronization::kPeriodic,
                       .learning_rate_rule = LearningRateRule::kAdascale},
                      {}));
}

}  // namespace
}  // namespace tactus::policies
