// Groups of devices that meet by one exchange of endpoints: NCCL's double beside real TCP.

#include "agent/collective/device_group.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/collective/endpoint_board.h"
#include "tests/agent/collective/nccl_double/nccl_members.h"

namespace tactus::collective {
namespace {

using ::testing::HasSubstr;

TEST(JoinedEndpointsTest, ComeApartAsTheyWere) {
  for (const std::string& first : {std::string(), std::string("a\0b", 3), std::string(255, 'x')}) {
    for (const std::string second : {"", "nccl 1 2"}) {
      const SplitEndpoint parts = SplitEndpoints(JoinEndpoints(first, second));
      EXPECT_EQ(parts.first, first);
      EXPECT_EQ(parts.second, second);
    }
  }
}

TEST(JoinedEndpointsTest, WhatWasNotJoinedHasNoParts) {
  for (const std::string text : {"",
                                 "\x05"
                                 "abc"}) {
    const SplitEndpoint parts = SplitEndpoints(text);
    EXPECT_EQ(parts.first, "");
    EXPECT_EQ(parts.second, "");
  }
}

class DeviceGroupTest : public NcclMembers {
 protected:
  DeviceMeeting MeetingOf(int rank, int size, EndpointBoard& board) {
    return {.rank = rank,
            .size = size,
            .generation = generation_,
            .address = "127.0.0.1",
            .device = rank,
            .exchange =
                [this, rank, &board](const std::string& own) {
                  ++exchanges_;
                  return board.Exchange(rank, own);
                },
            .now = [this] { return clock_.Now(); }};
  }

  std::atomic<int> exchanges_ = 0;
};

TEST_F(DeviceGroupTest, MeetsByOneExchangeAndCarriesDeviceAndHostMemory) {
  constexpr int kSize = 3;
  EndpointBoard board(kSize);
  std::vector<ConnectedTransport> members(kSize);
  OnEveryRank(kSize, [&](int rank) {
    ConnectedTransport& member = members[static_cast<std::size_t>(rank)];
    member = ConnectDevices(MeetingOf(rank, kSize, board));
    ASSERT_NE(member.transport, nullptr) << member.reason;
    const DeviceFloats on_device({1, 2});
    std::vector<float> on_host = {static_cast<float>(rank), 1};
    EXPECT_EQ(member.transport->StartAllReduceSum(on_device.span())->Wait().progress,
              Progress::kDone);
    EXPECT_EQ(member.transport->StartAllReduceSum(on_host)->Wait().progress, Progress::kDone);
    EXPECT_EQ(member.transport->StartBarrier()->Wait().progress, Progress::kDone);
    EXPECT_EQ(on_device.values(), (std::vector<float>{3, 6}));
    EXPECT_EQ(on_host, (std::vector<float>{3, 3}));
  });
  EXPECT_EQ(exchanges_, kSize);
  OnEveryRank(kSize, [&](int rank) { members[static_cast<std::size_t>(rank)].transport.reset(); });
}

TEST_F(DeviceGroupTest, AloneItExchangesOnceAndNeedsNobody) {
  EndpointBoard board(1);

  const ConnectedTransport alone = ConnectDevices(MeetingOf(0, 1, board));

  ASSERT_NE(alone.transport, nullptr) << alone.reason;
  EXPECT_EQ(alone.transport->size(), 1);
  EXPECT_EQ(exchanges_, 1);
}

TEST_F(DeviceGroupTest, AGroupThatWasGivenUpIsNotFormed) {
  EndpointBoard board(1);
  DeviceMeeting meeting = MeetingOf(1, 2, board);
  meeting.exchange = [](const std::string&) { return std::vector<std::string>(); };

  const ConnectedTransport connected = ConnectDevices(meeting);

  EXPECT_EQ(connected.transport, nullptr);
  EXPECT_THAT(connected.reason, HasSubstr("given up"));
}

TEST_F(DeviceGroupTest, AMemberOfAnotherGenerationIsRefused) {
  EndpointBoard board(2);
  std::vector<std::string> reasons(2);
  OnEveryRank(2, [&](int rank) {
    DeviceMeeting meeting = MeetingOf(rank, 2, board);
    meeting.generation += static_cast<std::uint64_t>(rank);
    const ConnectedTransport connected = ConnectDevices(meeting);
    EXPECT_EQ(connected.transport, nullptr);
    reasons[static_cast<std::size_t>(rank)] = connected.reason;
  });
  // It is not told what it should have said: whoever knows no secret learns nothing.
  for (const std::string& reason : reasons) EXPECT_THAT(reason, HasSubstr("rank "));
}

TEST_F(DeviceGroupTest, AMemberThatLeavesIsNoticedThroughTheHeartbeat) {
  EndpointBoard board(2);
  std::vector<ConnectedTransport> members(2);
  OnEveryRank(2, [&](int rank) {
    members[static_cast<std::size_t>(rank)] = ConnectDevices(MeetingOf(rank, 2, board));
  });
  ASSERT_NE(members[0].transport, nullptr) << members[0].reason;
  const DeviceFloats buffer({1});
  const std::unique_ptr<Collective> collective =
      members[0].transport->StartAllReduceSum(buffer.span());

  std::thread leaving([&] { members[1].transport.reset(); });
  EXPECT_TRUE(Eventually([&] {
    clock_.Advance(Seconds(0.01));
    return collective->Poll() != Progress::kRunning;
  }));
  leaving.join();
  const Completion completion = collective->Wait();
  EXPECT_EQ(completion.progress, Progress::kFailed);
  EXPECT_THAT(completion.reason, HasSubstr("left"));
}

}  // namespace
}  // namespace tactus::collective
