#include "simulator/agent_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace tactus::simulator {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kEnd = -1;

// A way of numbers and what was heard of it.
class StreamWayTest : public testing::Test {
 protected:
  // The listener reads on at once unless `reads_on_` is off.
  StreamWay<int>& Make(const ControlModel& model) {
    model_ = model;
    way_ = std::make_shared<StreamWay<int>>(
        scheduler_, model_, rng_,
        StreamWay<int>::Listener{.hear =
                                     [this](int value) {
                                       heard_.push_back(value);
                                       if (reads_on_) way_->ReadOn();
                                     },
                                 .ended = [this] { heard_.push_back(kEnd); }});
    return *way_;
  }
  void RunAll() {
    while (scheduler_.RunNext()) {
    }
  }

  Scheduler scheduler_;
  ControlModel model_;
  Rng rng_{1};
  std::shared_ptr<StreamWay<int>> way_;
  bool reads_on_ = true;
  std::vector<int> heard_;
};

TEST_F(StreamWayTest, AMessageTakesItsDelay) {
  StreamWay<int>& way = Make({.delay_seconds = 0.25});

  way.Send(1);
  RunAll();

  EXPECT_THAT(heard_, ElementsAre(1));
  EXPECT_EQ(scheduler_.now(), Instant{} + Seconds(0.25));
}

TEST_F(StreamWayTest, OrderIsKeptThoughPacketsOvertakeOneAnother) {
  StreamWay<int>& way = Make({.delay_seconds = 0.01, .jitter_seconds = 1});
  std::vector<int> sent;
  for (int i = 0; i < 500; ++i) {
    way.Send(i);
    sent.push_back(i);
  }

  RunAll();

  EXPECT_EQ(heard_, sent);
}

TEST_F(StreamWayTest, TheNextComesWhenTheListenerReadsOn) {
  reads_on_ = false;
  StreamWay<int>& way = Make({});
  for (int i = 1; i <= 3; ++i) way.Send(i);
  RunAll();
  EXPECT_THAT(heard_, ElementsAre(1));

  way.ReadOn();
  way.ReadOn();

  EXPECT_THAT(heard_, ElementsAre(1, 2, 3));
}

TEST_F(StreamWayTest, WhatIsUnderWayAtTheEndIsLost) {
  StreamWay<int>& way = Make({});
  way.Send(1);
  RunAll();
  way.Send(2);

  way.End();
  way.Send(3);
  RunAll();

  EXPECT_THAT(heard_, ElementsAre(1, kEnd));
}

TEST_F(StreamWayTest, TheEndIsHeardByWhoDoesNotRead) {
  reads_on_ = false;
  StreamWay<int>& way = Make({});
  way.Send(1);
  way.Send(2);
  RunAll();

  way.End();
  RunAll();

  EXPECT_THAT(heard_, ElementsAre(1, kEnd));
}

TEST_F(StreamWayTest, WhoIsGoneHearsNothing) {
  StreamWay<int>& way = Make({});
  way.Send(1);

  way.Drop();
  way.End();
  RunAll();

  EXPECT_THAT(heard_, IsEmpty());
}

// 4,000 delays of mean 1 s: their mean is good to 1 / sqrt(4000) = 1.6 %, the bound is four of
// that; the share beyond 3 s is e^-3 = 5 %, of which uniform delays have none.
TEST_F(StreamWayTest, JitterIsExponential) {
  StreamWay<int>& way = Make({.delay_seconds = 0, .jitter_seconds = 1});
  double sum = 0;
  int late = 0;
  constexpr int kMessages = 4000;
  for (int i = 0; i < kMessages; ++i) {
    const Instant sent = scheduler_.now();
    way.Send(i);
    RunAll();
    const double seconds = ToSeconds(scheduler_.now() - sent);
    sum += seconds;
    late += seconds > 3 ? 1 : 0;
  }

  EXPECT_NEAR(sum / kMessages, 1, 4 * 0.016);
  EXPECT_GT(late, kMessages / 40);
}

TEST_F(StreamWayTest, WhatACutSwallowedComesWhenItEndsAndSoDoesTheEnd) {
  StreamWay<int>& way = Make({});
  way.Send(1);
  way.SetCut(true);
  way.Send(2);
  RunAll();
  EXPECT_THAT(heard_, IsEmpty());

  way.SetCut(false);
  RunAll();
  EXPECT_THAT(heard_, ElementsAre(1, 2));

  way.SetCut(true);
  way.End();
  RunAll();
  way.SetCut(false);
  RunAll();
  EXPECT_THAT(heard_, ElementsAre(1, 2, kEnd));
}

}  // namespace
}  // namespace tactus::simulator
