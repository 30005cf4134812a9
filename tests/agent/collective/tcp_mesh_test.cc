// What is particular to our own connections: strangers, endpoints, messages that do not fit.

#include "agent/collective/tcp_mesh.h"

#include <sys/resource.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "agent/collective/greeting.h"
#include "agent/collective/tcp_socket.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/collective/groups.h"

namespace tactus::collective {
namespace {

using ::testing::HasSubstr;

Deadline Soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(10); }

TEST(TcpEndpointTest, EndpointsTravelAsBytesOfOneLength) {
  Endpoint ipv6 = {.is_ipv6 = true, .port = 0xabcd, .word = 0x0123456789abcdef};
  ipv6.address.fill(0xfe);
  for (const Endpoint& endpoint : {Endpoint{.address = {127, 0, 0, 1}, .port = 80}, ipv6}) {
    const std::string bytes = EncodeEndpoint(endpoint);
    Endpoint decoded;

    EXPECT_EQ(bytes.size(), kEndpointBytes);
    ASSERT_TRUE(DecodeEndpoint(bytes, decoded));
    EXPECT_EQ(decoded.address, endpoint.address);
    EXPECT_EQ(decoded.is_ipv6, endpoint.is_ipv6);
    EXPECT_EQ(decoded.port, endpoint.port);
    EXPECT_EQ(decoded.word, endpoint.word);
  }
}

TEST(TcpEndpointTest, OtherBytesAreRefused) {
  const std::string bytes = EncodeEndpoint({});
  Endpoint decoded;
  EXPECT_FALSE(DecodeEndpoint("", decoded));
  EXPECT_FALSE(DecodeEndpoint(bytes.substr(1), decoded));
  EXPECT_FALSE(DecodeEndpoint(bytes + "x", decoded));
  EXPECT_FALSE(DecodeEndpoint("5" + bytes.substr(1), decoded));
}

void ExpectToWork(std::vector<std::unique_ptr<TcpMesh>>& meshes) {
  ASSERT_NE(meshes[0], nullptr);
  ASSERT_NE(meshes[1], nullptr);
  const std::array<std::byte, 3> sent = {std::byte{1}, std::byte{2}, std::byte{3}};
  std::array<std::byte, 3> received = {};
  meshes[1]->Receive(0, Lane::kSecond, received);
  meshes[0]->Send(1, Lane::kSecond, sent);
  EXPECT_TRUE(meshes[0]->WaitSent(1, Lane::kSecond));
  EXPECT_TRUE(meshes[1]->WaitReceived(0, Lane::kSecond));
  EXPECT_EQ(received, sent);
}

class TcpMeshTest : public ::testing::TestWithParam<bool> {
 protected:
  // Two members, connected; `strange` is called with the endpoint of member 0 before that.
  template <typename Strange>
  std::vector<std::unique_ptr<TcpMesh>> MeetAnd(Strange strange) {
    std::vector<TcpMeeting> meetings = MeetInMemory(2, GetParam());
    std::vector<std::unique_ptr<TcpMesh>> meshes(2);
    OnEveryRank(2, [&](int rank) {
      TcpMeeting& meeting = meetings[static_cast<std::size_t>(rank)];
      meeting.tell = [&](const std::string& line) {
        const std::scoped_lock lock(told_mutex_);
        told_.push_back(line);
      };
      meeting.exchange = [&, exchange = meeting.exchange](const std::string& own) {
        if (rank == 0) {
          Endpoint endpoint;
          EXPECT_TRUE(DecodeEndpoint(own, endpoint));
          strange(endpoint);
        }
        return exchange(own);
      };
      std::string reason;
      std::vector<std::unique_ptr<TcpMesh>> one = TcpMesh::Connect(meeting, {}, reason);
      ASSERT_EQ(one.size(), 1u) << reason;
      meshes[static_cast<std::size_t>(rank)] = std::move(one.front());
    });
    return meshes;
  }

  std::mutex told_mutex_;
  std::vector<std::string> told_;
};

TEST_P(TcpMeshTest, AStrangerThatSaysNothingHoldsNobodyUp) {
  Descriptor stranger;
  std::vector<std::unique_ptr<TcpMesh>> meshes = MeetAnd([&](const Endpoint& endpoint) {
    std::string why;
    stranger = ConnectTo(endpoint, Soon(), why);
    EXPECT_TRUE(stranger.open()) << why;
  });
  ExpectToWork(meshes);
}

TEST_P(TcpMeshTest, AStrangerIsNoMemberAndIsToldOfInOneLine) {
  std::vector<Descriptor> strangers(5);
  std::vector<std::unique_ptr<TcpMesh>> meshes = MeetAnd([&](const Endpoint& endpoint) {
    const GroupSecret guess = {.secret = "a guess", .generation = 7};
    Hello hello = {.generation = 7, .from = 1, .to = 0, .lane = 1};
    Greeting(guess, endpoint.word).Sign(hello);
    for (Descriptor& stranger : strangers) {
      std::string why;
      stranger = ConnectTo(endpoint, Soon(), why);
      EXPECT_EQ(WriteSome(stranger, Encode(hello), {}).bytes, kHelloBytes);
    }
  });
  ExpectToWork(meshes);
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_THAT(told_.front(), HasSubstr("5 connections to this worker were refused, the first from "
                                       "127.0.0.1: "));
}

TEST_P(TcpMeshTest, ManyStrangersKeepNoMemberOut) {
  std::vector<Descriptor> strangers(600);
  std::vector<std::unique_ptr<TcpMesh>> meshes = MeetAnd([&](const Endpoint& endpoint) {
    for (Descriptor& stranger : strangers) {
      std::string why;
      stranger = ConnectTo(endpoint, Soon(), why);
      EXPECT_TRUE(stranger.open()) << why;
    }
  });
  ExpectToWork(meshes);
}

TEST_P(TcpMeshTest, AStrangerThatLeavesAtOnceDoesNoHarm) {
  std::vector<std::unique_ptr<TcpMesh>> meshes = MeetAnd([](const Endpoint& endpoint) {
    std::string why;
    EXPECT_TRUE(ConnectTo(endpoint, Soon(), why).open()) << why;
  });
  ExpectToWork(meshes);
  EXPECT_TRUE(told_.empty());
}

// Of who has another secret each side finds out, and says whose it is.
TEST_P(TcpMeshTest, WhoKnowsAnotherSecretComesIntoNoGroup) {
  std::vector<TcpMeeting> meetings = MeetInMemory(2, GetParam());
  meetings[0].timeout = Seconds(1);
  meetings[1].secret = "that of the generation before";
  std::vector<std::string> reasons(2);
  OnEveryRank(2, [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    EXPECT_TRUE(TcpMesh::Connect(meetings[index], {}, reasons[index]).empty());
  });
  EXPECT_THAT(reasons[0], HasSubstr("rank 1"));
  EXPECT_THAT(reasons[1], HasSubstr("rank 0"));
}

TEST_P(TcpMeshTest, AMessageOfAnotherLengthEndsTheMesh) {
  for (const std::size_t expected : {std::size_t{2}, std::size_t{4}}) {
    std::vector<std::unique_ptr<TcpMesh>> meshes = MeetAnd([](const Endpoint&) {});
    const std::vector<std::byte> sent(3);
    std::vector<std::byte> received(expected);
    meshes[0]->Send(1, Lane::kFirst, sent);
    meshes[1]->Receive(0, Lane::kFirst, received);

    EXPECT_FALSE(meshes[1]->WaitReceived(0, Lane::kFirst));
    EXPECT_THAT(meshes[1]->failure(), HasSubstr("rank 0"));
    EXPECT_THAT(meshes[1]->failure(), HasSubstr("3 bytes"));
  }
}

TEST_P(TcpMeshTest, AShortMessageWhereALongOneIsAwaitedIsNoticedAtOnce) {
  std::vector<std::unique_ptr<TcpMesh>> meshes = MeetAnd([](const Endpoint&) {});
  const std::vector<std::byte> sent(100);
  std::vector<std::byte> received(std::size_t{1} << 20);
  OnEveryRank(2, [&](int rank) {
    if (rank == 0) {
      std::vector<std::byte> go(1);
      meshes[0]->Receive(1, Lane::kSecond, go);
      EXPECT_TRUE(meshes[0]->WaitReceived(1, Lane::kSecond));
      meshes[0]->Send(1, Lane::kFirst, sent);
      return;
    }
    meshes[1]->Receive(0, Lane::kFirst, received);
    const std::vector<std::byte> go(1);
    meshes[1]->Send(0, Lane::kSecond, go);
    EXPECT_FALSE(meshes[1]->WaitReceived(0, Lane::kFirst));
    EXPECT_THAT(meshes[1]->failure(), HasSubstr("100 bytes"));
  });
}

TEST_P(TcpMeshTest, AnInterruptComesBeforeAMessageThatIsThere) {
  std::vector<std::unique_ptr<TcpMesh>> meshes = MeetAnd([](const Endpoint&) {});
  std::vector<std::byte> received(1);
  meshes[1]->Receive(0, Lane::kFirst, received);
  meshes[0]->Send(1, Lane::kFirst, received);

  meshes[1]->Interrupt();

  EXPECT_FALSE(meshes[1]->WaitReceived(0, Lane::kFirst));
}

TEST_P(TcpMeshTest, WaitingForOneMessageMovesTheOthersToo) {
  std::vector<std::unique_ptr<TcpMesh>> meshes = MeetAnd([](const Endpoint&) {});
  const std::vector<std::byte> large(std::size_t{64} << 20, std::byte{5});
  OnEveryRank(2, [&](int rank) {
    TcpMesh& mesh = *meshes[static_cast<std::size_t>(rank)];
    const int peer = 1 - rank;
    std::vector<std::byte> first(large.size());
    std::vector<std::byte> second(large.size());
    mesh.Receive(peer, Lane::kFirst, first);
    mesh.Receive(peer, Lane::kSecond, second);
    mesh.Send(peer, Lane::kFirst, large);
    mesh.Send(peer, Lane::kSecond, large);
    // Each waits for the lane that the other waits for last.
    const Lane lane = rank == 0 ? Lane::kFirst : Lane::kSecond;
    const Lane other = rank == 0 ? Lane::kSecond : Lane::kFirst;
    EXPECT_TRUE(mesh.WaitSent(peer, lane));
    EXPECT_TRUE(mesh.WaitReceived(peer, lane));
    EXPECT_TRUE(mesh.WaitSent(peer, other));
    EXPECT_TRUE(mesh.WaitReceived(peer, other));
    EXPECT_EQ(first, large);
    EXPECT_EQ(second, large);
  });
}

TEST_P(TcpMeshTest, SeveralMeshesOfOneMeetingDoNotMixUpTheirMessages) {
  constexpr std::size_t kMeshes = 3;
  std::vector<TcpMeeting> meetings = MeetInMemory(3, GetParam());
  OnEveryRank(3, [&](int rank) {
    std::string reason;
    const std::vector<std::unique_ptr<TcpMesh>> meshes =
        TcpMesh::Connect(meetings[static_cast<std::size_t>(rank)], {.count = kMeshes}, reason);
    ASSERT_EQ(meshes.size(), kMeshes) << reason;
    const int to = (rank + 1) % 3;
    const int from = (rank + 2) % 3;
    const auto word = [](int sender, std::size_t mesh, Lane lane) {
      return std::array<std::byte, 1>{static_cast<std::byte>(
          sender * 16 + static_cast<int>(mesh) * 2 + static_cast<int>(lane))};
    };
    for (std::size_t mesh = kMeshes; mesh-- > 0;) {
      for (const Lane lane : {Lane::kSecond, Lane::kFirst}) {
        const auto sent = word(rank, mesh, lane);
        std::array<std::byte, 1> received = {};
        meshes[mesh]->Send(to, lane, sent);
        meshes[mesh]->Receive(from, lane, received);
        EXPECT_TRUE(meshes[mesh]->WaitReceived(from, lane));
        EXPECT_TRUE(meshes[mesh]->WaitSent(to, lane));
        EXPECT_EQ(received, word(from, mesh, lane));
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Every, TcpMeshTest, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "Encrypted" : "Plain"; });

TEST(TcpSocketTest, WhatCannotBeAcceptedForWantOfDescriptorsIsTold) {
  Endpoint endpoint;
  std::string why;
  const Descriptor listener = Listen("127.0.0.1", endpoint, why);
  ASSERT_TRUE(listener.open()) << why;
  EXPECT_FALSE(Accept(listener, why).open());
  EXPECT_EQ(why, "");  // nobody waits
  const Descriptor waiting = ConnectTo(endpoint, Soon(), why);
  ASSERT_TRUE(waiting.open()) << why;
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 3;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool taken = Accept(listener, why).open();
  setrlimit(RLIMIT_NOFILE, &before);

  EXPECT_FALSE(taken);
  EXPECT_EQ(why, "Too many open files");
  why.clear();
  EXPECT_TRUE(Accept(listener, why).open());
  EXPECT_EQ(why, "");
}

}  // namespace
}  // namespace tactus::collective
