#include "simulator/group.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace tactus::simulator {
namespace {

Instant At(double seconds) { return Instant{} + Seconds(seconds); }

// Members on hosts of their own, 1 MB/s and no latency.
class GroupTest : public testing::Test {
 protected:
  // Each member starts an all-reduce of {its rank + 1} at start_seconds[rank].
  void Run(const std::vector<double>& start_seconds) {
    ClusterModel cluster;
    Places places;
    for (std::size_t i = 0; i < start_seconds.size(); ++i) {
      cluster.hosts.push_back({.name = "h" + std::to_string(i),
                               .link = {.latency_seconds = 0, .bytes_per_second = 1e6}});
      places.hosts.push_back(i);
    }
    network_ = std::make_unique<Network>(cluster);
    group_ =
        std::make_unique<Group>(scheduler_, *network_, places,
                                GroupOptions{.algorithm = algorithm_, .bytes_per_element = 1e6});
    completions_.resize(start_seconds.size());
    values_.resize(start_seconds.size());
    transports_.resize(start_seconds.size());
    for (std::size_t i = 0; i < start_seconds.size(); ++i) {
      values_[i] = {static_cast<float>(i + 1)};
      processes_.push_back(std::make_unique<Process>(
          scheduler_, [this, i, start = At(start_seconds[i])] { Member(i, start); }));
      transports_[i] = group_->Join(static_cast<int>(i), *processes_[i]);
    }
    while (scheduler_.RunNext()) {
    }
  }

  void Member(std::size_t i, Instant start) {
    if (!processes_[i]->SleepUntil(start, WaitReason::kComputing)) return;
    completions_[i] = transports_[i]->StartAllReduceSum(values_[i])->Wait();
    transports_[i].reset();
  }

  // The member's process is gone at that time, which nobody tells the group.
  void LeaveAt(double seconds, std::size_t i) {
    scheduler_.At(At(seconds), [this, i] {
      processes_[i]->Kill();
      transports_[i].reset();
    });
  }

  void ExpectFailed(std::size_t i, Instant at, const std::string& reason) {
    EXPECT_EQ(completions_[i].progress, collective::Progress::kFailed) << i;
    EXPECT_EQ(completions_[i].at, at) << i;
    EXPECT_EQ(completions_[i].reason, reason) << i;
  }

  Algorithm algorithm_ = Algorithm::kRecursiveHalving;
  Scheduler scheduler_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<Group> group_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::unique_ptr<collective::Transport>> transports_;
  std::vector<std::vector<float>> values_;
  std::vector<collective::Completion> completions_;
};

// Two halves of a megabyte out and in: 0.5 s a step, two steps.
TEST_F(GroupTest, AReductionIsDoneWhenTheLinksAreDone) {
  Run({0, 3});

  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(completions_[i].progress, collective::Progress::kDone);
    EXPECT_EQ(completions_[i].at, At(4)) << i;
    EXPECT_EQ(values_[i][0], 3.0f);
  }
}

TEST_F(GroupTest, AMemberThatDiesEndsTheGroupForTheOthersAMomentLater) {
  scheduler_.At(At(2), [this] {
    processes_[1]->Kill();
    group_->Fail("a member's process ended");
  });

  Run({0, 10, 0});

  for (const std::size_t i : {0, 2}) {
    ExpectFailed(i, At(2) + Group::kResetDelay, "a member's process ended");
  }
}

TEST_F(GroupTest, AMemberThatLeavesEndsTheGroupForWhomWaitsAndWhomComes) {
  LeaveAt(2, 1);

  Run({0, 10, 5});

  ExpectFailed(0, At(2) + Group::kResetDelay, "a member left the group");
  ExpectFailed(2, At(5), "a member left the group");
}

TEST_F(GroupTest, AMemberIsMissedWhenTheNextCollectiveBegins) {
  LeaveAt(2, 1);

  Run({5, 10});

  ExpectFailed(0, At(5) + Group::kResetDelay, "a member left the group");
}

TEST_F(GroupTest, AMemberThatHasItsPartOfTheLastCollectiveMayLeave) {
  algorithm_ = Algorithm::kTree;

  Run({0, 0});

  EXPECT_EQ(completions_[0].at, At(1));  // leaves then
  EXPECT_EQ(completions_[1].progress, collective::Progress::kDone);
  EXPECT_EQ(completions_[1].at, At(2));
}

TEST_F(GroupTest, AMemberThatStandsStillHoldsTheOthersUp) {
  scheduler_.At(At(1), [this] { processes_[1]->PauseUntil(At(30)); });

  Run({0, 5});

  // 4 s of its own work were left.
  EXPECT_EQ(completions_[0].at, At(35));
}

TEST_F(GroupTest, AMemberThatNeverComesEndsTheGroupAfterItsTimeout) {
  scheduler_.At(At(1), [this] { processes_[1]->PauseUntil(Instant::max()); });
  scheduler_.At(At(5000), [this] { processes_[1]->Kill(); });

  Run({0, 5});

  ExpectFailed(0, At(600), "a collective made no progress for 600 s");
}

TEST_F(GroupTest, WhoIsCutOffForEverGivesUpAndWhoIsNotDoesNotWait) {
  algorithm_ = Algorithm::kTree;
  scheduler_.At(At(1), [this] { network_->Block(0, 1, kNever); });

  Run({0, 3});

  EXPECT_EQ(completions_[0].progress, collective::Progress::kDone);
  EXPECT_EQ(completions_[0].at, At(4));  // what 1 sent has come
  ExpectFailed(1, At(603), "a collective made no progress for 600 s");
}

TEST_F(GroupTest, ADeathIsNotHiddenByAGiveUpThatIsFarAhead) {
  scheduler_.At(At(0), [this] { network_->Block(0, 1, kNever); });
  scheduler_.At(At(7), [this] {
    processes_[1]->Kill();
    group_->Fail("a member's process ended");
  });

  Run({1, 1});

  ExpectFailed(0, At(7) + Group::kResetDelay, "a member's process ended");
}

}  // namespace
}  // namespace tactus::simulator
