#include "coordinator/job/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> Places(const std::vector<MemberRecord>& members) {
  std::vector<std::string> places;
  for (const MemberRecord& member : members) places.push_back(member.node + "/" + member.device);
  return places;
}

MemberRecord On(std::uint64_t worker, const std::string& node, const std::string& device) {
  return {.worker = WorkerId{worker}, .node = node, .device = device};
}

TEST(MembershipTest, FreeDevicesAreOrderedByNodeThenByDeviceNumber) {
  Membership membership;

  membership.Join("b", {{.name = "cpu:0"}});
  membership.Join("a", {{.name = "cpu:10"}, {.name = "cpu:2"}, {.name = "cpu:0"}});

  EXPECT_THAT(Places(membership.Free(DeviceKind::kCpu)),
              ElementsAre("a/cpu:0", "a/cpu:2", "a/cpu:10", "b/cpu:0"));
}

TEST(MembershipTest, ADeviceNamedTwiceCountsOnce) {
  Membership membership;

  membership.Join("a", {{.name = "cpu:0", .emulated_speed = 0.5}, {.name = "cpu:0"}});

  const std::vector<MemberRecord> free = membership.Free(DeviceKind::kAny);
  ASSERT_EQ(free.size(), 1u);
  EXPECT_EQ(free[0].emulated_speed, 0.5);
}

TEST(MembershipTest, AHeldDeviceIsFreeAgainAfterItsRelease) {
  Membership membership;
  membership.Join("a", Devices("cpu", 2));

  membership.Hold(On(7, "a", "cpu:0"), JobId{1}, "alpha-1");

  EXPECT_THAT(Places(membership.Free(DeviceKind::kCpu)), ElementsAre("a/cpu:1"));
  EXPECT_EQ(membership.HolderOf("a", "cpu:0")->job_name, "alpha-1");
  membership.Release(WorkerId{7});
  EXPECT_EQ(membership.HolderOf("a", "cpu:0"), nullptr);
  EXPECT_EQ(membership.Free(DeviceKind::kCpu).size(), 2u);
}

TEST(MembershipTest, ALostNodeOffersNothingAndKeepsItsHoldersUntilReleased) {
  Membership membership;
  membership.Join("a", Devices("cpu", 2));
  membership.Hold(On(7, "a", "cpu:0"), JobId{1}, "alpha-1");

  membership.Lose("a");

  EXPECT_FALSE(membership.Connected("a"));
  EXPECT_THAT(membership.Free(DeviceKind::kCpu), IsEmpty());
  membership.Join("a", Devices("cpu", 2));
  EXPECT_THAT(Places(membership.Free(DeviceKind::kCpu)), ElementsAre("a/cpu:1"));
}

TEST(MembershipTest, AnyMeansCudaWhereANodeHasItBusyOrNot) {
  Membership membership;
  membership.Join("a", Devices("cpu", 1));
  EXPECT_THAT(Places(membership.Free(DeviceKind::kAny)), ElementsAre("a/cpu:0"));

  membership.Join("b", Devices("cuda", 1));
  EXPECT_THAT(Places(membership.Free(DeviceKind::kAny)), ElementsAre("b/cuda:0"));
  membership.Hold(On(7, "b", "cuda:0"), JobId{1}, "alpha-1");
  EXPECT_THAT(membership.Free(DeviceKind::kAny), IsEmpty());

  membership.Lose("b");
  EXPECT_THAT(Places(membership.Free(DeviceKind::kAny)), ElementsAre("a/cpu:0"));
}

TEST(MembershipTest, ANodeWithStraysOffersNothingUntilTheyAreGone) {
  Membership membership;
  membership.Join("a", Devices("cpu", 2));

  EXPECT_THAT(membership.SetStrays("a", {WorkerId{4}, WorkerId{5}}),
              ElementsAre(WorkerId{4}, WorkerId{5}));
  EXPECT_THAT(membership.SetStrays("a", {WorkerId{5}, WorkerId{6}}), ElementsAre(WorkerId{6}));

  EXPECT_THAT(membership.Free(DeviceKind::kCpu), IsEmpty());
  membership.RemoveStray(WorkerId{5});
  EXPECT_THAT(membership.Free(DeviceKind::kCpu), IsEmpty());
  membership.RemoveStray(WorkerId{6});
  EXPECT_EQ(membership.Free(DeviceKind::kCpu).size(), 2u);
}

}  // namespace
}  // namespace tactus::job
