#include "policies/device_values.h"

#include <gtest/gtest.h>

namespace tactus::policies {
namespace {

// 32 samples each at 64 and 16 samples/s, which takes 2 s, and a transfer of 0.5 s. The learning
// rate was chosen for the 64 samples, so that all of them are useful: 25.6 a second.
MeasuredGroup TwoUnequal() {
  return {.plan = {.version = 1, .batch_sizes = {32, 32}},
          .speeds = {64, 16},
          .transfer_seconds = 0.5,
          .worth = {.base_batch = 64}};
}

TEST(DeviceValuesTest, WithoutAMemberTheOthersShareWhatItTook) {
  const DeviceValues values = ValueDevices(TwoUnequal());

  EXPECT_NEAR(values.useful, 25.6, 1e-9);
  ASSERT_EQ(values.devices.size(), 2u);
  // 64 samples at 16 a second, and nobody to exchange with.
  EXPECT_NEAR(values.devices[0].adds, 25.6 - 16, 1e-9);
  // At 64 a second: as batches are, the slow one costs more than it brings.
  EXPECT_NEAR(values.devices[1].adds, 25.6 - 64, 1e-9);
  EXPECT_EQ(values.devices[1].rank, 1u);
  EXPECT_EQ(values.devices[1].speed, 16);
  EXPECT_EQ(values.transfer_seconds_less, 0);
}

TEST(DeviceValuesTest, OneMoreTakesItsShareAndMakesTheTransferLonger) {
  const DeviceValues values = ValueDevices(TwoUnequal());

  // 2 / 3 over 1 / 2 of 0.5 s.
  EXPECT_NEAR(values.transfer_seconds_more, 2.0 / 3, 1e-9);
  ASSERT_EQ(values.more.size(), 3u);
  // Fast: 29, 7 and 28 samples, of which 29 / 64 s is the longest.
  EXPECT_EQ(values.more[0].rank, 0u);
  EXPECT_NEAR(values.more[0].adds, 64 / (29.0 / 64 + 2.0 / 3) - 25.6, 1e-9);
  // Slow, and the median of two, too: 44, 10 and 10, of which 44 / 64 s is.
  EXPECT_EQ(values.more[1].rank, 1u);
  EXPECT_EQ(values.more[2].rank, 1u);
  EXPECT_NEAR(values.more[2].adds, 64 / (44.0 / 64 + 2.0 / 3) - 25.6, 1e-9);
}

TEST(DeviceValuesTest, ThePeriodInForceIsTheOneThatIsForecast) {
  MeasuredGroup group = TwoUnequal();
  group.plan.synchronization = Synchronization::kPeriodic;
  group.plan.period = 10;

  const DeviceValues values = ValueDevices(group);

  EXPECT_NEAR(values.useful, 640 / 20.5, 1e-9);
  EXPECT_NEAR(values.devices[0].adds, 640 / 20.5 - 16, 1e-9);
}

// Samples beyond the base batch teach nothing while the noise is unknown.
TEST(DeviceValuesTest, SamplesCountAsMuchAsTheyTeach) {
  MeasuredGroup group = TwoUnequal();
  group.worth.base_batch = 32;

  EXPECT_NEAR(ValueDevices(group).useful, 12.8, 1e-9);
}

// Four alike, 16 samples each in 1 s, D = 0.75: three have 22, 21 and 21 in 1.375 s and D (2 / 3)
// over (3 / 4); five have at most 13 in 0.8125 s and D (4 / 5) over (3 / 4).
TEST(DeviceValuesTest, EqualMembersAreWorthTheSame) {
  const DeviceValues values = ValueDevices({.plan = {.batch_sizes = {16, 16, 16, 16}},
                                            .speeds = {16, 16, 16, 16},
                                            .transfer_seconds = 0.75,
                                            .worth = {.base_batch = 64}});

  const double now = 64 / 1.75;
  for (const DeviceValue& value : values.devices) {
    EXPECT_NEAR(value.adds, now - 64 / (1.375 + 2.0 / 3), 1e-9);
  }
  for (const DeviceValue& value : values.more) {
    EXPECT_NEAR(value.adds, 64 / (0.8125 + 0.8) - now, 1e-9);
  }
}

// Two replicas of two, 32 samples each, at 64 and 16 samples/s a member: twice TwoUnequal().
TEST(DeviceValuesTest, AMemberAddsWhatItsReplicaDoes) {
  const DeviceValues values = ValueDevices({.plan = {.batch_sizes = {32, 32, 32, 32}},
                                            .speeds = {64, 64, 16, 16},
                                            .transfer_seconds = 0.5,
                                            .worth = {.base_batch = 128},
                                            .batch = {.replica_members = 2}});

  EXPECT_NEAR(values.useful, 51.2, 1e-9);
  ASSERT_EQ(values.devices.size(), 4u);
  for (const std::size_t rank : {0, 1}) EXPECT_NEAR(values.devices[rank].adds, 51.2 - 32, 1e-9);
  for (const std::size_t rank : {2, 3}) EXPECT_NEAR(values.devices[rank].adds, 51.2 - 128, 1e-9);
  // 2 / 3 over 1 / 2 of 0.5 s; of three replicas the fast ones have 29 and 28 a member.
  EXPECT_NEAR(values.transfer_seconds_more, 2.0 / 3, 1e-9);
  ASSERT_EQ(values.more.size(), 3u);
  EXPECT_NEAR(values.more[0].adds, 128 / (29.0 / 64 + 2.0 / 3) - 51.2, 1e-9);
}

TEST(DeviceValuesTest, AReplicaAloneIsAllOfIt) {
  const DeviceValues values = ValueDevices({.plan = {.batch_sizes = {32, 32}},
                                            .speeds = {64, 64},
                                            .worth = {.base_batch = 64},
                                            .batch = {.replica_members = 2}});

  for (const DeviceValue& value : values.devices) EXPECT_NEAR(value.adds, 128, 1e-9);
  EXPECT_TRUE(values.more.empty());
}

TEST(DeviceValuesTest, AMemberAloneIsAllOfItAndNobodyKnowsWhatAnExchangeTakes) {
  const DeviceValues values =
      ValueDevices({.plan = {.batch_sizes = {32}}, .speeds = {64}, .worth = {.base_batch = 32}});

  ASSERT_EQ(values.devices.size(), 1u);
  EXPECT_NEAR(values.devices[0].adds, 64, 1e-9);
  EXPECT_TRUE(values.more.empty());
  EXPECT_EQ(values.transfer_seconds_more, 0);
}

}  // namespace
}  // namespace tactus::policies
