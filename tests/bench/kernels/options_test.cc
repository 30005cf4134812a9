// The command line of bench_kernels.

#include "bench/kernels/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace tactus::bench {
namespace {

using testing::ElementsAre;

std::optional<Options> Parsed(const std::vector<const char*>& arguments) {
  return Parse(arguments);
}

TEST(OptionsTest, WithoutAnyAllSizesAreMeasuredCallByCall) {
  const std::optional<Options> options = Parsed({});

  ASSERT_TRUE(options.has_value());
  EXPECT_EQ(options->sizes.size(), 4u);
  EXPECT_FALSE(options->graph);
}

TEST(OptionsTest, SizesAreInMebibytes) {
  EXPECT_THAT(Parsed({"--sizes", "16"})->sizes, ElementsAre(16 * kMebibyte));
  EXPECT_THAT(Parsed({"--sizes", "16,64,256", "--graph"})->sizes,
              ElementsAre(16 * kMebibyte, 64 * kMebibyte, 256 * kMebibyte));
}

TEST(OptionsTest, ALaterOptionChangesWhatQuickStandsFor) {
  const std::optional<Options> options = Parsed({"--quick", "--sizes", "64", "--filter", "adam"});

  EXPECT_EQ(options->repetitions, 3);
  EXPECT_THAT(options->sizes, ElementsAre(64 * kMebibyte));
  EXPECT_EQ(options->filter, "adam");
}

TEST(OptionsTest, WhatIsWrongIsRefused) {
  for (const char* const sizes : {"", "0", "16,", ",16", "16 64", "-1", "1e3", "5000"}) {
    EXPECT_FALSE(Parsed({"--sizes", sizes}).has_value()) << sizes;
  }
  EXPECT_FALSE(Parsed({"--sizes"}).has_value());
  EXPECT_FALSE(Parsed({"--json"}).has_value());
  EXPECT_FALSE(Parsed({"--graphs"}).has_value());
}

}  // namespace
}  // namespace tactus::bench
