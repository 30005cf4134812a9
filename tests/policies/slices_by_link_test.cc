// Slices of sums in closed loops: what links make the planner try, keep and take back.

#include "policies/slices_by_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/policies/virtual_job.h"

namespace tactus::policies {
namespace {

using ::testing::HasSubstr;
using Slices = std::vector<std::uint32_t>;

// Of equal speeds; one has a tenth of the others' link.
VirtualJobOptions Workers() {
  VirtualJobOptions options;
  options.workers.assign(4, {.speed = 100});
  options.transfer_seconds = 0.6;
  options.planner.batch_policy = "fixed";
  options.planner.synchronization.policy = "every_step";
  options.planner.aggregation_policy = "average";
  options.planner.learning_rate_policy = "constant";
  options.planner.encoding_policy = "auto";
  options.links = {12.5e6, 12.5e6, 1.25e6, 12.5e6};
  options.noise = 0.02;
  return options;
}

Decision Sliced(const VirtualJob& job) {
  for (const Decision& decision : job.DecisionsOf(Axis::kEncoding)) {
    if (decision.to.find(' ') != std::string::npos) return decision;
  }
  ADD_FAILURE() << "nothing was decided";
  return {};
}

TEST(SlicesByLinkTest, WhoHasASlowLinkMakesLessAndTheReasonNamesIt) {
  VirtualJob job(Workers());

  job.Run(60);

  EXPECT_EQ(job.plan().slices, (Slices{334, 333, 0, 333}));
  const Decision decision = Sliced(job);
  EXPECT_THAT(decision.reason, HasSubstr("worker 2 carries 1.25 MB/s, others' 8.75 MB/s"));
  EXPECT_EQ(decision.metric, "useful samples/s");
  EXPECT_GT(decision.predicted_gain, 0.1);
  EXPECT_LE(decision.round, 30u);
}

TEST(SlicesByLinkTest, WhatPaysStays) {
  VirtualJob job(Workers());

  job.Run(2000);

  EXPECT_EQ(job.plan().slices, (Slices{334, 333, 0, 333}));
  EXPECT_LE(job.DecisionsOf(Axis::kEncoding).size(), 2u);  // and float16
}

TEST(SlicesByLinkTest, WhatBringsNothingIsTakenBackAndTriedEverLessOften) {
  VirtualJobOptions options = Workers();
  options.links_matter = false;
  VirtualJob job(options);

  job.RunUntil(3600);

  EXPECT_TRUE(job.plan().slices.empty());
  const std::vector<Decision> decisions = job.DecisionsOf(Axis::kEncoding);
  const auto tried = std::ranges::count_if(decisions, [](const Decision& decision) {
    return decision.reason.find("slices by links did not pay") != std::string::npos;
  });
  EXPECT_GE(tried, 2);
  EXPECT_LE(tried, 9);  // 3, 9, 27 ... times the seconds of the first
}

TEST(SlicesByLinkTest, LinksAlikeOrUnknownLeaveSlicesAlike) {
  for (const std::vector<double>& links :
       {std::vector<double>{1e6, 1e6, 1e6, 1e6}, std::vector<double>{1e6, 1.05e6, 1e6, 0.98e6},
        std::vector<double>{}}) {
    VirtualJobOptions options = Workers();
    options.links = links;
    VirtualJob job(options);

    job.Run(500);

    EXPECT_TRUE(job.plan().slices.empty());
  }
}

TEST(SlicesByLinkTest, AFastTransferIsLeftAlone) {
  VirtualJobOptions options = Workers();
  options.transfer_seconds = 0.005;
  VirtualJob job(options);

  job.Run(500);

  EXPECT_TRUE(job.plan().slices.empty());
}

TEST(SlicesByLinkTest, AnotherGroupBeginsWithoutSlicesAndFindsThemAnew) {
  VirtualJob job(Workers());
  job.Run(100);
  ASSERT_FALSE(job.plan().slices.empty());
  job.options().links = {12.5e6, 1.25e6, 12.5e6, 12.5e6};

  job.Regroup();

  EXPECT_TRUE(job.plan().slices.empty());
  job.Run(200);
  EXPECT_EQ(job.plan().slices, (Slices{334, 0, 333, 333}));
}

TEST(SlicesByLinkTest, APlannerThatTakesOverGoesOn) {
  VirtualJob job(Workers());
  job.Run(100);
  ASSERT_FALSE(job.plan().slices.empty());
  const std::size_t decided = job.DecisionsOf(Axis::kEncoding).size();

  EXPECT_EQ(job.RestartPlanner(), "");
  job.Run(200);

  EXPECT_EQ(job.plan().slices, (Slices{334, 333, 0, 333}));
  EXPECT_EQ(job.DecisionsOf(Axis::kEncoding).size(), decided);
}

TEST(SlicesByLinkTest, ReportsOfAnotherSizeOrOfNoRatesAreLeftOut) {
  SlicesByLink slices;
  slices.Start(3);
  const auto tell = [&](std::uint32_t rank, std::vector<double> rates) {
    slices.Observe({.rank = rank, .link_rates = std::move(rates)});
  };
  for (int round = 0; round < 20; ++round) {
    tell(0, {0, 1, 1});
    tell(1, {1, 0, 1});
    tell(2, {1, -1, 0});
    tell(2, {1, 1, 0, 1});
    tell(7, {1, 1, 0});
  }
  EXPECT_FALSE(slices.OnTrial());
  EXPECT_TRUE(Sound(slices));
}

}  // namespace
}  // namespace tactus::policies
