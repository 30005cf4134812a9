// What the checkers allow where epochs are of a part of the samples.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "simulator/checkers.h"

namespace tactus::simulator {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr GroupKey kChoosingGroup{.job = {1}, .generation = 1};

class CheckedSubsetsTest : public testing::Test {
 protected:
  auto Broken() {
    std::vector<std::string> what;
    for (const Violation& violation : checkers_.TakeViolations()) what.push_back(violation.what);
    return what;
  }

  Checkers checkers_;
};

// Epochs of two of four samples, chosen anew after each.
TEST_F(CheckedSubsetsTest, ASampleMayBeUsedTwiceWhereItWasChosenAnewButAsManyAreUsed) {
  checkers_.OnGroup(kChoosingGroup, 1, 2, {.of = 4});
  const auto round = [&](std::uint64_t number, std::uint64_t epoch, std::uint64_t before,
                         const std::vector<std::uint64_t>& samples) {
    checkers_.OnSamples(kChoosingGroup, {.round = number, .epoch = epoch, .indices = samples});
    checkers_.OnRoundClosed(kChoosingGroup, {.round = number, .epoch = before},
                            Instant{} + Seconds(static_cast<double>(number)));
  };
  round(0, 0, 0, {3, 1});
  round(1, 1, 1, {2});
  round(2, 1, 1, {2});
  EXPECT_THAT(Broken(), IsEmpty());

  round(3, 2, 2, {0});
  round(4, 3, 3, {1});
  EXPECT_THAT(Broken(), ElementsAre("job 1 generation 1: epoch 2 used 1 of 2 samples"));
}

TEST_F(CheckedSubsetsTest, ASampleOfTheFirstSubsetIsUsedOnce) {
  checkers_.OnGroup(kChoosingGroup, 1, 2, {.of = 4});
  const std::vector<std::uint64_t> samples = {2};
  for (const std::uint64_t round : {0, 1}) {
    checkers_.OnSamples(kChoosingGroup, {.round = round, .epoch = 0, .indices = samples});
    checkers_.OnRoundClosed(kChoosingGroup, {.round = round},
                            Instant{} + Seconds(static_cast<double>(round)));
  }

  EXPECT_THAT(Broken(), ElementsAre("job 1 generation 1: sample 2 was used twice in epoch 0"));
}

}  // namespace
}  // namespace tactus::simulator
