#include "policies/compatibility.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <sstream>

#include "policies/plan_names.h"

namespace tactus::policies {
namespace {

// The whole matrix, both halves, as it is published: Y free, C conditional, N forbidden, "-" the
// diagonal; rows and columns in the order of Method.
constexpr const char* kPublished = R"(
-   N1  N1  N2  N3  C4  N5  Y   N6  C7  C8  C9
N1  -   N1  N10 N11 C4  N5  Y   C12 C13 C14 C15
N1  N1  -   N2  N3  C4  N5  Y   N16 C7  C8  C9
N2  N10 N2  -   N17 C18 N19 C20 N21 N22 C23 N24
N3  N11 N3  N17 -   C25 N19 C26 N21 N22 N27 N28
C4  C4  C4  C18 C25 -   C29 C30 C31 C31 C32 C33
N5  N5  N5  N19 N19 C29 -   C34 N35 N36 N37 N38
Y   Y   Y   C20 C26 C30 C34 -   Y   C39 C40 C41
N6  C12 N16 N21 N21 C31 N35 Y   -   N42 C43 C44
C7  C13 C7  N22 N22 C31 N36 C39 N42 -   N45 C46
C8  C14 C8  C23 N27 C32 N37 C40 C43 N45 -   N47
C9  C15 C9  N24 N28 C33 N38 C41 C44 C46 N47 -
)";

std::string Shown(const Verdict& verdict) {
  if (verdict.relation == Relation::kFree) return "Y";
  return (verdict.relation == Relation::kForbidden ? "N" : "C") + std::to_string(verdict.number);
}

TEST(MethodMatrixTest, IsThePublishedOneInBothHalves) {
  std::istringstream published(kPublished);

  for (int row = 0; row < kMethods; ++row) {
    for (int column = 0; column < kMethods; ++column) {
      std::string expected;
      published >> expected;
      if (row == column) expected = "Y";
      const Verdict verdict = Relate(static_cast<Method>(row), static_cast<Method>(column));
      EXPECT_EQ(Shown(verdict), expected) << "row " << row << ", column " << column;
      EXPECT_EQ(verdict.reason.empty(), expected == "Y");
    }
  }
}

TEST(MethodMatrixTest, EveryReasonIsUsedAndNoTwoAreTheSame) {
  std::set<int> used;
  std::set<std::string_view> texts;
  for (int row = 0; row < kMethods; ++row) {
    for (int column = 0; column < row; ++column) {
      const Verdict verdict = Relate(static_cast<Method>(row), static_cast<Method>(column));
      if (verdict.number != 0) used.insert(verdict.number);
    }
  }
  for (int number = 1; number <= kReasons; ++number) texts.insert(ReasonOf(number));

  EXPECT_EQ(used.size(), static_cast<std::size_t>(kReasons));
  EXPECT_EQ(texts.size(), static_cast<std::size_t>(kReasons));
  EXPECT_FALSE(texts.contains(""));
}

// ---- The choices of a job

const std::vector<std::string> kBatches = {"fixed", "proportional", "abs", "auto"};
const std::vector<std::string> kSynchronizations = {"every_step", "periodic", "adacomm", "delayed",
                                                    "auto"};
const std::vector<std::string> kAggregations = {"average", "adasum", "auto"};
const std::vector<std::string> kLearningRates = {"constant", "linear", "sqrt", "adascale", "auto"};
const std::vector<std::string> kOptimizers = {"sgd", "adam", "adamw", "lamb"};

void ForEach(const std::function<void(const Choices&)>& visit) {
  for (const std::string& batch : kBatches)
    for (const std::string& synchronization : kSynchronizations)
      for (const std::string& aggregation : kAggregations)
        for (const std::string& learning_rate : kLearningRates)
          for (const std::string& optimizer : kOptimizers)
            for (const bool block_momentum : {false, true})
              visit(
                  {batch, synchronization, aggregation, learning_rate, optimizer, block_momentum});
}

std::string Shown(const Choices& c) {
  return c.batch + " " + c.synchronization + " " + c.aggregation + " " + c.learning_rate + " " +
         c.optimizer + (c.block_momentum ? " block momentum" : "");
}

// The rules in prose, for choices without auto: the slow twin of the table.
bool Possible(const Choices& c) {
  const bool local = c.synchronization == "periodic" || c.synchronization == "adacomm";
  const bool adascale = c.learning_rate == "adascale";
  if (adascale && (c.aggregation == "adasum" || local || c.optimizer != "sgd")) return false;
  if (c.batch == "abs" && c.synchronization != "delayed") return false;
  return c.optimizer == "sgd" || (c.synchronization != "adacomm" && !c.block_momentum);
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
          if (Possible({batch, synchronization, aggregation, rate, c.optimizer, c.block_momentum}))
            return true;
  return false;
}

TEST(ConflictsOracleTest, AJobIsRefusedExactlyWhenNoValueOfItsAxesFits) {
  int visited = 0;
  ForEach([&](const Choices& choices) {
    ++visited;
    EXPECT_EQ(ConflictsOf(choices).empty(), SomeValuePossible(choices)) << Shown(choices);
  });

  EXPECT_EQ(visited, 4 * 5 * 3 * 5 * 4 * 2);
}

TEST(ConflictsTest, TheDefaultsGoTogether) { EXPECT_TRUE(ConflictsOf({}).empty()); }

TEST(ConflictsTest, LeavingEveryAxisToTheCoordinatorIsNoConflictWithAnyOptimizer) {
  for (const std::string& optimizer : kOptimizers) {
    EXPECT_TRUE(ConflictsOf({"auto", "auto", "auto", "auto", optimizer}).empty()) << optimizer;
  }
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
                                                       .optimizer = "lamb",
                                                       .block_momentum = true});

  EXPECT_EQ(conflicts.size(), 6u);
}

TEST(ConflictsTest, LocalStepsExcludeAdascale) {
  for (const char* local : {"periodic", "adacomm"}) {
    const auto conflicts = ConflictsOf({.synchronization = local, .learning_rate = "adascale"});
    ASSERT_EQ(conflicts.size(), 1u) << local;
    EXPECT_EQ(conflicts[0].other, "adapt.synchronization.policy");
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

TEST(ConflictsTest, AnUnknownNameConflictsWithNothing) {
  EXPECT_TRUE(ConflictsOf({.learning_rate = "Adascale", .optimizer = "adam"}).empty());
}

// ---- Plans

TEST(AllowedTest, AgreesWithTheRulesOnChoicesForEveryPlan) {
  for (const auto synchronization :
       {Synchronization::kEveryStep, Synchronization::kPeriodic, Synchronization::kDelayed}) {
    for (const auto aggregation : {Aggregation::kAverage, Aggregation::kAdasum}) {
      for (const auto rule : {LearningRateRule::kConstant, LearningRateRule::kLinear,
                              LearningRateRule::kSqrt, LearningRateRule::kAdascale}) {
        for (const std::string& optimizer : kOptimizers) {
          const Plan plan = {.synchronization = synchronization,
                             .aggregation = aggregation,
                             .learning_rate_rule = rule};
          const Choices same = {"fixed", std::string(NameOf(synchronization)),
                                std::string(NameOf(aggregation)), std::string(NameOf(rule)),
                                optimizer};

          EXPECT_EQ(Allowed(plan, optimizer), Possible(same)) << Shown(same);
        }
      }
    }
  }
}

TEST(AllowedTest, APeriodIsAllowedWithAdam) {
  EXPECT_TRUE(Allowed({.synchronization = Synchronization::kPeriodic, .period = 8}, "adam"));
}

TEST(AllowedTest, AdascaleIsRefusedWithAdasumAndWithAPeriod) {
  EXPECT_FALSE(Allowed(
      {.aggregation = Aggregation::kAdasum, .learning_rate_rule = LearningRateRule::kAdascale},
      "sgd"));
  EXPECT_FALSE(Allowed({.synchronization = Synchronization::kPeriodic,
                        .learning_rate_rule = LearningRateRule::kAdascale},
                       "sgd"));
}

}  // namespace
}  // namespace tactus::policies
