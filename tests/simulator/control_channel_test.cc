#include "simulator/control_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace tactus::simulator {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A channel of numbers and what has come of them.
class ControlChannelTest : public testing::Test {
 protected:
  // Messages are handled at once unless `acknowledges_` is off.
  ControlChannel<int>& Make(const ControlModel& model) {
    channel_ = std::make_unique<ControlChannel<int>>(scheduler_, model, Rng(1),
                                                     [this](std::uint64_t sequence, int value) {
                                                       got_.push_back(value);
                                                       if (acknowledges_)
                                                         channel_->Acknowledge(sequence);
                                                     });
    return *channel_;
  }
  void RunAll() {
    while (scheduler_.RunNext()) {
    }
  }

  Scheduler scheduler_;
  std::unique_ptr<ControlChannel<int>> channel_;
  bool acknowledges_ = true;
  std::vector<int> got_;
};

TEST_F(ControlChannelTest, AMessageTakesItsDelay) {
  ControlChannel<int>& channel = Make({.delay_seconds = 0.25});
  channel.Open();

  channel.Send(1);
  RunAll();

  EXPECT_THAT(got_, ElementsAre(1));
  EXPECT_EQ(scheduler_.now(), Instant{} + Seconds(0.25));
}

TEST_F(ControlChannelTest, OrderIsKeptAndEachComesOnceWhateverTheNetworkDoes) {
  ControlChannel<int>& channel =
      Make({.delay_seconds = 0.01, .jitter_seconds = 1, .duplicate_share = 0.5});
  channel.Open();
  std::vector<int> sent;
  for (int i = 0; i < 500; ++i) {
    channel.Send(i);
    sent.push_back(i);
  }

  RunAll();

  EXPECT_EQ(got_, sent);
}

TEST_F(ControlChannelTest, NothingIsSentBeforeTheStreamIsOpen) {
  ControlChannel<int>& channel = Make({});
  channel.Send(1);
  RunAll();
  EXPECT_THAT(got_, IsEmpty());

  channel.Open();
  RunAll();

  EXPECT_THAT(got_, ElementsAre(1));
}

TEST_F(ControlChannelTest, TheNextComesWhenTheLastIsAcknowledged) {
  acknowledges_ = false;
  ControlChannel<int>& channel = Make({});
  channel.Open();
  for (int i = 1; i <= 3; ++i) channel.Send(i);
  RunAll();
  EXPECT_THAT(got_, ElementsAre(1));

  channel.Acknowledge(1);
  channel.Acknowledge(2);

  EXPECT_THAT(got_, ElementsAre(1, 2, 3));
}

TEST_F(ControlChannelTest, ANewStreamBringsWhatWasNotAcknowledged) {
  ControlChannel<int>& channel = Make({});
  channel.Open();
  channel.Send(1);
  RunAll();
  acknowledges_ = false;
  channel.Send(2);
  channel.Send(3);
  RunAll();

  channel.Close();
  acknowledges_ = true;
  channel.Open();
  RunAll();

  EXPECT_THAT(got_, ElementsAre(1, 2, 2, 3));
}

// 4,000 delays of mean 1 s: their mean is good to 1 / sqrt(4000) = 1.6 %, the bound is four of
// that; the share beyond 3 s is e^-3 = 5 %, of which uniform delays have none.
TEST_F(ControlChannelTest, JitterIsExponential) {
  ControlChannel<int>& channel = Make({.delay_seconds = 0, .jitter_seconds = 1});
  channel.Open();
  double sum = 0;
  int late = 0;
  constexpr int kMessages = 4000;
  for (int i = 0; i < kMessages; ++i) {
    const Instant sent = scheduler_.now();
    channel.Send(i);
    RunAll();
    const double seconds = ToSeconds(scheduler_.now() - sent);
    sum += seconds;
    late += seconds > 3 ? 1 : 0;
  }

  EXPECT_NEAR(sum / kMessages, 1, 4 * 0.016);
  EXPECT_GT(late, kMessages / 40);
}

TEST_F(ControlChannelTest, WhatACutSwallowedComesWhenItEnds) {
  ControlChannel<int>& channel = Make({});
  channel.Open();
  channel.Send(1);
  RunAll();
  channel.SetCut(true);
  channel.Send(2);
  RunAll();
  EXPECT_THAT(got_, ElementsAre(1));

  channel.SetCut(false);
  RunAll();

  EXPECT_THAT(got_, ElementsAre(1, 2));
}

}  // namespace
}  // namespace tactus::simulator
