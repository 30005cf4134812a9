// The walk over rules on what a cluster file has and a job file has not: lists of messages, lists
// with a size, and ranges and fractions of durations.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "coordinator/spec/field_rules.h"
#include "tactus/sim/v1/cluster.pb.h"

namespace tactus::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Wrong(const sim::v1::Cluster& cluster) {
  FieldChecks checks;
  CheckFields(cluster, "", "", checks);
  std::vector<std::string> texts;
  for (const auto& [field, description] : checks.violations()) {
    texts.push_back(field + ": " + description);
  }
  return texts;
}

// Two hosts with a device each.
sim::v1::Cluster TwoHosts() {
  sim::v1::Cluster cluster;
  for (int i = 0; i < 2; ++i) cluster.add_hosts()->add_devices();
  return cluster;
}

TEST(ClusterRulesTest, MessagesInListsAreCheckedWithTheirNumber) {
  sim::v1::Cluster cluster = TwoHosts();
  cluster.mutable_hosts(1)->mutable_devices(0)->set_samples_max(0);

  EXPECT_THAT(Wrong(cluster),
              ElementsAre("hosts[1].devices[0].samples_max: found 0, allowed is 1 to 1048576"));
}

TEST(ClusterRulesTest, AListHasAsManyItemsAsItMay) {
  sim::v1::Cluster cluster = TwoHosts();
  cluster.mutable_hosts(0)->clear_devices();
  for (int i = 0; i < 17; ++i) cluster.mutable_loss()->mutable_perceptron()->add_hidden(8);

  EXPECT_THAT(Wrong(cluster),
              ElementsAre("hosts[0].devices: found 0 items, allowed are 1 or more",
                          "loss.perceptron.hidden: found 17 items, allowed are 0 to 16"));
}

TEST(ClusterRulesTest, DurationsHaveRanges) {
  sim::v1::Cluster cluster = TwoHosts();
  google::protobuf::Duration& mean =
      *cluster.mutable_hosts(0)->mutable_devices(0)->mutable_noise()->mutable_slow_mean();
  mean.set_nanos(1'000'000);
  EXPECT_THAT(Wrong(cluster), IsEmpty());
  mean.set_nanos(999'999);
  EXPECT_THAT(Wrong(cluster), ElementsAre("hosts[0].devices[0].noise.slow_mean: found "
                                          "0.000999999s, allowed is 1ms to 365d"));
  mean.set_nanos(0);
  mean.set_seconds(365 * 86400);
  EXPECT_THAT(Wrong(cluster), IsEmpty());
  cluster.mutable_control()->mutable_delay();  // 0 is allowed here
  EXPECT_THAT(Wrong(cluster), IsEmpty());
  cluster.mutable_control()->mutable_delay()->set_seconds(-1);
  EXPECT_THAT(Wrong(cluster), ElementsAre("control.delay: found -1s, allowed is 0 to 1h"));
}

TEST(ClusterRulesTest, EveryDefaultCanBeReadAndIsAllowed) {
  sim::v1::Cluster cluster = TwoHosts();
  cluster.add_between();
  cluster.add_faults();

  FillDefaults("", &cluster);

  EXPECT_THAT(Wrong(cluster), IsEmpty());
  EXPECT_EQ(cluster.hosts(1).count(), 1u);
  EXPECT_EQ(cluster.hosts(1).link().latency().nanos(), 50'000);
  EXPECT_EQ(cluster.local().rate(), 4e9);
  EXPECT_EQ(cluster.collective(), sim::v1::COLLECTIVE_MESH);
  EXPECT_FALSE(cluster.has_loss());  // which model is for the reader to say
  cluster.mutable_loss()->mutable_noisy_quadratic();
  FillDefaults("", &cluster);
  EXPECT_THAT(Wrong(cluster), IsEmpty());
  EXPECT_EQ(cluster.loss().noisy_quadratic().initial_loss(), 2.3);
  cluster.mutable_loss()->mutable_perceptron();
  FillDefaults("", &cluster);
  EXPECT_FALSE(cluster.loss().perceptron().has_synthetic());  // but for those that are asked for
  cluster.mutable_loss()->mutable_perceptron()->mutable_synthetic();
  FillDefaults("", &cluster);
  EXPECT_THAT(Wrong(cluster), IsEmpty());
  EXPECT_EQ(cluster.loss().perceptron().synthetic().classes(), 10u);
}

}  // namespace
}  // namespace tactus::spec
