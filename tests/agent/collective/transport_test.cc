// The contract of Transport, held against every kind of it.

#include "agent/collective/transport.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/collective/in_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/collective/counting_conversation.h"
#include "tests/agent/collective/groups.h"

namespace tactus::collective {
namespace {

using ::testing::HasSubstr;

class TransportTest : public ::testing::TestWithParam<GroupShape> {
 protected:
  TransportTest() : members_(MakeGroup(GetParam())) {}

  int size() const { return GetParam().size; }
  Transport& member(int rank) { return *members_[static_cast<std::size_t>(rank)]; }
  void Leave(int rank) { members_[static_cast<std::size_t>(rank)].reset(); }

  // All members reduce; says whether each of them got exactly the sum in rank order.
  bool EveryoneGetsTheSum(std::size_t length, std::uint64_t seed) {
    const std::vector<float> expected = ExpectedSum(size(), length, seed);
    std::vector<char> right(static_cast<std::size_t>(size()));
    OnEveryRank(size(), [&](int rank) {
      std::vector<float> buffer = RandomValues(length, seed + static_cast<std::uint64_t>(rank));
      const Completion completion = member(rank).StartAllReduceSum(buffer)->Wait();
      right[static_cast<std::size_t>(rank)] =
          completion.progress == Progress::kDone && SameBits(buffer, expected);
    });
    return std::vector<char>(right.size(), 1) == right;
  }

 private:
  std::vector<std::unique_ptr<Transport>> members_;
};

std::string ShapeName(const ::testing::TestParamInfo<GroupShape>& test) {
  return NameOf(test.param);
}

TEST_P(TransportTest, MembersKnowTheirPlace) {
  for (int rank = 0; rank < size(); ++rank) {
    EXPECT_EQ(member(rank).rank(), rank);
    EXPECT_EQ(member(rank).size(), size());
  }
}

TEST_P(TransportTest, EveryMemberGetsTheSumInRankOrderBitForBit) {
  for (const std::size_t length : {1, 2, 3, 5, 17, 1000, 2047, 2048, 2049, 4099, 100'003}) {
    EXPECT_TRUE(EveryoneGetsTheSum(length, 7 * length)) << "length " << length;
  }
}

TEST_P(TransportTest, LongBuffersAreSummedAsShortOnes) {
  for (const std::size_t length : {1'000'000, 1'048'576, 1'048'577, 2'200'001}) {
    EXPECT_TRUE(EveryoneGetsTheSum(length, length)) << "length " << length;
  }
}

TEST_P(TransportTest, AnEmptyBufferIsReducedAndBroadcast) {
  OnEveryRank(size(), [&](int rank) {
    EXPECT_EQ(member(rank).StartAllReduceSum({})->Wait().progress, Progress::kDone);
    EXPECT_EQ(member(rank).StartBroadcast({}, size() - 1)->Wait().progress, Progress::kDone);
  });
  EXPECT_TRUE(EveryoneGetsTheSum(10, 1));
}

TEST_P(TransportTest, ACompletionCarriesThePresent) {
  OnEveryRank(size(), [&](int rank) {
    std::vector<float> buffer(3, 1.0f);
    const Completion completion = member(rank).StartAllReduceSum(buffer)->Wait();
    EXPECT_EQ(completion.at, kTestNow);
    EXPECT_EQ(completion.finished, kTestNow);
    EXPECT_EQ(completion.reason, "");
  });
}

TEST_P(TransportTest, BroadcastGivesEveryoneTheRootsValues) {
  for (const std::size_t length : {1, 7, 2048, 2049, 50'000, 1'100'000}) {
    for (int root = 0; root < size(); ++root) {
      const std::vector<float> expected = RandomValues(length, static_cast<std::uint64_t>(root));
      OnEveryRank(size(), [&](int rank) {
        std::vector<float> buffer = RandomValues(length, static_cast<std::uint64_t>(rank));
        const Completion completion = member(rank).StartBroadcast(buffer, root)->Wait();
        EXPECT_EQ(completion.progress, Progress::kDone) << completion.reason;
        EXPECT_TRUE(SameBits(buffer, expected)) << "length " << length << " root " << root;
      });
    }
  }
}

TEST_P(TransportTest, ManyCollectivesInFlightFinishInOrder) {
  constexpr std::size_t kCount = 60;
  const auto length_of = [](std::size_t i) { return (i * 977) % 5000; };
  OnEveryRank(size(), [&](int rank) {
    std::vector<std::vector<float>> buffers;
    for (std::size_t i = 0; i < kCount; ++i) {
      buffers.push_back(RandomValues(length_of(i), 100 * i + static_cast<std::uint64_t>(rank)));
    }
    std::vector<std::unique_ptr<Collective>> handles;
    for (std::vector<float>& buffer : buffers) {
      handles.push_back(member(rank).StartAllReduceSum(buffer));
    }
    EXPECT_EQ(handles.back()->Wait().progress, Progress::kDone);
    for (std::size_t i = 0; i < kCount; ++i) {
      EXPECT_EQ(handles[i]->Poll(), Progress::kDone) << i;
      EXPECT_TRUE(SameBits(buffers[i], ExpectedSum(size(), length_of(i), 100 * i))) << i;
    }
  });
}

// Whom `rank` turns to in a turn, the same turn for both; itself in one of them.
int PartnerOf(int rank, int turn, int size) { return (turn + size - rank) % size; }

std::span<const std::byte> BytesOf(const std::vector<float>& values, std::size_t bytes) {
  return std::as_bytes(std::span(values)).first(bytes);
}

// What `from` sends to another in the turn is random, as is how much: nothing, a few odd bytes, or
// more than sockets hold at once.
constexpr std::size_t kMessageFloatsMax = 300'000;
std::vector<float> MessageOf(int from, int turn) {
  return RandomValues(kMessageFloatsMax, static_cast<std::uint64_t>(100 * from + turn));
}
std::size_t MessageBytes(int from, int turn) {
  constexpr std::array<std::size_t, 5> kBytes = {0, 1, 7, 4096, 4 * kMessageFloatsMax - 3};
  return kBytes[static_cast<std::size_t>(from + 2 * turn) % kBytes.size()];
}

TEST_P(TransportTest, AnExchangeGivesEachWhatTheOtherSent) {
  OnEveryRank(size(), [&](int rank) {
    for (int turn = 0; turn < 2 * size(); ++turn) {
      const int peer = PartnerOf(rank, turn, size());
      if (peer == rank) continue;
      const std::vector<float> sent = MessageOf(rank, turn);
      const std::vector<float> expected = MessageOf(peer, turn);
      std::vector<std::byte> received(MessageBytes(peer, turn));
      const Completion completion =
          member(rank)
              .StartExchange(peer, BytesOf(sent, MessageBytes(rank, turn)), received)
              ->Wait();
      EXPECT_EQ(completion.progress, Progress::kDone) << completion.reason;
      EXPECT_TRUE(std::ranges::equal(received, BytesOf(expected, received.size()))) << turn;
    }
  });
}

TEST_P(TransportTest, AConversationGoesTurnByTurn) {
  OnEveryRank(size(), [&](int rank) {
    CountingConversation conversation(rank, size());

    const Completion completion = member(rank).StartConversation(conversation)->Wait();

    EXPECT_EQ(completion.progress, Progress::kDone) << completion.reason;
    EXPECT_EQ(conversation.calls(), "B0B1B2E");
    EXPECT_EQ(conversation.heard_count(),
              static_cast<int>(CountingConversation::kTurns) * (size() - 1));
    EXPECT_TRUE(conversation.as_expected());
  });
}

TEST_P(TransportTest, ConversationsKeepTheirPlaceAmongTheOthers) {
  constexpr std::size_t kLength = 40'000;
  OnEveryRank(size(), [&](int rank) {
    std::vector<float> before = RandomValues(kLength, 3 + static_cast<std::uint64_t>(rank));
    std::vector<float> behind = RandomValues(kLength, 50 + static_cast<std::uint64_t>(rank));
    CountingConversation first(rank, size());
    CountingConversation second(rank, size());
    std::vector<std::unique_ptr<Collective>> handles;
    handles.push_back(member(rank).StartAllReduceSum(before));
    handles.push_back(member(rank).StartConversation(first));
    handles.push_back(member(rank).StartConversation(second));
    handles.push_back(member(rank).StartAllReduceSum(behind));

    EXPECT_EQ(handles.back()->Wait().progress, Progress::kDone);

    EXPECT_TRUE(SameBits(before, ExpectedSum(size(), kLength, 3)));
    EXPECT_TRUE(first.as_expected() && second.as_expected());
    EXPECT_TRUE(SameBits(behind, ExpectedSum(size(), kLength, 50)));
  });
}

TEST_P(TransportTest, ABarrierIsDoneOnceAllHaveStartedIt) {
  std::atomic<int> come = 0;
  OnEveryRank(size(), [&](int rank) {
    for (int round = 1; round <= 20; ++round) {
      ++come;
      EXPECT_EQ(member(rank).StartBarrier()->Wait().progress, Progress::kDone);
      EXPECT_GE(come, round * size());
    }
  });
}

TEST_P(TransportTest, BarriersAndExchangesKeepTheirPlaceAmongTheOthers) {
  constexpr std::size_t kLength = 40'000;
  OnEveryRank(size(), [&](int rank) {
    const int peer = size() - 1 - rank;  // the one in the middle has none
    std::vector<float> first = RandomValues(kLength, 3 + static_cast<std::uint64_t>(rank));
    std::vector<float> second = RandomValues(kLength, 50 + static_cast<std::uint64_t>(rank));
    std::vector<float> swapped(kLength);
    std::vector<std::unique_ptr<Collective>> handles;
    handles.push_back(member(rank).StartAllReduceSum(first));
    if (peer != rank) {
      handles.push_back(member(rank).StartExchange(peer, std::as_bytes(std::span(first)),
                                                   std::as_writable_bytes(std::span(swapped))));
    }
    handles.push_back(member(rank).StartBarrier());
    handles.push_back(member(rank).StartAllReduceSum(second));

    EXPECT_EQ(handles.back()->Wait().progress, Progress::kDone);

    for (const std::unique_ptr<Collective>& handle : handles) {
      EXPECT_EQ(handle->Poll(), Progress::kDone);
    }
    EXPECT_TRUE(SameBits(first, ExpectedSum(size(), kLength, 3)));
    EXPECT_TRUE(peer == rank || SameBits(swapped, first));  // the sum was sent, not its part
    EXPECT_TRUE(SameBits(second, ExpectedSum(size(), kLength, 50)));
  });
}

TEST_P(TransportTest, DestroyingAHandleWaitsForItsCollective) {
  const std::vector<float> expected = ExpectedSum(size(), 30'000, 5);
  OnEveryRank(size(), [&](int rank) {
    std::vector<float> buffer = RandomValues(30'000, 5 + static_cast<std::uint64_t>(rank));
    member(rank).StartAllReduceSum(buffer).reset();
    EXPECT_TRUE(SameBits(buffer, expected));
  });
}

TEST_P(TransportTest, AMemberThatLeavesTakesNothingFromFinishedCollectives) {
  for (int round = 0; round < 5; ++round) {
    std::vector<std::unique_ptr<Transport>> members = MakeGroup(GetParam());
    const std::vector<float> expected = ExpectedSum(size(), 70'000, 9);
    OnEveryRank(size(), [&](int rank) {
      std::vector<float> buffer = RandomValues(70'000, 9 + static_cast<std::uint64_t>(rank));
      std::unique_ptr<Transport> own = std::move(members[static_cast<std::size_t>(rank)]);
      const Completion completion = own->StartAllReduceSum(buffer)->Wait();
      own.reset();
      EXPECT_EQ(completion.progress, Progress::kDone) << completion.reason;
      EXPECT_TRUE(SameBits(buffer, expected));
    });
  }
}

TEST_P(TransportTest, AbortFailsWhatIsUnderWayAndToCome) {
  std::vector<float> first(100), second(100);
  const std::unique_ptr<Collective> handle =
      size() > 1 ? member(0).StartAllReduceSum(first) : nullptr;

  std::thread([&] { member(0).Abort("told to stop"); }).join();

  if (handle != nullptr) {
    const Completion completion = handle->Wait();
    EXPECT_EQ(completion.progress, Progress::kFailed);
    EXPECT_THAT(completion.reason, HasSubstr("told to stop"));
    EXPECT_EQ(handle->Poll(), Progress::kFailed);
  }
  const Completion later = member(0).StartAllReduceSum(second)->Wait();
  EXPECT_EQ(later.progress, Progress::kFailed);
  EXPECT_THAT(later.reason, HasSubstr("told to stop"));
}

TEST_P(TransportTest, TheFirstReasonOfAnAbortStays) {
  member(0).Abort("first");
  member(0).Abort("second");

  std::vector<float> buffer(1);
  EXPECT_THAT(member(0).StartAllReduceSum(buffer)->Wait().reason, HasSubstr("first"));
}

INSTANTIATE_TEST_SUITE_P(Every, TransportTest, ::testing::ValuesIn(ShapesFrom(1, 6)), ShapeName);

using PeersTest = TransportTest;  // at least two members

TEST_P(PeersTest, AMemberThatDiesFailsTheOthersWithAReason) {
  OnEveryRank(size(), [&](int rank) {
    std::vector<float> buffer(200'000);
    const bool dies = rank == size() - 1;
    const Completion first = member(rank).StartAllReduceSum(buffer)->Wait();
    EXPECT_EQ(first.progress, Progress::kDone) << first.reason;
    if (dies) return Leave(rank);

    const std::unique_ptr<Collective> second = member(rank).StartAllReduceSum(buffer);
    const Completion completion = second->Wait();
    EXPECT_EQ(completion.progress, Progress::kFailed);
    EXPECT_NE(completion.reason, "");
    EXPECT_EQ(member(rank).StartAllReduceSum(buffer)->Wait().progress, Progress::kFailed);
  });
}

TEST_P(PeersTest, AMemberThatDoesNotComeToAConversationAndDiesFailsIt) {
  OnEveryRank(size(), [&](int rank) {
    if (rank == 0) return Leave(rank);
    CountingConversation conversation(rank, size());
    const Completion completion = member(rank).StartConversation(conversation)->Wait();
    EXPECT_EQ(completion.progress, Progress::kFailed);
    EXPECT_NE(completion.reason, "");
  });
}

TEST_P(PeersTest, AMemberThatDiesWithCollectivesUnderWayFailsTheOthers) {
  OnEveryRank(size(), [&](int rank) {
    std::vector<std::vector<float>> buffers(8, std::vector<float>(150'000));
    std::vector<std::unique_ptr<Collective>> handles;
    const std::size_t count = rank == 0 ? 3 : buffers.size();
    for (std::size_t i = 0; i < count; ++i) {
      handles.push_back(member(rank).StartAllReduceSum(buffers[i]));
    }
    if (rank == 0) return Leave(rank);
    EXPECT_EQ(handles.back()->Wait().progress, Progress::kFailed);
  });
}

TEST_P(PeersTest, AnAbortReachesTheOthers) {
  OnEveryRank(size(), [&](int rank) {
    if (rank == 0) return member(rank).Abort("told to stop");
    std::vector<float> buffer(5000);
    const Completion completion = member(rank).StartAllReduceSum(buffer)->Wait();
    EXPECT_EQ(completion.progress, Progress::kFailed);
    EXPECT_NE(completion.reason, "");
  });
}

TEST_P(PeersTest, ACollectiveIsRunningUntilAllHaveStartedIt) {
  std::vector<float> first(10, 1.0f);
  const std::unique_ptr<Collective> handle = member(0).StartAllReduceSum(first);
  EXPECT_EQ(handle->Poll(), Progress::kRunning);

  std::vector<std::vector<float>> others(static_cast<std::size_t>(size()),
                                         std::vector<float>(10, 1.0f));
  OnEveryRank(size(), [&](int rank) {
    std::vector<float>& buffer = others[static_cast<std::size_t>(rank)];
    if (rank > 0) member(rank).StartAllReduceSum(buffer)->Wait();
  });

  EXPECT_EQ(handle->Wait().progress, Progress::kDone);
  EXPECT_EQ(first, std::vector<float>(10, static_cast<float>(size())));
}

TEST_P(PeersTest, ABarrierIsRunningUntilTheLastHasStartedIt) {
  const std::unique_ptr<Collective> handle = member(0).StartBarrier();
  OnEveryRank(size() - 1, [&](int rank) {
    if (rank == 0) {
      EXPECT_EQ(handle->Poll(), Progress::kRunning);
      rank = size() - 1;
    }
    member(rank).StartBarrier()->Wait();
  });
  EXPECT_EQ(handle->Wait().progress, Progress::kDone);
}

TEST_P(PeersTest, APeerThatDiesFailsTheExchangeWithIt) {
  OnEveryRank(size(), [&](int rank) {
    if (rank == 1) return Leave(rank);
    if (rank > 1) return;
    std::vector<std::byte> outgoing(100), incoming(100);
    const Completion completion = member(0).StartExchange(1, outgoing, incoming)->Wait();
    EXPECT_EQ(completion.progress, Progress::kFailed);
    EXPECT_NE(completion.reason, "");
    EXPECT_EQ(member(0).StartBarrier()->Wait().progress, Progress::kFailed);
  });
}

TEST_P(PeersTest, AnAbortFailsABarrierAndAnExchangeUnderWay) {
  std::vector<std::byte> incoming(8);
  const std::unique_ptr<Collective> barrier = member(0).StartBarrier();
  const std::unique_ptr<Collective> exchange = member(1).StartExchange(0, {}, incoming);

  for (const int rank : {0, 1}) member(rank).Abort("told to stop");

  EXPECT_EQ(barrier->Wait().progress, Progress::kFailed);
  EXPECT_EQ(exchange->Wait().progress, Progress::kFailed);
}

TEST_P(PeersTest, WhatIsDoneStaysDoneAfterAFailure) {
  OnEveryRank(size(), [&](int rank) {
    std::vector<float> buffer(10);
    const std::unique_ptr<Collective> handle = member(rank).StartAllReduceSum(buffer);
    EXPECT_EQ(handle->Wait().progress, Progress::kDone);
    member(rank).Abort("told to stop");
    EXPECT_EQ(handle->Poll(), Progress::kDone);
    EXPECT_EQ(handle->Wait().progress, Progress::kDone);
  });
}

INSTANTIATE_TEST_SUITE_P(Every, PeersTest, ::testing::ValuesIn(ShapesFrom(2, 4)), ShapeName);

// The present is told by the test.
class CompletionTest : public ::testing::TestWithParam<Kind> {
 protected:
  CompletionTest() {
    const auto now = [this] { return Instant(Duration(nanoseconds_)); };
    if (GetParam() == Kind::kInProcess) {
      members_ = MakeInProcessGroup(2, now);
      return;
    }
    std::vector<TcpMeeting> meetings = MeetInMemory(2);
    members_.resize(2);
    OnEveryRank(2, [&](int rank) {
      const auto index = static_cast<std::size_t>(rank);
      meetings[index].now = now;
      members_[index] = ConnectTcp(meetings[index]).transport;
    });
  }

  std::atomic<std::int64_t> nanoseconds_ = 5;
  std::vector<std::unique_ptr<Transport>> members_;
};

TEST_P(CompletionTest, SaysWhenItWasDoneAndWhenThatWasLearned) {
  const std::unique_ptr<Collective> first = members_[0]->StartBarrier();
  const std::unique_ptr<Collective> second = members_[1]->StartBarrier();
  while (first->Poll() == Progress::kRunning || second->Poll() == Progress::kRunning) {
    std::this_thread::yield();
  }
  nanoseconds_ = 9;

  for (Collective* const handle : {first.get(), second.get()}) {
    const Completion completion = handle->Wait();
    EXPECT_EQ(completion.finished, Instant(Duration(5)));
    EXPECT_EQ(completion.at, Instant(Duration(9)));
  }
}

TEST_P(CompletionTest, SaysWhenItFailed) {
  const std::unique_ptr<Collective> handle = members_[0]->StartBarrier();
  members_[0]->Abort("told to stop");
  while (handle->Poll() == Progress::kRunning) std::this_thread::yield();
  nanoseconds_ = 9;

  EXPECT_EQ(handle->Wait().finished, Instant(Duration(5)));
  EXPECT_EQ(members_[0]->StartBarrier()->Wait().finished, Instant(Duration(5)));
}

INSTANTIATE_TEST_SUITE_P(Every, CompletionTest,
                         ::testing::Values(Kind::kInProcess, Kind::kTcp, Kind::kTls));

class SoloTest : public TransportTest {};

TEST_P(SoloTest, AGroupOfOneIsDoneAtOnce) {
  std::vector<float> buffer = {1.0f, 2.0f};

  EXPECT_EQ(member(0).StartAllReduceSum(buffer)->Poll(), Progress::kDone);
  EXPECT_EQ(member(0).StartBroadcast(buffer, 0)->Poll(), Progress::kDone);
  EXPECT_EQ(member(0).StartBarrier()->Poll(), Progress::kDone);

  EXPECT_EQ(buffer, (std::vector<float>{1.0f, 2.0f}));
}

INSTANTIATE_TEST_SUITE_P(Every, SoloTest, ::testing::ValuesIn(ShapesFrom(1, 1)), ShapeName);

}  // namespace
}  // namespace tactus::collective
