// Members as processes: what reaches whom, and that none of them is waited for without a limit.

#include "bench/nccl/processes.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/nccl_double/nccl_double.h"

namespace tactus::bench::nccl {
namespace {

using ::testing::HasSubstr;

constexpr Duration kLong = Seconds(60);

TEST(ProcessesTest, AllMembersHaveTheIdOfTheFirst) {
  nccl_double::Reset();

  const std::vector<Outcome> outcomes = InProcesses(3, kLong, [](const Membership& membership) {
    Outcome outcome{.passed = true};
    for (const std::byte byte : membership.id.bytes) {
      outcome.said += std::to_string(std::to_integer<int>(byte)) + " ";
    }
    outcome.figures = {{"rank", static_cast<double>(membership.rank)}};
    return outcome;
  });

  ASSERT_EQ(outcomes.size(), 3u);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(outcomes[rank].passed);
    EXPECT_EQ(outcomes[rank].said, outcomes[0].said);
    EXPECT_EQ(outcomes[rank].figures, (std::vector<Figure>{{"rank", static_cast<double>(rank)}}));
  }
}

TEST(ProcessesTest, TheFirstOutlivesTheOthersThatAreKilled) {
  const std::vector<Outcome> outcomes = InProcesses(3, kLong, [](const Membership& membership) {
    membership.kill_others();
    return Outcome{.passed = true, .said = "alive"};
  });

  EXPECT_EQ(outcomes[0].said, "alive");
  EXPECT_EQ(outcomes[1].said, "ended by signal 9");
  EXPECT_EQ(outcomes[2].said, "ended by signal 9");
  EXPECT_FALSE(outcomes[1].passed);
}

TEST(ProcessesTest, OneThatHangsIsKilledAfterTheLimit) {
  const std::vector<Outcome> outcomes =
      InProcesses(1, Seconds(0.05), [](const Membership&) -> Outcome {
        while (true) pause();
      });

  EXPECT_FALSE(outcomes[0].passed);
  EXPECT_THAT(outcomes[0].said, HasSubstr("did not end within 0.05"));
}

TEST(ProcessesTest, OneThatEndsWithoutAWordHasFailed) {
  const std::vector<Outcome> outcomes =
      InProcesses(1, kLong, [](const Membership&) -> Outcome { _exit(3); });

  EXPECT_FALSE(outcomes[0].passed);
  EXPECT_EQ(outcomes[0].said, "ended without a word, with 3");
}

}  // namespace
}  // namespace tactus::bench::nccl
