#include "coordinator/telemetry/awaited_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tactus::telemetry {
namespace {

using testing::HasSubstr;
using testing::Not;

class AwaitedNodesTest : public testing::Test {
 protected:
  static job::JobRecord OnNodesAAndB(job::JobState state) {
    job::JobRecord record;
    record.state = state;
    record.members = {{.node = "a"}, {.node = "b"}, {.node = "b"}};
    return record;
  }
  static std::string Connected(const std::string& node, int value) {
    return "tactus_node_connected{node=\"" + node + "\"} " + std::to_string(value) + "\n";
  }
  static std::string Lost(int count) {
    return "tactus_membership_changes_total{reason=\"lost\"} " + std::to_string(count) + "\n";
  }
  std::string Text() const { return metrics::WriteText(*metrics_.registry()); }

  Instant now_ = Instant(Seconds(100));
  metrics::CoordinatorMetrics metrics_{"1",
                                       {.now = [this] { return now_; }, .wall = [] { return 0; }}};
  AwaitedNodes nodes_{metrics_};
};

TEST_F(AwaitedNodesTest, NodesOfAJobThatWaitsForItsMembersAreUnheardFromTheStartOn) {
  nodes_.Await(OnNodesAAndB(job::JobState::kRunning));
  now_ += Seconds(7);

  EXPECT_THAT(Text(), HasSubstr(Connected("a", 1)));
  EXPECT_THAT(Text(), HasSubstr("tactus_agent_heartbeat_age_seconds{node=\"b\"} 7\n"));
}

TEST_F(AwaitedNodesTest, OneThatDoesNotComeBackIsLost) {
  nodes_.Await(OnNodesAAndB(job::JobState::kSuspending));
  nodes_.Joined("a");
  EXPECT_FALSE(nodes_.Awaits("a"));
  EXPECT_TRUE(nodes_.Awaits("b"));

  nodes_.GiveUp();

  EXPECT_FALSE(nodes_.Awaits("b"));

  EXPECT_THAT(Text(), HasSubstr(Connected("a", 1)));
  EXPECT_THAT(Text(), HasSubstr(Connected("b", 0)));
  EXPECT_THAT(Text(), HasSubstr(Lost(1)));
}

TEST_F(AwaitedNodesTest, MembersOfAJobWithoutWorkersAreAwaitedByNobody) {
  for (const auto state : {job::JobState::kQueued, job::JobState::kPaused}) {
    nodes_.Await(OnNodesAAndB(state));
  }

  nodes_.GiveUp();

  EXPECT_THAT(Text(), Not(HasSubstr("node=\"a\"")));
  EXPECT_THAT(Text(), HasSubstr(Lost(0)));
}

}  // namespace
}  // namespace tactus::telemetry
