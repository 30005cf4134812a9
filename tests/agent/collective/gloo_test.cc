// What is particular to Gloo: meeting, and deaths in the middle of a message.

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/collective/blocked_sigpipe.h"
#include "agent/collective/gloo_mesh.h"
#include "agent/collective/gloo_transport.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/collective/groups.h"

namespace tactus::collective {
namespace {

using ::testing::HasSubstr;
using Endpoints = std::vector<std::string>;

GlooMeeting MeetingOf(int rank, int size) {
  return MeetInMemory(size)[static_cast<std::size_t>(rank)];
}

TEST(GlooMeetingTest, AnUnknownAddressIsNamedInTheReason) {
  GlooMeeting meeting = MeetingOf(0, 2);
  meeting.address = "no-such-host.invalid";

  const ConnectedTransport connected = ConnectGloo(meeting);

  EXPECT_EQ(connected.transport, nullptr);
  EXPECT_THAT(connected.reason, HasSubstr("no-such-host.invalid"));
}

TEST(GlooMeetingTest, AnAddressOfAnotherHostIsRefused) {
  GlooMeeting meeting = MeetingOf(0, 2);
  meeting.address = "192.0.2.1";  // reserved for documentation: on no machine

  const ConnectedTransport connected = ConnectGloo(meeting);

  EXPECT_EQ(connected.transport, nullptr);
  EXPECT_THAT(connected.reason, HasSubstr("192.0.2.1"));
}

TEST(GlooMeetingTest, AnEmptyAddressIsRefused) {
  GlooMeeting meeting = MeetingOf(0, 2);
  meeting.address = "";

  EXPECT_EQ(ConnectGloo(meeting).transport, nullptr);
}

TEST(GlooMeetingTest, AnInterfacesNameIsAnAddress) {
  std::vector<GlooMeeting> meetings = MeetInMemory(2);
  OnEveryRank(2, [&](int rank) {
    GlooMeeting& meeting = meetings[static_cast<std::size_t>(rank)];
    meeting.address = "lo";
    const ConnectedTransport connected = ConnectGloo(meeting);
    ASSERT_NE(connected.transport, nullptr) << connected.reason;
    std::vector<float> buffer = {1.0f};
    EXPECT_EQ(connected.transport->StartAllReduceSum(buffer)->Wait().progress, Progress::kDone);
    EXPECT_EQ(buffer.front(), 2.0f);
  });
}

TEST(GlooMeetingTest, AGroupThatWasGivenUpIsNotConnected) {
  for (const int size : {1, 2}) {
    GlooMeeting meeting = MeetingOf(0, size);
    meeting.exchange = [](const std::string&) { return Endpoints(); };

    const ConnectedTransport connected = ConnectGloo(meeting);

    EXPECT_EQ(connected.transport, nullptr);
    EXPECT_THAT(connected.reason, HasSubstr("given up"));
  }
}

TEST(GlooMeetingTest, AnEndpointOfTheWrongLengthNamesItsRank) {
  GlooMeeting meeting = MeetingOf(0, 2);
  meeting.exchange = [](const std::string& own) { return Endpoints{own, "short"}; };

  const ConnectedTransport connected = ConnectGloo(meeting);

  EXPECT_EQ(connected.transport, nullptr);
  EXPECT_THAT(connected.reason, HasSubstr("rank 1"));
}

TEST(GlooMeetingTest, AnEndpointThatIsNoAddressNamesItsRank) {
  GlooMeeting meeting = MeetingOf(0, 2);
  meeting.exchange = [](const std::string& own) {
    return Endpoints{own, std::string(own.size(), '\xee')};
  };

  const ConnectedTransport connected = ConnectGloo(meeting);

  EXPECT_EQ(connected.transport, nullptr);
  EXPECT_THAT(connected.reason, HasSubstr("rank 1"));
}

TEST(GlooMeetingTest, APeerThatNeverConnectsEndsTheMeeting) {
  std::vector<GlooMeeting> pair = MeetInMemory(2);
  OnEveryRank(2, [&](int rank) {
    GlooMeeting own = pair[static_cast<std::size_t>(rank)];
    own.timeout = Seconds(0.05);
    if (rank == 0) {
      EXPECT_EQ(ConnectGloo(own).transport, nullptr);
      return;
    }
    own.exchange = [exchange = own.exchange](const std::string& endpoint) {
      exchange(endpoint);
      return Endpoints();
    };
    EXPECT_EQ(ConnectGloo(own).transport, nullptr);
  });
}

TEST(GlooTransportTest, APeerThatHangsEndsTheGroupAfterTheTimeout) {
  std::vector<GlooMeeting> meetings = MeetInMemory(2);
  std::vector<std::unique_ptr<Transport>> members(2);
  OnEveryRank(2, [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    meetings[index].collective_timeout = Seconds(0.05);
    members[index] = ConnectGloo(meetings[index]).transport;
  });
  ASSERT_NE(members[0], nullptr);

  std::vector<float> buffer(10);
  const Completion completion = members[0]->StartAllReduceSum(buffer)->Wait();

  EXPECT_EQ(completion.progress, Progress::kFailed);
  EXPECT_THAT(completion.reason, HasSubstr("rank 1"));
}

// Two connected members, without the transport's thread.
std::vector<std::unique_ptr<GlooMesh>> MakeMeshes() {
  std::vector<GlooMeeting> meetings = MeetInMemory(2);
  std::vector<std::unique_ptr<GlooMesh>> meshes(2);
  OnEveryRank(2, [&](int rank) {
    const BlockedSigpipe blocked;
    const auto index = static_cast<std::size_t>(rank);
    std::string reason;
    meshes[index] = GlooMesh::Connect(meetings[index], reason);
    EXPECT_EQ(reason, "");
  });
  return meshes;
}

constexpr std::size_t kMoreThanSocketsHold = std::size_t{24} << 20;  // [elements], 96 MiB

// A mesh writes to connections that may be closed.
class GlooMeshTest : public ::testing::Test {
 private:
  const BlockedSigpipe blocked_;
};

TEST_F(GlooMeshTest, MessagesOfTwoLanesDoNotMix) {
  std::vector<std::unique_ptr<GlooMesh>> meshes = MakeMeshes();
  const std::vector<float> sent = {1.0f, 2.0f};
  std::vector<float> received(2);

  meshes[0]->Send(1, Lane::kSecond, std::as_bytes(std::span(sent).subspan(1, 1)));
  meshes[0]->Send(1, Lane::kFirst, std::as_bytes(std::span(sent).subspan(0, 1)));
  meshes[1]->Receive(0, Lane::kFirst, std::as_writable_bytes(std::span(received).subspan(0, 1)));
  meshes[1]->Receive(0, Lane::kSecond, std::as_writable_bytes(std::span(received).subspan(1, 1)));

  EXPECT_TRUE(meshes[1]->WaitReceived(0, Lane::kFirst));
  EXPECT_TRUE(meshes[1]->WaitReceived(0, Lane::kSecond));
  EXPECT_TRUE(meshes[0]->WaitSent(1, Lane::kFirst));
  EXPECT_TRUE(meshes[0]->WaitSent(1, Lane::kSecond));
  EXPECT_EQ(received, sent);
}

TEST_F(GlooMeshTest, AMessageThatCameBeforeItsSenderLeftIsReceived) {
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<GlooMesh>> meshes = MakeMeshes();
    std::vector<float> received(1);
    OnEveryRank(2, [&](int rank) {
      const BlockedSigpipe blocked;
      if (rank == 1) {
        meshes[1]->Receive(0, Lane::kFirst, std::as_writable_bytes(std::span(received)));
        EXPECT_TRUE(meshes[1]->WaitReceived(0, Lane::kFirst)) << meshes[1]->failure();
        return;
      }
      const std::vector<float> sent = {7.0f};
      meshes[0]->Send(1, Lane::kFirst, std::as_bytes(std::span(sent)));
      EXPECT_TRUE(meshes[0]->WaitSent(1, Lane::kFirst));
      meshes[0].reset();
    });
    EXPECT_EQ(received.front(), 7.0f);
  }
}

TEST_F(GlooMeshTest, ASenderThatDiesWithinAMessageFailsTheReceiver) {
  std::vector<std::unique_ptr<GlooMesh>> meshes = MakeMeshes();
  const std::vector<float> sent(kMoreThanSocketsHold);
  std::vector<float> received(kMoreThanSocketsHold);

  meshes[1]->Receive(0, Lane::kFirst, std::as_writable_bytes(std::span(received)));
  meshes[0]->Send(1, Lane::kFirst, std::as_bytes(std::span(sent)));
  meshes[0].reset();

  EXPECT_FALSE(meshes[1]->WaitReceived(0, Lane::kFirst));
  EXPECT_THAT(meshes[1]->failure(), HasSubstr("rank 0"));
  meshes[1]->ReleaseMemory();
}

TEST_F(GlooMeshTest, AReceiverThatDiesWithinAMessageFailsTheSender) {
  std::vector<std::unique_ptr<GlooMesh>> meshes = MakeMeshes();
  const std::vector<float> sent(kMoreThanSocketsHold);
  std::vector<float> received(kMoreThanSocketsHold);

  meshes[1]->Receive(0, Lane::kFirst, std::as_writable_bytes(std::span(received)));
  meshes[0]->Send(1, Lane::kFirst, std::as_bytes(std::span(sent)));
  meshes[1].reset();

  EXPECT_FALSE(meshes[0]->WaitSent(1, Lane::kFirst));
  EXPECT_THAT(meshes[0]->failure(), HasSubstr("rank 1"));
  meshes[0]->ReleaseMemory();
}

TEST_F(GlooMeshTest, APeerThatDiesWithinAnExchangeFailsIt) {
  std::vector<GlooMeeting> meetings = MeetInMemory(2);
  std::unique_ptr<Transport> survivor;
  OnEveryRank(2, [&](int rank) {
    const BlockedSigpipe blocked;
    if (rank == 0) {
      survivor = ConnectGloo(meetings[0]).transport;
      return;
    }
    std::string reason;
    const std::unique_ptr<GlooMesh> dying = GlooMesh::Connect(meetings[1], reason);
    ASSERT_NE(dying, nullptr) << reason;
    const std::vector<float> sent(kMoreThanSocketsHold);
    dying->Send(0, Lane::kFirst, std::as_bytes(std::span(sent)));
    dying->ReleaseMemory();
  });
  ASSERT_NE(survivor, nullptr);

  std::vector<float> received(kMoreThanSocketsHold);
  const Completion completion =
      survivor->StartExchange(1, {}, std::as_writable_bytes(std::span(received)))->Wait();

  EXPECT_EQ(completion.progress, Progress::kFailed);
  EXPECT_THAT(completion.reason, HasSubstr("rank 1"));
}

TEST_F(GlooMeshTest, AnInterruptEndsTheWaitAndTheMesh) {
  std::vector<std::unique_ptr<GlooMesh>> meshes = MakeMeshes();
  std::vector<float> received(1);
  meshes[1]->Receive(0, Lane::kFirst, std::as_writable_bytes(std::span(received)));

  meshes[1]->Interrupt();

  EXPECT_FALSE(meshes[1]->WaitReceived(0, Lane::kFirst));
  EXPECT_FALSE(meshes[1]->WaitReceived(0, Lane::kSecond));
  EXPECT_NE(meshes[1]->failure(), "");
  meshes[1]->ReleaseMemory();
}

}  // namespace
}  // namespace tactus::collective
