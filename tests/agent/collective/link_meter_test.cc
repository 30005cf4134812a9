// What a member says of its link, and of which messages it says it.

#include "agent/collective/link_meter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agent/collective/tcp_mesh.h"
#include "tests/agent/collective/groups.h"

namespace tactus::collective {
namespace {

constexpr std::size_t kMegabyte = 1'000'000;

TEST(LinkMeterTest, ALinkBringsWhatTheMiddlePeerDoesTimesThoseWhoSend) {
  LinkMeter meter(4);
  meter.Add(0, 10 * kMegabyte, Seconds(1), 3);
  meter.Add(2, 30 * kMegabyte, Seconds(1), 3);
  meter.Add(3, 20 * kMegabyte, Seconds(1), 3);

  EXPECT_NEAR(meter.Take(), 60e6, 1);
}

TEST(LinkMeterTest, OnePeerThatIsSlowToSendMakesNobodyLookSlow) {
  LinkMeter meter(3);
  meter.Add(0, 10 * kMegabyte, Seconds(1), 2);
  meter.Add(1, kMegabyte, Seconds(10), 2);

  EXPECT_NEAR(meter.Take(), 20e6, 1);
}

TEST(LinkMeterTest, LongMessagesCountForMore) {
  LinkMeter meter(2);
  meter.Add(1, 9 * kMegabyte, Seconds(1), 1);
  meter.Add(1, kMegabyte, Seconds(1), 1);

  EXPECT_NEAR(meter.Take(), 5e6, 1);
}

TEST(LinkMeterTest, WhatWasTakenIsForgotten) {
  LinkMeter meter(2);
  EXPECT_EQ(meter.Take(), 0);
  meter.Add(1, kMegabyte, Seconds(1), 1);
  EXPECT_NEAR(meter.Take(), 1e6, 1);
  EXPECT_EQ(meter.Take(), 0);
}

TEST(LinkMeterTest, PartnersThatTakeTurnsHaveTheLinkForThemselves) {
  LinkMeter meter(4);
  meter.Add(1, 20 * kMegabyte, Seconds(1), 1);
  meter.Add(2, 20 * kMegabyte, Seconds(1), 1);

  EXPECT_NEAR(meter.Take(), 20e6, 1);
}

TEST(LinkMeterTest, OfHalfOfThePeersNothingIsSaid) {
  LinkMeter meter(5);
  meter.Add(1, kMegabyte, Seconds(1), 1);
  meter.Add(2, kMegabyte, Seconds(1), 1);
  EXPECT_EQ(meter.Take(), 0);
}

// Two connected members whose clock goes on by a tick whenever it is asked.
class MeasuredMeshTest : public ::testing::TestWithParam<bool> {
 protected:
  MeasuredMeshTest() : meshes_(2) {
    std::vector<TcpMeeting> meetings = MeetInMemory(2, GetParam());
    OnEveryRank(2, [&](int rank) {
      const auto index = static_cast<std::size_t>(rank);
      meetings[index].now = [this] { return Instant(Duration(1000 * ++ticks_)); };
      std::string reason;
      meshes_[index] = std::move(TcpMesh::Connect(meetings[index], {}, reason).front());
      EXPECT_EQ(reason, "");
    });
  }

  void Send(std::size_t bytes) {
    const std::vector<std::byte> sent(bytes);
    meshes_[0]->Send(1, Lane::kFirst, sent);
    EXPECT_TRUE(meshes_[0]->WaitSent(1, Lane::kFirst));
  }
  void Receive(std::size_t bytes) {
    std::vector<std::byte> received(bytes);
    meshes_[1]->Receive(0, Lane::kFirst, received);
    EXPECT_TRUE(meshes_[1]->WaitReceived(0, Lane::kFirst));
  }

  std::atomic<Duration::rep> ticks_ = 0;
  std::vector<std::unique_ptr<TcpMesh>> meshes_;
};

TEST_P(MeasuredMeshTest, AMessageThatIsStillToComeWhenItIsAwaitedTells) {
  constexpr std::size_t kMoreThanSocketsHold = std::size_t{96} << 20;
  OnEveryRank(2, [&](int rank) {
    if (rank == 0) Send(kMoreThanSocketsHold);
    if (rank == 1) Receive(kMoreThanSocketsHold);
  });

  EXPECT_GT(meshes_[1]->TakeLinkRate(), 0);
  EXPECT_EQ(meshes_[1]->TakeLinkRate(), 0);
  EXPECT_EQ(meshes_[0]->TakeLinkRate(), 0);  // who sends learns nothing
}

TEST_P(MeasuredMeshTest, OneThatHadWaitedOrIsShortTellsNothing) {
  for (const std::size_t bytes : {0, 1000, 70'000}) {
    Send(bytes);
    Receive(bytes);
    EXPECT_EQ(meshes_[1]->TakeLinkRate(), 0) << bytes;
  }
}

INSTANTIATE_TEST_SUITE_P(PlainAndEncrypted, MeasuredMeshTest, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "Tls" : "Plain"; });

}  // namespace
}  // namespace tactus::collective
