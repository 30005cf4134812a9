// What is particular to TCP: meeting, and deaths in the middle of a message.

#include "agent/collective/tcp_transport.h"

#include <cstddef>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/collective/tcp_mesh.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/collective/groups.h"

namespace tactus::collective {
namespace {

using ::testing::HasSubstr;
using Endpoints = std::vector<std::string>;

TcpMeeting MeetingOf(int rank, int size) {
  return MeetInMemory(size)[static_cast<std::size_t>(rank)];
}

TEST(TcpMeetingTest, AnUnknownAddressIsNamedInTheReason) {
  TcpMeeting meeting = MeetingOf(0, 2);
  meeting.address = "no-such-host.invalid";

  const ConnectedTransport connected = ConnectTcp(meeting);

  EXPECT_EQ(connected.transport, nullptr);
  EXPECT_THAT(connected.reason, HasSubstr("no-such-host.invalid"));
}

TEST(TcpMeetingTest, AnAddressOfAnotherHostIsRefused) {
  TcpMeeting meeting = MeetingOf(0, 2);
  meeting.address = "192.0.2.1";  // reserved for documentation: on no machine

  const ConnectedTransport connected = ConnectTcp(meeting);

  EXPECT_EQ(connected.transport, nullptr);
  EXPECT_THAT(connected.reason, HasSubstr("192.0.2.1"));
}

TEST(TcpMeetingTest, AnEmptyAddressIsRefused) {
  TcpMeeting meeting = MeetingOf(0, 2);
  meeting.address = "";

  EXPECT_EQ(ConnectTcp(meeting).transport, nullptr);
}

TEST(TcpMeetingTest, AnInterfacesNameIsAnAddress) {
  std::vector<TcpMeeting> meetings = MeetInMemory(2);
  OnEveryRank(2, [&](int rank) {
    TcpMeeting& meeting = meetings[static_cast<std::size_t>(rank)];
    meeting.address = "lo";
    const ConnectedTransport connected = ConnectTcp(meeting);
    ASSERT_NE(connected.transport, nullptr) << connected.reason;
    std::vector<float> buffer = {1.0f};
    EXPECT_EQ(connected.transport->StartAllReduceSum(buffer)->Wait().progress, Progress::kDone);
    EXPECT_EQ(buffer.front(), 2.0f);
  });
}

TEST(TcpMeetingTest, AGroupThatWasGivenUpIsNotConnected) {
  for (const int size : {1, 2}) {
    TcpMeeting meeting = MeetingOf(0, size);
    meeting.exchange = [](const std::string&) { return Endpoints(); };

    const ConnectedTransport connected = ConnectTcp(meeting);

    EXPECT_EQ(connected.transport, nullptr);
    EXPECT_THAT(connected.reason, HasSubstr("given up"));
  }
}

TEST(TcpMeetingTest, AnEndpointOfTheWrongLengthNamesItsRank) {
  TcpMeeting meeting = MeetingOf(0, 2);
  meeting.exchange = [](const std::string& own) { return Endpoints{own, "short"}; };

  const ConnectedTransport connected = ConnectTcp(meeting);

  EXPECT_EQ(connected.transport, nullptr);
  EXPECT_THAT(connected.reason, HasSubstr("rank 1"));
}

TEST(TcpMeetingTest, AnEndpointThatIsNoAddressNamesItsRank) {
  TcpMeeting meeting = MeetingOf(0, 2);
  meeting.exchange = [](const std::string& own) {
    return Endpoints{own, std::string(own.size(), '\xee')};
  };

  const ConnectedTransport connected = ConnectTcp(meeting);

  EXPECT_EQ(connected.transport, nullptr);
  EXPECT_THAT(connected.reason, HasSubstr("rank 1"));
}

TEST(TcpMeetingTest, APeerThatNeverConnectsEndsTheMeeting) {
  std::vector<TcpMeeting> pair = MeetInMemory(2);
  OnEveryRank(2, [&](int rank) {
    TcpMeeting own = pair[static_cast<std::size_t>(rank)];
    own.timeout = Seconds(0.05);
    if (rank == 0) {
      EXPECT_EQ(ConnectTcp(own).transport, nullptr);
      return;
    }
    own.exchange = [exchange = own.exchange](const std::string& endpoint) {
      exchange(endpoint);
      return Endpoints();
    };
    EXPECT_EQ(ConnectTcp(own).transport, nullptr);
  });
}

// Long before the time to connect is over.
TEST(TcpMeetingTest, APeerThatIsGoneBeforeItConnectsEndsTheMeeting) {
  std::vector<TcpMeeting> pair = MeetInMemory(2);
  OnEveryRank(2, [&](int rank) {
    TcpMeeting own = pair[static_cast<std::size_t>(rank)];
    own.timeout = Seconds(3600);
    if (rank == 1) {
      own.exchange = [exchange = own.exchange](const std::string& endpoint) {
        exchange(endpoint);
        return Endpoints();
      };
    }
    const ConnectedTransport connected = ConnectTcp(own);
    EXPECT_EQ(connected.transport, nullptr);
    if (rank == 1) return;
    EXPECT_EQ(connected.reason, "rank 1: is gone before it connected");
  });
}

TEST(TcpMeetingTest, WhoIsAskedToGiveUpWaitsForNobody) {
  std::vector<TcpMeeting> pair = MeetInMemory(2);
  std::promise<void> over;
  OnEveryRank(2, [&](int rank) {
    TcpMeeting own = pair[static_cast<std::size_t>(rank)];
    own.timeout = Seconds(3600);
    if (rank == 0) {
      own.give_up = [] { return std::string("another group was formed"); };
      EXPECT_EQ(ConnectTcp(own).reason, "another group was formed");
      over.set_value();
      return;
    }
    own.exchange = [&over, exchange = own.exchange](const std::string& endpoint) {
      exchange(endpoint);
      over.get_future().wait();  // it listens, and does not connect
      return Endpoints();
    };
    EXPECT_EQ(ConnectTcp(own).transport, nullptr);
  });
}

TEST(TcpTransportTest, WhoWaitsForACollectiveIsAskedWhetherToWaitOn) {
  std::vector<TcpMeeting> pair = MeetInMemory(2);
  std::promise<void> over;
  OnEveryRank(2, [&](int rank) {
    TcpMeeting own = pair[static_cast<std::size_t>(rank)];
    int asked = 0;
    own.give_up_collective = [&asked] { return ++asked < 3 ? "" : "the program has ended"; };
    std::unique_ptr<Transport> transport = ConnectTcp(own).transport;
    ASSERT_NE(transport, nullptr);
    EXPECT_EQ(transport->StartBarrier()->Wait().progress, Progress::kDone);
    if (rank == 1) return over.get_future().wait();  // it computes, and computes
    asked = 0;

    const Completion given_up = transport->StartBarrier()->Wait();

    EXPECT_EQ(given_up.progress, Progress::kFailed);
    EXPECT_EQ(given_up.reason, "the program has ended");
    EXPECT_EQ(asked, 3);
    over.set_value();
  });
}

TEST(TcpTransportTest, WhoseConnectionFailedIsKnown) {
  std::vector<TcpMeeting> pair = MeetInMemory(2);
  OnEveryRank(2, [&](int rank) {
    std::unique_ptr<Transport> own = ConnectTcp(pair[static_cast<std::size_t>(rank)]).transport;
    ASSERT_NE(own, nullptr);
    EXPECT_EQ(own->StartBarrier()->Wait().progress, Progress::kDone);
    EXPECT_TRUE(own->failed().empty());
    if (rank == 1) return;
    EXPECT_EQ(own->StartBarrier()->Wait().progress, Progress::kFailed);
    EXPECT_EQ(own->failed(), std::vector<int>{1});
  });
}

TEST(TcpTransportTest, AMemberThatComputesLearnsWhoHasGone) {
  std::vector<TcpMeeting> pair = MeetInMemory(2);
  OnEveryRank(2, [&](int rank) {
    std::unique_ptr<Transport> own = ConnectTcp(pair[static_cast<std::size_t>(rank)]).transport;
    ASSERT_NE(own, nullptr);
    if (rank == 1) return;
    while (own->failed().empty()) std::this_thread::yield();
    EXPECT_EQ(own->failed(), std::vector<int>{1});
    EXPECT_EQ(own->StartBarrier()->Wait().reason, "rank 1: closed the connection");
  });
}

// The last that it sent is there to be used.
TEST(TcpTransportTest, WhoHasGoneIsNotMissedWhileSomethingOfItIsUnread) {
  std::vector<TcpMeeting> pair = MeetInMemory(2);
  std::promise<void> gone;
  OnEveryRank(2, [&](int rank) {
    std::unique_ptr<Transport> own = ConnectTcp(pair[static_cast<std::size_t>(rank)]).transport;
    ASSERT_NE(own, nullptr);
    std::vector<float> one = {static_cast<float>(rank)};
    if (rank == 1) {
      EXPECT_EQ(own->StartBroadcast(one, 1)->Wait().progress, Progress::kDone);
      own = nullptr;
      return gone.set_value();
    }
    gone.get_future().wait();
    EXPECT_EQ(own->StartBroadcast(one, 1)->Wait().progress, Progress::kDone);
    EXPECT_EQ(one.front(), 1);
  });
}

TEST(TcpTransportTest, APeerThatHangsIsWaitedForByName) {
  std::vector<TcpMeeting> meetings = MeetInMemory(2);
  std::vector<std::unique_ptr<Transport>> members(2);
  OnEveryRank(2, [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    members[index] = ConnectTcp(meetings[index]).transport;
  });
  ASSERT_NE(members[0], nullptr);
  EXPECT_FALSE(members[0]->awaiting().collective);
  const std::uint64_t before = members[0]->awaiting().bytes_moved;

  std::vector<float> buffer(10);
  const std::unique_ptr<Collective> handle = members[0]->StartAllReduceSum(buffer);

  while (members[0]->awaiting().peers.empty()) std::this_thread::yield();
  EXPECT_EQ(handle->Poll(), Progress::kRunning);
  const Awaiting awaiting = members[0]->awaiting();
  EXPECT_TRUE(awaiting.collective);
  EXPECT_THAT(awaiting.peers, testing::ElementsAre(1));
  EXPECT_GT(awaiting.bytes_moved, before);
  EXPECT_FALSE(members[1]->awaiting().collective);
  std::vector<float> other(10);
  EXPECT_EQ(members[1]->StartAllReduceSum(other)->Wait().progress, Progress::kDone);
  EXPECT_EQ(handle->Wait().progress, Progress::kDone);
  EXPECT_FALSE(members[0]->awaiting().collective);
}

// Two connected members, without the transport's thread.
std::vector<std::unique_ptr<TcpMesh>> MakeMeshes() {
  std::vector<TcpMeeting> meetings = MeetInMemory(2);
  std::vector<std::unique_ptr<TcpMesh>> meshes(2);
  OnEveryRank(2, [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    std::string reason;
    meshes[index] = std::move(TcpMesh::Connect(meetings[index], {}, reason).front());
    EXPECT_EQ(reason, "");
  });
  return meshes;
}

constexpr std::size_t kMoreThanSocketsHold = std::size_t{24} << 20;  // [elements], 96 MiB

TEST(TcpMeshPairTest, MessagesOfTwoLanesDoNotMix) {
  std::vector<std::unique_ptr<TcpMesh>> meshes = MakeMeshes();
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

TEST(TcpMeshPairTest, AMessageThatCameBeforeItsSenderLeftIsReceived) {
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<TcpMesh>> meshes = MakeMeshes();
    std::vector<float> received(1);
    OnEveryRank(2, [&](int rank) {
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

TEST(TcpMeshPairTest, ASenderThatDiesWithinAMessageFailsTheReceiver) {
  std::vector<std::unique_ptr<TcpMesh>> meshes = MakeMeshes();
  const std::vector<float> sent(kMoreThanSocketsHold);
  std::vector<float> received(kMoreThanSocketsHold);

  meshes[1]->Receive(0, Lane::kFirst, std::as_writable_bytes(std::span(received)));
  meshes[0]->Send(1, Lane::kFirst, std::as_bytes(std::span(sent)));
  meshes[0].reset();

  EXPECT_FALSE(meshes[1]->WaitReceived(0, Lane::kFirst));
  EXPECT_THAT(meshes[1]->failure(), HasSubstr("rank 0"));
  meshes[1]->ReleaseMemory();
}

TEST(TcpMeshPairTest, AReceiverThatDiesWithinAMessageFailsTheSender) {
  std::vector<std::unique_ptr<TcpMesh>> meshes = MakeMeshes();
  const std::vector<float> sent(kMoreThanSocketsHold);
  std::vector<float> received(kMoreThanSocketsHold);

  meshes[1]->Receive(0, Lane::kFirst, std::as_writable_bytes(std::span(received)));
  meshes[0]->Send(1, Lane::kFirst, std::as_bytes(std::span(sent)));
  meshes[1].reset();

  EXPECT_FALSE(meshes[0]->WaitSent(1, Lane::kFirst));
  EXPECT_THAT(meshes[0]->failure(), HasSubstr("rank 1"));
  meshes[0]->ReleaseMemory();
}

TEST(TcpMeshPairTest, APeerThatDiesWithinAnExchangeFailsIt) {
  std::vector<TcpMeeting> meetings = MeetInMemory(2);
  std::unique_ptr<Transport> survivor;
  OnEveryRank(2, [&](int rank) {
    if (rank == 0) {
      survivor = ConnectTcp(meetings[0]).transport;
      return;
    }
    std::string reason;
    const std::unique_ptr<TcpMesh> dying =
        std::move(TcpMesh::Connect(meetings[1], {}, reason).front());
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

TEST(TcpMeshPairTest, AnInterruptEndsTheWaitAndTheMesh) {
  std::vector<std::unique_ptr<TcpMesh>> meshes = MakeMeshes();
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
