#include "runtime/options.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace tactus::runtime {
namespace {

TEST(OptionsTest, DurationsWithUnitsAreRead) {
  EXPECT_EQ(*ParseDuration("5s"), Seconds(5));
  EXPECT_EQ(*ParseDuration("200ms"), Seconds(0.2));
  EXPECT_EQ(*ParseDuration("30m"), Seconds(1800));
  EXPECT_EQ(*ParseDuration("1h30m"), Seconds(5400));
  EXPECT_EQ(*ParseDuration("1.5h"), Seconds(5400));
  EXPECT_EQ(*ParseDuration("1d1ns"), Seconds(86400) + Duration(1));
  EXPECT_EQ(*ParseDuration("0"), Duration::zero());
}

TEST(OptionsTest, OtherTextsAreRefusedWithWhatIsAllowed) {
  for (const char* text : {"", "5", "s", "-5s", "5 s", "5S", "5parsecs", "30m1h", "5s5s", "1.5h30m",
                           "1e3s", "nans", "infs", "5s ", "--5s", "-", "--", "---5s"}) {
    const absl::StatusOr<Duration> parsed = ParseDuration(text);
    ASSERT_TRUE(absl::IsInvalidArgument(parsed.status())) << text;
    EXPECT_NE(std::string(parsed.status().message()).find("allowed is"), std::string::npos) << text;
  }
}

// Each is looked at once, however many signs it begins with.
TEST(OptionsTest, AMillionDashesAreRefusedLikeOne) {
  EXPECT_TRUE(absl::IsInvalidArgument(ParseDuration(std::string(1'000'000, '-') + "5s").status()));
}

TEST(OptionsTest, ANumberWithItsUnitIsSaidToBeNegativeOrTooLong) {
  EXPECT_EQ(ParseDuration("-1m30s").status().message(),
            "found \"-1m30s\", allowed is a duration that is not negative, such as 90s");
  const absl::Status longest = ParseDuration("99999999999999999h").status();
  EXPECT_TRUE(absl::IsOutOfRange(longest));
  EXPECT_EQ(longest.message(), "found \"99999999999999999h\", allowed is at most 100000d");
}

TEST(OptionsTest, FormattedDurationsReadBackAsThemselves) {
  EXPECT_EQ(FormatDuration(Seconds(5400)), "1h30m");
  EXPECT_EQ(FormatDuration(Duration::zero()), "0");
  Rng rng(1);
  for (int i = 0; i < 1000; ++i) {
    const Duration duration(static_cast<std::int64_t>(rng.Below(1ULL << (1 + rng.Below(50)))));
    EXPECT_EQ(*ParseDuration(FormatDuration(duration)), duration) << FormatDuration(duration);
  }
}

TEST(OptionsTest, FoldersFollowTheXdgVariables) {
  const UserFolders set =
      FoldersFrom({.xdg_state_home = "/var/s", .xdg_config_home = "/var/c", .home = "/home/u"});
  EXPECT_EQ(set.state, "/var/s/tactus");
  EXPECT_EQ(set.config, "/var/c/tactus");

  const UserFolders relative = FoldersFrom({.xdg_state_home = "s", .home = "/home/u"});
  EXPECT_EQ(relative.state, "/home/u/.local/state/tactus");
  EXPECT_EQ(relative.config, "/home/u/.config/tactus");

  EXPECT_EQ(FoldersFrom({}).state, "/var/lib/tactus");
}

}  // namespace
}  // namespace tactus::runtime
