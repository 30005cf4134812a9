#include "metrics/node_series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "metrics/coordinator_metrics.h"

namespace tactus::metrics {
namespace {

using testing::HasSubstr;
using testing::Not;

class NodeSeriesTest : public testing::Test {
 protected:
  std::string Text() const { return WriteText(*metrics_.registry()); }

  Instant now_ = Instant(Seconds(100));
  CoordinatorMetrics metrics_{"1", {.now = [this] { return now_; }, .wall = [] { return 0; }}};
};

TEST_F(NodeSeriesTest, ANodeShowsItsDevicesAndItsSilence) {
  metrics_.nodes().Set("a", {.silence = Seconds(1.5), .free = 3, .busy = 4, .at_fault = 1});
  now_ += Seconds(2);

  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("tactus_node_connected{node=\"a\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("tactus_node_cordoned{node=\"a\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("tactus_agent_heartbeat_age_seconds{node=\"a\"} 3.5\n"));
  EXPECT_THAT(text, HasSubstr("tactus_node_devices{node=\"a\",state=\"free\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("tactus_node_devices{node=\"a\",state=\"cordoned\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("tactus_node_devices{node=\"a\",state=\"busy\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("tactus_node_devices{node=\"a\",state=\"fault\"} 1\n"));
}

TEST_F(NodeSeriesTest, NoDeviceOfACordonedNodeIsFree) {
  metrics_.nodes().Set("a", {.free = 3, .busy = 4, .at_fault = 1, .cordoned = true});

  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("tactus_node_cordoned{node=\"a\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("tactus_node_devices{node=\"a\",state=\"free\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("tactus_node_devices{node=\"a\",state=\"busy\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("tactus_node_devices{node=\"a\",state=\"cordoned\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("tactus_node_devices{node=\"a\",state=\"fault\"} 1\n"));
}

TEST_F(NodeSeriesTest, ANodeThatIsLostIsSeenWithoutDevicesForAnHour) {
  metrics_.nodes().Set("a", {.free = 1});
  metrics_.nodes().Lose("a");
  now_ += NodeSeries::kKept - Seconds(1);

  EXPECT_THAT(Text(), HasSubstr("tactus_node_connected{node=\"a\"} 0\n"));
  EXPECT_THAT(Text(), HasSubstr("tactus_agent_heartbeat_age_seconds{node=\"a\"} 3599\n"));
  EXPECT_THAT(Text(), Not(HasSubstr("tactus_node_devices{")));

  now_ += Seconds(1);

  EXPECT_THAT(Text(), Not(HasSubstr("node=\"a\"")));
}

TEST_F(NodeSeriesTest, ANodeThatIsForgottenIsNotSeenAnyMore) {
  metrics_.nodes().Set("a", {.free = 1});
  metrics_.nodes().Set("b", {.free = 1});
  metrics_.nodes().Lose("a");

  metrics_.nodes().Forget("a");

  EXPECT_THAT(Text(), Not(HasSubstr("node=\"a\"")));
  EXPECT_THAT(Text(), HasSubstr("tactus_node_connected{node=\"b\"} 1\n"));
}

TEST_F(NodeSeriesTest, ANodeThatIsBackIsConnected) {
  metrics_.nodes().Set("a", {});
  metrics_.nodes().Lose("a");
  metrics_.nodes().Set("a", {.free = 2});
  now_ += NodeSeries::kKept;

  EXPECT_THAT(Text(), HasSubstr("tactus_node_connected{node=\"a\"} 1\n"));
}

TEST_F(NodeSeriesTest, NobodyKnowsANodeThatWasLostWithoutEverBeingSeen) {
  metrics_.nodes().Lose("a");

  EXPECT_THAT(Text(), Not(HasSubstr("node=\"a\"")));
}

}  // namespace
}  // namespace tactus::metrics
