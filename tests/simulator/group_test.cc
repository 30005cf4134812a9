#include "simulator/group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <span>
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
      group_->SetOfParameters(static_cast<int>(i), [this, i](std::span<const float> buffer) {
        return buffer.data() == values_[i].data();
      });
    }
    while (scheduler_.RunNext()) {
    }
  }

  void Member(std::size_t i, Instant start) {
    if (!processes_[i]->SleepUntil(start, WaitReason::kComputing)) return;
    completions_[i] = body_(i);
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

  // What a member does from its start on.
  std::function<collective::Completion(std::size_t i)> body_ = [this](std::size_t i) {
    return transports_[i]->StartAllReduceSum(values_[i])->Wait();
  };

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

// A float, not a megabyte.
TEST_F(GroupTest, WhatHasNotTheParametersLengthWeighsWhatItIs) {
  std::vector<std::vector<float>> counts(2, {1.0f});
  body_ = [&](std::size_t i) { return transports_[i]->StartAllReduceSum(counts[i])->Wait(); };

  Run({0, 0});

  EXPECT_EQ(counts[0][0], 2.0f);
  EXPECT_GT(completions_[0].at, At(0));
  EXPECT_LT(completions_[0].at, At(1e-5));
}

TEST_F(GroupTest, ALinkBringsWhatItCarriesOnceSomethingLongCame) {
  std::vector<double> rates(3);
  body_ = [&](std::size_t i) {
    EXPECT_EQ(transports_[i]->TakeLinkRate(), 0);
    const collective::Completion done = transports_[i]->StartAllReduceSum(values_[i])->Wait();
    rates[i] = transports_[i]->TakeLinkRate();
    EXPECT_EQ(transports_[i]->TakeLinkRate(), 0);
    return done;
  };

  Run({0, 0, 0});

  EXPECT_THAT(rates, testing::Each(testing::DoubleNear(1e6, 1)));
}

TEST_F(GroupTest, OfOneMemberNoLinkIsKnown) {
  double rate = -1;
  body_ = [&](std::size_t i) {
    const collective::Completion done = transports_[i]->StartAllReduceSum(values_[i])->Wait();
    rate = transports_[i]->TakeLinkRate();
    return done;
  };

  Run({0});

  EXPECT_EQ(rate, 0);
}

TEST_F(GroupTest, TheMeanIsOfMembersThatHaveNotLeft) {
  const std::vector<std::vector<float>> parameters = {{1, 4}, {2, 0}, {6, 2}};
  std::vector<std::vector<float>> means;
  body_ = [&](std::size_t i) {
    group_->SetParameters(static_cast<int>(i), parameters[i]);
    means.push_back(group_->MeanOfParameters());
    processes_[i]->SleepUntil(At(10 + static_cast<double>(i)), WaitReason::kComputing);
    means.push_back(group_->MeanOfParameters());
    return collective::Completion{};
  };

  Run({0, 1, 2});

  EXPECT_EQ(means,
            (std::vector<std::vector<float>>{{1, 4}, {1.5, 2}, {3, 2}, {3, 2}, {4, 1}, {6, 2}}));
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

TEST_F(GroupTest, AConnectionThatBreaksEndsTheGroupForAllAndIsTheOnesWhoFindIt) {
  std::vector<std::vector<int>> failed(3);
  body_ = [&](std::size_t i) {
    const collective::Completion completion = transports_[i]->StartAllReduceSum(values_[i])->Wait();
    failed[i] = transports_[i]->failed();
    return completion;
  };
  scheduler_.At(At(2), [this] { group_->Break(1, 0); });

  Run({0, 0, 10});

  for (const std::size_t i : {0, 1}) {
    ExpectFailed(i, At(2) + Group::kResetDelay, "a connection was lost");
  }
  ExpectFailed(2, At(10), "a connection was lost");
  EXPECT_EQ(failed[0], std::vector<int>());
  EXPECT_EQ(failed[1], std::vector<int>{0});
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

TEST_F(GroupTest, AMemberThatNeverComesIsWaitedForByName) {
  scheduler_.At(At(1), [this] { processes_[1]->PauseUntil(Instant::max()); });
  scheduler_.At(At(5000), [this] {
    EXPECT_TRUE(transports_[0]->awaiting().collective);
    EXPECT_THAT(transports_[0]->awaiting().peers, testing::ElementsAre(1));
    EXPECT_FALSE(transports_[1]->awaiting().collective);
  });
  LeaveAt(5001, 1);

  Run({0, 5});

  ExpectFailed(0, At(5001) + Group::kResetDelay, "a member left the group");
}

TEST_F(GroupTest, WhoIsCutOffForEverWaitsAndWhoIsNotDoesNot) {
  algorithm_ = Algorithm::kTree;
  scheduler_.At(At(1), [this] { network_->Block(0, 1, kNever); });
  collective::Awaiting once;
  scheduler_.At(At(4000), [&] { once = transports_[1]->awaiting(); });
  scheduler_.At(At(5000), [&] {
    EXPECT_TRUE(once.collective);
    EXPECT_EQ(transports_[1]->awaiting().bytes_moved, once.bytes_moved);
    EXPECT_THAT(once.peers, testing::ElementsAre(0));
  });
  LeaveAt(5001, 1);

  Run({0, 3});

  EXPECT_EQ(completions_[0].progress, collective::Progress::kDone);
  EXPECT_EQ(completions_[0].at, At(4));  // what 1 sent has come
}

// Of two reductions the second begins when the cut has healed: it stands in nobody's way before.
TEST_F(GroupTest, WhatWaitsForACutToHealHoldsUpNobodyElse) {
  scheduler_.At(At(1), [this] { network_->Block(0, 1, At(1000)); });
  Instant others;
  scheduler_.At(At(10), [&] { others = network_->Send(1, 2, 1e6, At(10)); });
  body_ = [&](std::size_t i) {
    const auto first = transports_[i]->StartAllReduceSum(values_[i]);
    const auto second = transports_[i]->StartAllReduceSum(values_[i]);
    return second->Wait();
  };

  Run({2, 2, 2});

  EXPECT_EQ(others, At(11));
  EXPECT_GT(completions_[0].at, At(1000));
}

TEST_F(GroupTest, BytesMoveWhileTheyAreOnTheirWay) {
  std::vector<collective::Awaiting> looks;
  for (const double at : {0.2, 0.4}) {
    scheduler_.At(At(at), [&] { looks.push_back(transports_[0]->awaiting()); });
  }

  Run({0, 0});

  EXPECT_TRUE(looks[0].collective);
  EXPECT_THAT(looks[0].peers, testing::ElementsAre(1));
  EXPECT_LT(looks[0].bytes_moved, looks[1].bytes_moved);
}

// A second each for what was started at once.
TEST_F(GroupTest, ACollectiveBeginsWhenTheMembersEarlierOneIsDone) {
  body_ = [this](std::size_t i) {
    const auto first = transports_[i]->StartAllReduceSum(values_[i]);
    const auto second = transports_[i]->StartAllReduceSum(values_[i]);
    EXPECT_EQ(first->Wait().at, At(1));
    return second->Wait();
  };

  Run({0, 0});

  for (const std::size_t i : {0, 1}) EXPECT_EQ(completions_[i].at, At(2)) << i;
}

// A second up the tree, where 0 has the sum; then the sum and the broadcast down, one each.
TEST_F(GroupTest, WhoIsDoneEarlierBeginsTheNextOneEarlier) {
  algorithm_ = Algorithm::kTree;
  body_ = [this](std::size_t i) {
    const auto first = transports_[i]->StartAllReduceSum(values_[i]);
    return transports_[i]->StartBroadcast(values_[i], 0)->Wait();
  };

  Run({0, 0});

  EXPECT_EQ(completions_[0].finished, At(1));  // it has the broadcast from the beginning
  EXPECT_EQ(completions_[1].finished, At(3));
}

// Four bytes, in two halves there and back.
constexpr Duration kBarrierTime = Seconds(4e-6);

TEST_F(GroupTest, ABarrierIsDoneAMomentAfterTheLastHasCome) {
  body_ = [this](std::size_t i) { return transports_[i]->StartBarrier()->Wait(); };

  Run({0, 3});

  for (const std::size_t i : {0, 1}) {
    EXPECT_EQ(completions_[i].progress, collective::Progress::kDone);
    EXPECT_EQ(completions_[i].at, At(3) + kBarrierTime) << i;
  }
}

TEST_F(GroupTest, ABarrierComesAfterWhatItsMembersStartedBefore) {
  body_ = [this](std::size_t i) {
    const auto reduction = transports_[i]->StartAllReduceSum(values_[i]);
    return transports_[i]->StartBarrier()->Wait();
  };

  Run({0, 3});

  for (const std::size_t i : {0, 1}) EXPECT_EQ(completions_[i].at, At(4) + kBarrierTime) << i;
}

TEST_F(GroupTest, WhoComputesMeanwhileLearnsLaterOfABarrierThatIsDone) {
  body_ = [this](std::size_t i) {
    const auto barrier = transports_[i]->StartBarrier();
    processes_[i]->SleepUntil(At(10), WaitReason::kComputing);
    EXPECT_EQ(barrier->Poll(), collective::Progress::kDone);
    return barrier->Wait();
  };

  Run({0, 3});

  EXPECT_EQ(completions_[0].at, At(10));
  EXPECT_EQ(completions_[0].finished, At(3) + kBarrierTime);
}

TEST_F(GroupTest, WhoComputesMeanwhileWaitsForWhoComesToABarrierLater) {
  body_ = [this](std::size_t i) {
    if (i == 1) processes_[i]->SleepUntil(At(2000), WaitReason::kComputing);
    const auto barrier = transports_[i]->StartBarrier();
    if (i == 0) processes_[i]->SleepUntil(At(1000), WaitReason::kComputing);
    return barrier->Wait();
  };

  Run({5, 5});

  EXPECT_EQ(completions_[0].at, At(2000) + kBarrierTime);
}

// Two turns: a float to everybody, then two.
class TwoTurns : public collective::Conversation {
 public:
  explicit TwoTurns(std::size_t members) : inboxes_(members, std::vector<float>(2)) {}

  std::size_t turns() const override { return 2; }
  void Begin(std::size_t) override {}
  std::span<const std::byte> Outgoing(std::size_t turn, int) override {
    return std::as_bytes(std::span(said_)).first((turn + 1) * sizeof(float));
  }
  std::span<std::byte> Incoming(std::size_t turn, int peer) override {
    const std::span<float> inbox = inboxes_[static_cast<std::size_t>(peer)];
    return std::as_writable_bytes(inbox.first(turn + 1));
  }
  void End() override { ended_ = true; }

  bool ended() const { return ended_; }

 private:
  std::array<float, 2> said_{};
  std::vector<std::vector<float>> inboxes_;
  bool ended_ = false;
};

// Each of three members sends a float, 1 s, and then two to both others.
TEST_F(GroupTest, AConversationTakesItsMessagesTime) {
  std::vector<TwoTurns> talks(3, TwoTurns(3));
  body_ = [&](std::size_t i) { return transports_[i]->StartConversation(talks[i])->Wait(); };

  Run({0, 1, 2});

  for (std::size_t i = 0; i < talks.size(); ++i) {
    EXPECT_EQ(completions_[i].progress, collective::Progress::kDone);
    EXPECT_TRUE(talks[i].ended());
    EXPECT_GE(completions_[i].at, At(2 + 2 * 2)) << i;
    EXPECT_LE(completions_[i].at, At(2 + 2 + 2 * 2)) << i;
  }
  EXPECT_DOUBLE_EQ(group_->bytes_sent(), 3 * 2 * (1 + 2) * 1e6);
}

class GroupExchangeTest : public GroupTest {
 protected:
  // The two exchange: 0 sends two elements, 1 sends one.
  collective::Completion Swap(std::size_t i) {
    const std::vector<float> sent = i == 0 ? std::vector{5.0f, 6.0f} : std::vector{7.0f};
    received_[i].resize(i == 0 ? 1 : 2);
    return transports_[i]
        ->StartExchange(static_cast<int>(1 - i), std::as_bytes(std::span(sent)),
                        std::as_writable_bytes(std::span(received_[i])))
        ->Wait();
  }

  std::array<std::vector<float>, 2> received_;
};

TEST_F(GroupExchangeTest, AnExchangeTakesEachMessagesTime) {
  body_ = [this](std::size_t i) { return Swap(i); };

  Run({0, 3});

  EXPECT_EQ(completions_[0].at, At(4));
  EXPECT_EQ(completions_[1].at, At(3));  // what 0 sent at once has come
  EXPECT_EQ(received_[0], std::vector<float>{7.0f});
  EXPECT_EQ(received_[1], (std::vector<float>{5.0f, 6.0f}));
  EXPECT_DOUBLE_EQ(group_->bytes_sent(), 3e6);
}

TEST_F(GroupExchangeTest, AnExchangeIsOfTwoMembersAlone) {
  body_ = [this](std::size_t i) {
    if (i == 2) return transports_[i]->StartAllReduceSum(values_[i])->Wait();
    const collective::Completion swapped = Swap(i);
    EXPECT_EQ(swapped.at, At(i == 0 ? 1 : 2)) << i;
    return transports_[i]->StartAllReduceSum(values_[i])->Wait();
  };

  Run({0, 0, 50});

  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(completions_[i].progress, collective::Progress::kDone);
    EXPECT_EQ(values_[i][0], 6.0f);
  }
}

TEST_F(GroupExchangeTest, AnExchangeWaitsForWhatItsMembersStartedBefore) {
  body_ = [this](std::size_t i) {
    const auto reduction = transports_[i]->StartAllReduceSum(values_[i]);
    return i == 2 ? reduction->Wait() : Swap(i);
  };

  Run({0, 0, 50});

  EXPECT_GE(completions_[0].at, At(52));
  EXPECT_GE(completions_[1].at, At(53));
  EXPECT_EQ(received_[0], std::vector<float>{7.0f});
}

TEST_F(GroupExchangeTest, AMemberThatLeavesEndsTheGroupForWhoExchangesWithIt) {
  LeaveAt(2, 1);
  body_ = [this](std::size_t i) { return Swap(i); };

  Run({0, 10});

  ExpectFailed(0, At(2) + Group::kResetDelay, "a member left the group");
}

TEST_F(GroupExchangeTest, AMemberThatLeavesIsNotMissedByAnExchangeOfOthers) {
  LeaveAt(2, 2);
  body_ = [this](std::size_t i) { return Swap(i); };

  Run({0, 3, 10});

  for (const std::size_t i : {0, 1}) {
    EXPECT_EQ(completions_[i].progress, collective::Progress::kDone) << i;
  }
}

TEST_F(GroupTest, ADeathEndsTheWaitOfWhoIsCutOffForEver) {
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
