#include "policies/prior.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "policies/memory.h"
#include "tests/policies/mended_memory.h"

namespace tactus::policies {
namespace {

constexpr Prior kPrior{.period = 48, .transfer_seconds = 0.41, .encoding = Encoding::kFloat16};

// Of a prior with what is to be in its place.
template <typename... Values>
std::string Bytes(std::uint32_t version, const Values&... values) {
  MemoryWriter writer;
  writer.Write(version);
  (writer("period", values), ...);
  return writer.Finish();
}

TEST(PriorTest, WhatIsReadIsWhatWasWritten) {
  const ReadPrior read = PriorOf(BytesOf(kPrior));

  ASSERT_TRUE(read.prior.has_value()) << read.refusal;
  EXPECT_EQ(*read.prior, kPrior);
}

TEST(PriorTest, ItIsSmall) { EXPECT_LE(BytesOf(kPrior).size(), 32u); }

TEST(PriorTest, DamagedBytesAreRefused) {
  const std::string bytes = BytesOf(kPrior);

  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(PriorOf(bytes.substr(0, size)).refusal, "it is damaged") << size;
  }
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string other = bytes;
    other[at] ^= 1;
    EXPECT_EQ(PriorOf(other).refusal, "it is damaged") << at;
  }
}

TEST(PriorTest, OneOfAnotherVersionIsRefused) {
  std::string other = BytesOf(kPrior);
  ++other[0];
  EXPECT_FALSE(PriorOf(Mended(other)).prior.has_value());
  EXPECT_FALSE(PriorOf(Bytes(1)).prior.has_value());
  EXPECT_FALSE(PriorOf(Bytes(1, 48u)).prior.has_value());
  EXPECT_FALSE(PriorOf(Bytes(1, 48u, 0.41)).prior.has_value());
}

TEST(PriorTest, NumbersThatCannotBeAreRefused) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Prior& prior :
       {Prior{.period = 0, .transfer_seconds = 1}, Prior{.period = 2, .transfer_seconds = -1},
        Prior{.period = 2, .transfer_seconds = nan}}) {
    const ReadPrior read = PriorOf(BytesOf(prior));
    EXPECT_FALSE(read.prior.has_value());
    EXPECT_EQ(read.refusal, "it is of another version, or its numbers cannot be");
  }
}

}  // namespace
}  // namespace tactus::policies
