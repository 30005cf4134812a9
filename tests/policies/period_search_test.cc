#include "policies/period_search.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/policies/round_reports.h"

namespace tactus::policies {
namespace {

// Runs the search on two workers whose loss falls by `power` of time, by another one from some
// period on.
struct Setting {
  double transfer_seconds = 1;
  double power = 0.5;
  std::uint32_t slow_from = 1000;  // period
  double slow_power = 0;
  std::uint32_t period_max = 128;
};

class Search {
 public:
  explicit Search(const Setting& setting) : setting_(setting), search_(setting.period_max) {
    seen_.Start({.members = 2});
  }

  // Returns the periods tried, in order; the last one is the answer.
  std::vector<std::uint32_t> Run() {
    std::vector<std::uint32_t> periods = {search_.period()};
    for (int i = 0; i < 10'000 && !search_.done(); ++i) {
      plan_.period = search_.period();
      plan_.synchronization =
          plan_.period > 1 ? Synchronization::kPeriodic : Synchronization::kEveryStep;
      seen_.Expect(plan_);
      Round();
      if (!search_.Look(seen_, plan_.version)) continue;
      periods.push_back(search_.period());
      ++plan_.version;
    }
    return periods;
  }

 private:
  void Round() {
    const double power = plan_.period >= setting_.slow_from ? setting_.slow_power : setting_.power;
    const double before = seen_.seconds() + 1;
    const double after = before + 0.32 * plan_.period + setting_.transfer_seconds;
    loss_ *= std::pow(after / before, -power);
    ObserveRounds(seen_, plan_, {.first = round_++},
                  {.transfer_seconds = setting_.transfer_seconds, .loss = loss_});
  }

  const Setting setting_;
  PeriodSearch search_;
  Observations seen_;
  Plan plan_ = TwoMembers();
  double loss_ = 10;
  std::uint64_t round_ = 0;
};

using Periods = std::vector<std::uint32_t>;

TEST(PeriodSearchTest, ItGoesStraightToWhereTheExchangeIsATenthOfTheTime) {
  // A step of 0.32 s, a transfer of 1 s: its share is 14 % at 20 steps, 6 % at 50.
  EXPECT_EQ(Search({}).Run(), (Periods{1, 50, 50}));
  // A transfer of 0.1 s: 14 % at 2 steps, 6 % at 5.
  EXPECT_EQ(Search({.transfer_seconds = 0.1}).Run(), (Periods{1, 5, 5}));
}

TEST(PeriodSearchTest, NothingIsTriedWhereTheExchangeIsCheapAlready) {
  EXPECT_EQ(Search({.transfer_seconds = 0.01}).Run(), (Periods{1, 1}));
}

TEST(PeriodSearchTest, APeriodThatStopsTheFallGivesWayToTheNextShorterOne) {
  EXPECT_EQ(Search({.slow_from = 10}).Run(), (Periods{1, 50, 20, 10, 5, 5}));
  EXPECT_EQ(Search({.slow_from = 2}).Run(), (Periods{1, 50, 20, 10, 5, 2, 1}));
}

TEST(PeriodSearchTest, NothingBeyondTheLongestAllowedIsTried) {
  EXPECT_EQ(Search({.period_max = 8}).Run(), (Periods{1, 5, 5}));
}

TEST(PeriodSearchTest, AStretchHasFortyStepsAndSixRoundsAndThatOfSingleStepsFourRounds) {
  PeriodSearch search(128);
  Observations seen;
  seen.Start({.members = 2});
  Plan plan = TwoMembers();
  seen.Expect(plan);

  ObserveRounds(seen, plan, {.count = 4}, {.transfer_seconds = 0.1});
  EXPECT_FALSE(search.Look(seen, 1).has_value()) << "the first round is left out";
  ObserveRounds(seen, plan, {.first = 4, .count = 5}, {.transfer_seconds = 0.1});
  ASSERT_TRUE(search.Look(seen, 1).has_value());
  ASSERT_EQ(search.period(), 5u);

  plan.version = 2;
  plan.synchronization = Synchronization::kPeriodic;
  plan.period = 5;
  seen.Expect(plan);
  ObserveRounds(seen, plan, {.first = 9, .count = 8}, {.transfer_seconds = 0.1});
  EXPECT_FALSE(search.Look(seen, 2).has_value());
  ObserveRounds(seen, plan, {.first = 17, .count = 1}, {.transfer_seconds = 0.1});
  EXPECT_TRUE(search.Look(seen, 2).has_value());
}

TEST(PeriodSearchTest, ARoundLostToNumbersThatAreNotFiniteHurts) {
  PeriodSearch search(128);
  Observations seen;
  seen.Start({.members = 2});
  Plan plan = TwoMembers();
  seen.Expect(plan);
  ObserveRounds(seen, plan, {.count = 9}, {.transfer_seconds = 0.1});
  ASSERT_TRUE(search.Look(seen, 1).has_value());
  plan.version = 2;
  plan.synchronization = Synchronization::kPeriodic;
  plan.period = search.period();
  seen.Expect(plan);
  ObserveRounds(seen, plan, {.first = 9, .count = 9}, {.transfer_seconds = 0.1});
  ObserveRounds(seen, plan, {.first = 18, .count = 1},
                {.transfer_seconds = 0.1, .nonfinite_members = 1});

  ASSERT_TRUE(search.Look(seen, 2).has_value());
  EXPECT_FALSE(search.done());
  EXPECT_LT(search.period(), plan.period);
}

}  // namespace
}  // namespace tactus::policies
