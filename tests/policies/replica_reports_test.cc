// Members that make one replica: what they measure together, and the shares that follow it.

#include "policies/replica_reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "policies/planner.h"
#include "policies/proportional_shares.h"

namespace tactus::policies {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

using Sizes = std::vector<std::uint32_t>;

Report Of(std::uint32_t rank, std::uint64_t samples, double compute_seconds,
          std::uint64_t round = 0) {
  return {.round = round, .rank = rank, .samples = samples, .compute_seconds = compute_seconds};
}

TEST(ReplicaReportsTest, AMemberThatIsOneReplicaSpeaksForItself) {
  ReplicaReports replicas(1);

  const std::vector<Report> reports = replicas.Observe(Of(3, 7, 0.25));

  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_EQ(reports[0].rank, 3u);
  EXPECT_EQ(reports[0].samples, 7u);
  EXPECT_EQ(reports[0].compute_seconds, 0.25);
}

TEST(ReplicaReportsTest, AReplicaIsAsLongAboutItsSamplesAsTheLastOfItsMembers) {
  ReplicaReports replicas(3);
  EXPECT_THAT(replicas.Observe(Of(5, 10, 0.5)), IsEmpty());
  EXPECT_THAT(replicas.Observe(Of(3, 10, 2.0)), IsEmpty());

  const std::vector<Report> reports = replicas.Observe(Of(4, 0, 0.1));

  ASSERT_THAT(reports, SizeIs(3));
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(reports[i].rank, 3 + i);
    EXPECT_EQ(reports[i].compute_seconds, 2.0);
  }
  EXPECT_EQ(reports[0].samples, 7u) << "20 samples, of which each has a third";
  EXPECT_EQ(reports[1].samples, 7u);
  EXPECT_EQ(reports[2].samples, 6u);
}

TEST(ReplicaReportsTest, RoundsAndReplicasAreApart) {
  ReplicaReports replicas(2);
  EXPECT_THAT(replicas.Observe(Of(0, 4, 1, 0)), IsEmpty());
  EXPECT_THAT(replicas.Observe(Of(1, 4, 1, 1)), IsEmpty()) << "another round";
  EXPECT_THAT(replicas.Observe(Of(3, 4, 1, 0)), IsEmpty()) << "another replica";
  EXPECT_THAT(replicas.Observe(Of(0, 4, 1, 0)), IsEmpty()) << "the same one's again";
  EXPECT_THAT(replicas.Observe(Of(1, 4, 1, 0)), SizeIs(2));
  EXPECT_THAT(replicas.Observe(Of(2, 4, 1, 0)), SizeIs(2));
}

TEST(ReplicaReportsTest, ATimeThatIsNoneLeavesTheReplicaNone) {
  ReplicaReports replicas(2);
  replicas.Observe(Of(0, 4, std::numeric_limits<double>::quiet_NaN()));

  const std::vector<Report> reports = replicas.Observe(Of(1, 4, 1));

  ASSERT_THAT(reports, SizeIs(2));
  for (const Report& report : reports) EXPECT_FALSE(std::isfinite(report.compute_seconds));
}

TEST(ReplicaReportsTest, WhatIsNeverCompleteIsForgotten) {
  ReplicaReports replicas(2);
  for (std::uint64_t round = 0; round <= ReplicaReports::kOpenRoundsMax; ++round) {
    replicas.Observe(Of(0, 4, 1, round));
  }

  EXPECT_THAT(replicas.Observe(Of(1, 4, 1, 0)), IsEmpty()) << "the oldest is forgotten";
  EXPECT_THAT(replicas.Observe(Of(1, 4, 1, ReplicaReports::kOpenRoundsMax)), SizeIs(2));

  replicas.Start();
  replicas.Observe(Of(0, 4, 1, 5));
  replicas.Start();
  EXPECT_THAT(replicas.Observe(Of(1, 4, 1, 5)), IsEmpty()) << "the other's was of a former group";
}

TEST(ReplicaSharesTest, ReplicasShareBySpeedAndTheirMembersEqually) {
  EXPECT_EQ(ProportionalShares({30, 30, 10, 10}, 64, {.replica_members = 2}),
            (Sizes{24, 24, 8, 8}));
}

TEST(ReplicaSharesTest, AReplicaIsAsFastAsItsSlowestMember) {
  EXPECT_EQ(ProportionalShares({90, 10, 30, 30}, 64, {.replica_members = 2}),
            (Sizes{8, 8, 24, 24}));
}

TEST(ReplicaSharesTest, WhatMembersCannotHaveEquallyIsLeftOut) {
  const Sizes sizes = ProportionalShares({1, 1, 1, 1, 1, 1, 1, 1}, 67, {.replica_members = 4});

  EXPECT_EQ(sizes, (Sizes{8, 8, 8, 8, 8, 8, 8, 8}));
}

TEST(ReplicaSharesTest, BoundsAreOfAMember) {
  const BatchOptions options{.batch_min = 4, .batch_max = 20, .replica_members = 2};

  EXPECT_EQ(ProportionalShares({99, 99, 1, 1}, 48, options), (Sizes{20, 20, 4, 4}));
}

// ---- The planner: two meshes of 1 x 2, of which the second has half the speed

struct Mesh {
  double speed = 1;  // [samples/s] of its members together
};

// Rounds of replicas under the plan in force, in which a member sees of a pass what it waited for
// in it: all of the same length, whatever each brought.
class Meshes {
 public:
  Meshes(const PlannerOptions& options, std::vector<Mesh> meshes)
      : meshes_(std::move(meshes)), planner_(options) {
    plan_ = planner_.Start({.members = static_cast<std::uint32_t>(2 * meshes_.size())}).plan;
    plan_.version = 1;
  }

  // Of a round in which some members may have less than their share, as at an epoch's end.
  void Round(const Sizes& sizes) {
    double longest = 0;
    std::uint64_t sum = 0;
    for (std::uint32_t rank = 0; rank < sizes.size(); ++rank) {
      longest = std::max(longest, Seconds(sizes, rank));
      sum += sizes[rank];
    }
    for (std::uint32_t rank = 0; rank < sizes.size(); ++rank) {
      const double own = Seconds(sizes, rank);
      planner_.Observe({.round = round_,
                        .plan_version = plan_.version,
                        .rank = rank,
                        .samples = sizes[rank],
                        .steps = 1,
                        .compute_seconds = own,
                        .blocked_seconds = longest - own + 0.01,
                        .round_seconds = longest + 0.01,
                        .samples_global = sum,
                        .loss_mean_global = 1,
                        .learning_rate = 0.1});
    }
    ++round_;
    std::optional<Revision> revision = planner_.Decide(plan_, std::nullopt);
    if (!revision) return;
    plan_ = revision->plan;
    for (const Decision& decision : revision->decisions) reasons_.push_back(decision.reason);
  }

  void Run(int rounds) {
    for (int i = 0; i < rounds; ++i) Round(plan_.batch_sizes);
  }

  const Sizes& sizes() const { return plan_.batch_sizes; }
  const std::vector<std::string>& reasons() const { return reasons_; }

 private:
  double Seconds(const Sizes& sizes, std::uint32_t rank) const {
    const std::uint32_t replica = rank / 2;
    return (sizes[2 * replica] + sizes[2 * replica + 1]) / meshes_[replica].speed;
  }

  const std::vector<Mesh> meshes_;
  Planner planner_;
  Plan plan_;
  std::uint64_t round_ = 0;
  std::vector<std::string> reasons_;
};

TEST(ReplicaPlannerTest, UnequalReplicasComeToSharesBySpeed) {
  Meshes meshes({.batch = {.per_worker = 30, .replica_members = 2}, .mesh = "1d"},
                {{.speed = 200}, {.speed = 100}});
  ASSERT_EQ(meshes.sizes(), (Sizes{30, 30, 30, 30}));

  meshes.Run(20);

  EXPECT_EQ(meshes.sizes(), (Sizes{40, 40, 20, 20}));
  ASSERT_THAT(meshes.reasons(), Not(IsEmpty()));
  EXPECT_THAT(meshes.reasons().front(),
              HasSubstr("replica 1 computes 100.0 samples/s against 200 on the fastest"));
}

// An epoch ends in rounds in which members have unequal parts: the second member of the first
// replica always has less, and is no slower for it than the other is.
TEST(ReplicaPlannerTest, WhoHadTheSamplesOfAnEpochsEndSaysNothingOfSpeeds) {
  const auto after_epochs = [](std::uint32_t replica_members) {
    Meshes meshes({.batch = {.per_worker = 30, .replica_members = replica_members}, .mesh = "1d"},
                  {{.speed = 100}, {.speed = 100}});
    for (int epoch = 0; epoch < 30; ++epoch) {
      meshes.Round(meshes.sizes());
      meshes.Round({40, 10, 25, 25});
    }
    return meshes.sizes();
  };

  EXPECT_EQ(after_epochs(2), (Sizes{30, 30, 30, 30}));
  EXPECT_NE(after_epochs(1), (Sizes{30, 30, 30, 30})) << "each by itself, they would";
}

}  // namespace
}  // namespace tactus::policies
