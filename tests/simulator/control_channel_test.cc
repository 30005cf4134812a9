#include "simulator/control_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tactus::simulator {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A channel of numbers and what has come of them.
class ControlChannelTest : public testing::Test {
 protected:
  ControlChannel<int> Make(const ControlModel& model) {
    return ControlChannel<int>(scheduler_, model, Rng(1),
                               [this](std::uint64_t, int value) { got_.push_back(value); });
  }
  void RunAll() {
    while (scheduler_.RunNext()) {
    }
  }

  Scheduler scheduler_;
  std::vector<int> got_;
};

TEST_F(ControlChannelTest, AMessageTakesItsDelay) {
  auto channel = Make({.delay_seconds = 0.25});
  channel.Open();

  channel.Send(1);
  RunAll();

  EXPECT_THAT(got_, ElementsAre(1));
  EXPECT_EQ(scheduler_.now(), Instant{} + Seconds(0.25));
}

TEST_F(ControlChannelTest, OrderIsKeptAndEachComesOnceWhateverTheNetworkDoes) {
  auto channel = Make({.delay_seconds = 0.01, .jitter_seconds = 1, .duplicate_share = 0.5});
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
  auto channel = Make({});
  channel.Send(1);
  RunAll();
  EXPECT_THAT(got_, IsEmpty());

  channel.Open();
  RunAll();

  EXPECT_THAT(got_, ElementsAre(1));
}

TEST_F(ControlChannelTest, ANewStreamBringsWhatWasNotAcknowledged) {
  auto channel = Make({});
  channel.Open();
  for (int i = 1; i <= 3; ++i) channel.Send(i);
  RunAll();
  channel.Acknowledge(1);

  channel.Close();
  channel.Open();
  RunAll();

  EXPECT_THAT(got_, ElementsAre(1, 2, 3, 2, 3));
}

TEST_F(ControlChannelTest, WhatACutSwallowedComesWhenItEnds) {
  auto channel = Make({});
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
