#include "coordinator/job/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/job/schedule.h"
#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The free devices that a job would accept which wants this kind.
std::vector<std::string> FreeOf(const Membership& membership, DeviceKind kind) {
  std::vector<std::string> places;
  for (const FreeDevice& device : membership.Free()) {
    if (!Accepts({.device = kind}, device.kind, *device.traits, membership.Standard())) continue;
    places.push_back(device.place.node + "/" + device.place.device);
  }
  return places;
}

MemberRecord On(std::uint64_t worker, const std::string& node, const std::string& device) {
  return {.worker = WorkerId{worker}, .node = node, .device = device};
}

TEST(MembershipTest, FreeDevicesAreOrderedByNodeThenByDeviceNumber) {
  Membership membership;

  membership.Join("b", {{.name = "cpu:0"}});
  membership.Join("a", {{.name = "cpu:10"}, {.name = "cpu:2"}, {.name = "cpu:0"}});

  EXPECT_THAT(FreeOf(membership, DeviceKind::kCpu),
              ElementsAre("a/cpu:0", "a/cpu:2", "a/cpu:10", "b/cpu:0"));
}

TEST(MembershipTest, ADeviceNamedTwiceCountsOnce) {
  Membership membership;

  membership.Join("a", {{.name = "cpu:0", .emulated_speed = 0.5}, {.name = "cpu:0"}});

  const std::vector<FreeDevice> free = membership.Free();
  ASSERT_EQ(free.size(), 1u);
  EXPECT_EQ(free[0].place.emulated_speed, 0.5);
}

TEST(MembershipTest, AHeldDeviceIsFreeAgainAfterItsRelease) {
  Membership membership;
  membership.Join("a", Devices("cpu", 2));

  membership.Hold(On(7, "a", "cpu:0"), JobId{1}, "alpha-1");

  EXPECT_THAT(FreeOf(membership, DeviceKind::kCpu), ElementsAre("a/cpu:1"));
  EXPECT_EQ(membership.HolderOf("a", "cpu:0")->job_name, "alpha-1");
  membership.Release(WorkerId{7});
  EXPECT_EQ(membership.HolderOf("a", "cpu:0"), nullptr);
  EXPECT_EQ(FreeOf(membership, DeviceKind::kCpu).size(), 2u);
}

TEST(MembershipTest, ALostNodeOffersNothingAndKeepsItsHoldersUntilReleased) {
  Membership membership;
  membership.Join("a", Devices("cpu", 2));
  membership.Hold(On(7, "a", "cpu:0"), JobId{1}, "alpha-1");

  membership.Lose("a");

  EXPECT_FALSE(membership.nodes().at("a").connected);
  EXPECT_THAT(FreeOf(membership, DeviceKind::kCpu), IsEmpty());
  membership.Join("a", Devices("cpu", 2));
  EXPECT_THAT(FreeOf(membership, DeviceKind::kCpu), ElementsAre("a/cpu:1"));
}

TEST(MembershipTest, AnyMeansCudaWhereANodeHasItBusyOrNot) {
  Membership membership;
  membership.Join("a", Devices("cpu", 1));
  EXPECT_THAT(FreeOf(membership, DeviceKind::kStandard), ElementsAre("a/cpu:0"));

  membership.Join("b", Devices("cuda", 1));
  EXPECT_THAT(FreeOf(membership, DeviceKind::kStandard), ElementsAre("b/cuda:0"));
  membership.Hold(On(7, "b", "cuda:0"), JobId{1}, "alpha-1");
  EXPECT_THAT(FreeOf(membership, DeviceKind::kStandard), IsEmpty());

  membership.Lose("b");
  EXPECT_THAT(FreeOf(membership, DeviceKind::kStandard), ElementsAre("a/cpu:0"));
}

TEST(MembershipTest, ANodeWithStraysOffersNothingUntilTheyAreGone) {
  Membership membership;
  membership.Join("a", Devices("cpu", 2));

  EXPECT_THAT(membership.SetStrays("a", {WorkerId{4}, WorkerId{5}}),
              ElementsAre(WorkerId{4}, WorkerId{5}));
  EXPECT_THAT(membership.SetStrays("a", {WorkerId{5}, WorkerId{6}}), ElementsAre(WorkerId{6}));

  EXPECT_THAT(FreeOf(membership, DeviceKind::kCpu), IsEmpty());
  membership.RemoveStray(WorkerId{5});
  EXPECT_THAT(FreeOf(membership, DeviceKind::kCpu), IsEmpty());
  membership.RemoveStray(WorkerId{6});
  EXPECT_EQ(FreeOf(membership, DeviceKind::kCpu).size(), 2u);
}

TEST(MembershipTest, ACordonedNodeOffersNothingUntilItIsUncordonedWhoeverJoinsOrLeaves) {
  Membership membership;
  membership.Mark({.name = "a", .cordoned = true});

  membership.Join("a", Devices("cpu", 2));
  membership.Join("b", Devices("cpu", 1));

  EXPECT_THAT(FreeOf(membership, DeviceKind::kCpu), ElementsAre("b/cpu:0"));
  EXPECT_TRUE(membership.MarkOf("a").cordoned);
  EXPECT_THAT(membership.marked(), ElementsAre("a"));
  membership.Mark({.name = "a"});
  EXPECT_THAT(FreeOf(membership, DeviceKind::kCpu), ElementsAre("a/cpu:0", "a/cpu:1", "b/cpu:0"));
  EXPECT_THAT(membership.marked(), IsEmpty());
}

TEST(MembershipTest, ADeviceAtFaultIsNotOfferedUntilItIsWell) {
  Membership membership;
  membership.Join("a", Devices("cpu", 3));

  membership.SetFaults("a", {{"cpu:1", "broken"}, {"cpu:7", "not there"}});

  EXPECT_THAT(FreeOf(membership, DeviceKind::kCpu), ElementsAre("a/cpu:0", "a/cpu:2"));
  EXPECT_EQ(membership.nodes().at("a").devices[1].fault, "broken");
  membership.SetFaults("a", {{"cpu:0", "broken"}});
  EXPECT_THAT(FreeOf(membership, DeviceKind::kCpu), ElementsAre("a/cpu:1", "a/cpu:2"));
  membership.SetFaults("a", {});
  EXPECT_EQ(FreeOf(membership, DeviceKind::kCpu).size(), 3u);
}

TEST(MembershipTest, ADeviceThatIsWrongAgainIsSetAsideUntilItsNodeHasAnotherAgent) {
  Membership membership;
  membership.Join("a", Devices("cpu", 2), {}, 5);

  EXPECT_FALSE(membership.Strike("a", "cpu:1"));
  EXPECT_FALSE(membership.Strike("a", "cpu:0"));
  EXPECT_EQ(FreeOf(membership, DeviceKind::kCpu).size(), 2u);
  EXPECT_TRUE(membership.Strike("a", "cpu:1"));

  EXPECT_THAT(FreeOf(membership, DeviceKind::kCpu), ElementsAre("a/cpu:0"));
  EXPECT_THAT(membership.nodes().at("a").devices[1].fault, HasSubstr("wrong 2 times"));
  membership.SetFaults("a", {});
  membership.Join("a", Devices("cpu", 2), {}, 5);
  EXPECT_THAT(FreeOf(membership, DeviceKind::kCpu), ElementsAre("a/cpu:0"));
  membership.Join("a", Devices("cpu", 2), {}, 6);
  EXPECT_EQ(FreeOf(membership, DeviceKind::kCpu).size(), 2u);
  EXPECT_FALSE(membership.Strike("b", "cpu:0")) << "not known";
}

TEST(MembershipTest, AHolderOutlivesTheFaultOfItsDevice) {
  Membership membership;
  membership.Join("a", Devices("cpu", 1));
  membership.Hold({.worker = WorkerId{1}, .node = "a", .device = "cpu:0"}, JobId{1}, "alpha-1");

  membership.SetFaults("a", {{"cpu:0", "broken"}});
  EXPECT_NE(membership.HolderOf("a", "cpu:0"), nullptr);
  membership.Release(WorkerId{1});

  EXPECT_THAT(FreeOf(membership, DeviceKind::kCpu), IsEmpty());
}

TEST(MembershipTest, ANodeThatIsForgottenLeavesNothing) {
  Membership membership;
  membership.Mark({.name = "a", .cordoned = true});
  membership.Join("a", Devices("cuda", 2));
  membership.Join("b", Devices("cpu", 1));
  membership.SetStrays("a", {WorkerId{6}});

  membership.Forget("a");

  EXPECT_FALSE(membership.nodes().contains("a"));
  EXPECT_THAT(membership.marked(), IsEmpty());
  EXPECT_FALSE(membership.IsStray(WorkerId{6}));
  EXPECT_EQ(membership.Standard(), DeviceKind::kCpu);
  EXPECT_THAT(FreeOf(membership, DeviceKind::kCpu), ElementsAre("b/cpu:0"));
  // One of that name that comes later is a new one.
  membership.Join("a", Devices("cpu", 1));
  EXPECT_THAT(FreeOf(membership, DeviceKind::kCpu), ElementsAre("a/cpu:0", "b/cpu:0"));
}

TEST(MembershipTest, AnyHolderOnANodeIsFoundAndNoOtherNodes) {
  Membership membership;
  membership.Join("a", Devices("cpu", 2));
  membership.Join("b", Devices("cpu", 1));
  membership.Hold({.worker = WorkerId{1}, .node = "b", .device = "cpu:0"}, JobId{1}, "alpha-1");
  EXPECT_EQ(membership.AnyHolderOn("a"), nullptr);

  membership.Hold({.worker = WorkerId{2}, .node = "a", .device = "cpu:1"}, JobId{2}, "alpha-2");

  ASSERT_NE(membership.AnyHolderOn("a"), nullptr);
  EXPECT_EQ(membership.AnyHolderOn("a")->job_name, "alpha-2");
  EXPECT_EQ(membership.AnyHolderOn("c"), nullptr);
}

TEST(MembershipTest, WhoJoinsSaysWhichDevicesAreAtFault) {
  Membership membership;
  membership.SetFaults("a", {{"cpu:0", "nobody knows this node yet"}});
  std::vector<DeviceRecord> devices = Devices("cpu", 2);
  devices[0].fault = "broken";

  membership.Join("a", devices);
  EXPECT_THAT(FreeOf(membership, DeviceKind::kCpu), ElementsAre("a/cpu:1"));
  membership.Join("a", Devices("cpu", 2));

  EXPECT_EQ(FreeOf(membership, DeviceKind::kCpu).size(), 2u);
}

}  // namespace
}  // namespace tactus::job
