#include "coordinator/tape/difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace tactus::tape {
namespace {

job::Actions Round(const std::vector<std::uint64_t>& samples) {
  return {job::WakeAt{}, job::PersistRound{.round = {.worker_samples = samples}}};
}

TEST(DifferenceTest, ListsOfEqualActionsHaveNone) {
  job::RoundRecord record = {.loss = NAN};

  EXPECT_FALSE(FirstDifference({}, {}));
  EXPECT_FALSE(FirstDifference({job::PersistRound{record}}, {job::PersistRound{record}}));
}

TEST(DifferenceTest, ItemsOfAListComeInTheOrderOfTheirIndex) {
  std::vector<std::uint64_t> other(12, 1);
  other[2] = 5;
  other[10] = 7;

  const auto difference = FirstDifference(Round(std::vector<std::uint64_t>(12, 1)), Round(other));

  ASSERT_TRUE(difference.has_value());
  EXPECT_EQ(difference->place, "action 2, persist_round: round.worker_samples[2]");
  EXPECT_EQ(difference->expected, "1");
  EXPECT_EQ(difference->found, "5");
}

TEST(DifferenceTest, AnItemThatOnlyOneListHasStandsAgainstNothing) {
  const auto difference = FirstDifference(Round({1, 2, 3}), Round({1, 2}));

  ASSERT_TRUE(difference.has_value());
  EXPECT_EQ(difference->place, "action 2, persist_round: round.worker_samples[2]");
  EXPECT_EQ(difference->expected, "3");
  EXPECT_EQ(difference->found, "nothing");
}

TEST(DifferenceTest, NamesComeInTheirOrder) {
  const auto difference = FirstDifference({job::StartWorker{.node = "a", .device = "cpu:0"}},
                                          {job::StartWorker{.node = "b", .device = "cpu:1"}});

  ASSERT_TRUE(difference.has_value());
  EXPECT_EQ(difference->place, "action 1, start_worker: device");
  EXPECT_EQ(difference->found, "\"cpu:1\"");
}

TEST(DifferenceTest, ActionsOfOtherKindsAreShownWhole) {
  const auto difference = FirstDifference({job::WakeAt{}}, {job::StopWorker{.node = "a"}});

  ASSERT_TRUE(difference.has_value());
  EXPECT_EQ(difference->place, "action 1");
  EXPECT_EQ(difference->expected, "{\"kind\":\"wake_at\",\"time\":0}");
}

TEST(DifferenceTest, AnActionTooManyStandsAgainstNothing) {
  const auto difference = FirstDifference({}, {job::WakeAt{}});

  ASSERT_TRUE(difference.has_value());
  EXPECT_EQ(difference->expected, "nothing");
}

}  // namespace
}  // namespace tactus::tape
