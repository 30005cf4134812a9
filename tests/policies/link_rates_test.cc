// Whose link an exchange waits for.

#include "policies/link_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <vector>

#include "tests/policies/virtual_job.h"

namespace tactus::policies {
namespace {

using ::testing::HasSubstr;

Report Told(std::uint32_t rank, double rate) {
  return {.rank = rank, .link_bytes_per_second = rate};
}

LinkRates Links(const std::vector<double>& rates) {
  LinkRates links;
  links.Start(static_cast<std::uint32_t>(rates.size()));
  for (std::uint32_t rank = 0; rank < rates.size(); ++rank) links.Observe(Told(rank, rates[rank]));
  return links;
}

TEST(LinkRatesTest, TheSlowestIsNamedBesideWhatIsUsual) {
  const std::optional<SlowLink> slow = Links({12e6, 13e6, 1e6, 14e6}).Slow();

  ASSERT_TRUE(slow.has_value());
  EXPECT_EQ(slow->rank, 2u);
  EXPECT_EQ(slow->rate, 1e6);
  EXPECT_EQ(slow->usual, 13e6);
}

TEST(LinkRatesTest, NoneIsSlowWhereAllAreNearlyAlike) {
  EXPECT_FALSE(Links({12e6, 7e6, 13e6, 14e6}).Slow());
  EXPECT_TRUE(Links({12e6, 5e6, 13e6, 14e6}).Slow());
}

TEST(LinkRatesTest, TwoMembersHaveOneWayBetweenThem) { EXPECT_FALSE(Links({12e6, 1e6}).Slow()); }

TEST(LinkRatesTest, WhileOneIsNotKnownNothingIsSaid) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(Links({12e6, 1e6, 0, 12e6}).Slow());
  EXPECT_FALSE(Links({12e6, 1e6, -1, 12e6}).Slow());
  EXPECT_FALSE(Links({12e6, 1e6, kInfinity, 12e6}).Slow());
  EXPECT_FALSE(Links({12e6, 1e6, std::numeric_limits<double>::quiet_NaN(), 12e6}).Slow());
}

TEST(LinkRatesTest, OneRoundDoesNotMakeALinkSlowThatWasNot) {
  LinkRates links = Links({12e6, 12e6, 12e6});
  links.Observe(Told(1, 12e6));
  links.Observe(Told(1, 1e6));
  EXPECT_FALSE(links.Slow());
  for (std::size_t round = 0; round < LinkRates::kRounds; ++round) links.Observe(Told(1, 1e6));
  EXPECT_TRUE(links.Slow());
}

TEST(LinkRatesTest, WhatIsNotToldAnyMoreIsForgotten) {
  LinkRates links = Links({12e6, 1e6, 12e6});
  links.Observe(Told(1, 0));
  EXPECT_TRUE(links.Slow());
  for (std::size_t round = 0; round < LinkRates::kRounds; ++round) links.Observe(Told(1, 0));
  EXPECT_FALSE(links.Slow());
  EXPECT_TRUE(Sound(links));
}

TEST(LinkRatesTest, ANewGroupForgetsThem) {
  LinkRates links = Links({12e6, 1e6, 12e6});
  links.Start(3);
  EXPECT_FALSE(links.Slow());
}

TEST(LinkRatesTest, StrangersAreLeftOut) {
  LinkRates links = Links({12e6, 1e6, 12e6});
  links.Observe(Told(3, 1));
  EXPECT_EQ(links.Slow()->usual, 12e6);
  EXPECT_TRUE(Sound(links));
}

TEST(LinkRatesTest, ATransferSaysWhomItWaitsFor) {
  EXPECT_EQ(TransferText(1.25, std::nullopt), "a transfer of 1.25 s");
  EXPECT_EQ(
      TransferText(1.25, SlowLink{.rank = 2, .rate = 6e5, .usual = 1.2e7}),
      "a transfer of 1.25 s (it waits for rank 2's link, which brings 0.60 MB/s where 12.0 are "
      "usual)");
}

TEST(LinkRatesTest, TheReasonOfADecisionNamesTheLink) {
  VirtualJobOptions options;
  options.workers.assign(4, {.speed = 100});
  options.transfer_seconds = 0.4;
  options.planner.batch_policy = "fixed";
  options.planner.encoding_policy = "auto";
  options.link_rates = {12e6, 12e6, 12e6, 1.5e6};
  VirtualJob job(options);

  job.Run(300);

  const std::vector<Decision> decisions = job.DecisionsOf(Axis::kEncoding);
  ASSERT_GE(decisions.size(), 1u);
  EXPECT_THAT(decisions[0].reason,
              HasSubstr("rank 3's link, which brings 1.50 MB/s where 12.0 are"));
}

}  // namespace
}  // namespace tactus::policies
