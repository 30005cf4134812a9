// Sums and broadcasts of members that have parts: two replicas of 2 x 2 members.

#include "agent/collective/replicas.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agent/collective/in_process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/collective/groups.h"

namespace tactus::collective {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr MeshShape kSquare{2, 2};
constexpr int kMembers = 8;

class ReplicaTransportTest : public ::testing::Test {
 protected:
  // Buffers of 6 numbers, of which the middle four are parts.
  struct Member {
    std::vector<float> buffer = std::vector<float>(6);
    std::span<float> parts() { return std::span(buffer).subspan(1, 4); }
  };

  void Run(const std::function<void(int rank, Transport& transport, Member& member)>& body) {
    OnEveryRank(kMembers, [&](int rank) {
      const auto index = static_cast<std::size_t>(rank);
      Member member;
      ReplicaTransport transport(*worlds_[index], groups_[index], kSquare, member.parts());
      body(rank, transport, member);
    });
  }

  std::vector<std::unique_ptr<Transport>> worlds_ =
      MakeInProcessGroup(kMembers, [] { return kTestNow; });
  std::vector<MeshGroups> groups_ = MakeInProcessMeshes(kMembers, kSquare, [] { return kTestNow; });
};

TEST_F(ReplicaTransportTest, PartsAreSummedOverReplicasAndTheRestOverAll) {
  Run([](int rank, Transport& transport, Member& member) {
    std::ranges::fill(member.buffer, static_cast<float>(rank));
    EXPECT_EQ(transport.rank(), rank);
    EXPECT_EQ(transport.size(), kMembers);
    EXPECT_EQ(transport.StartAllReduceSum(member.buffer)->Wait().progress, Progress::kDone);
    const auto places = static_cast<float>(rank % 4 + rank % 4 + 4);
    EXPECT_THAT(member.buffer, ElementsAre(28, places, places, places, places, 28));
  });
}

TEST_F(ReplicaTransportTest, ABufferMayCrossOneEdgeOrLieBeside) {
  Run([](int rank, Transport& transport, Member& member) {
    std::ranges::fill(member.buffer, static_cast<float>(rank));
    std::vector<float> beside(2, 1.0F);
    const auto tail = transport.StartAllReduceSum(std::span(member.buffer).subspan(4));
    const auto other = transport.StartAllReduceSum(beside);
    const auto inner = transport.StartAllReduceSum(std::span(member.buffer).subspan(1, 2));
    EXPECT_EQ(tail->Wait().progress, Progress::kDone);
    EXPECT_EQ(other->Wait().progress, Progress::kDone);
    EXPECT_EQ(inner->Wait().progress, Progress::kDone);
    const auto own = static_cast<float>(rank);
    const auto places = static_cast<float>(rank % 4 + rank % 4 + 4);
    EXPECT_THAT(member.buffer, ElementsAre(own, places, places, own, places, 28));
    EXPECT_THAT(beside, ElementsAre(8, 8));
  });
}

TEST_F(ReplicaTransportTest, ABroadcastBringsEachThePartOfItsPlaceInTheRootsReplica) {
  Run([](int rank, Transport& transport, Member& member) {
    std::ranges::fill(member.buffer, static_cast<float>(rank));
    EXPECT_EQ(transport.StartBroadcast(member.buffer, 6)->Wait().progress, Progress::kDone);
    const auto place = static_cast<float>(4 + rank % 4);
    EXPECT_THAT(member.buffer, ElementsAre(6, place, place, place, place, 6));
  });
}

TEST_F(ReplicaTransportTest, BarriersAndExchangesAreEverybodys) {
  Run([](int rank, Transport& transport, Member& /*member*/) {
    EXPECT_EQ(transport.StartBarrier()->Wait().progress, Progress::kDone);
    std::byte in{};
    const auto out = static_cast<std::byte>(rank);
    EXPECT_EQ(transport.StartExchange(7 - rank, {&out, 1}, {&in, 1})->Wait().progress,
              Progress::kDone);
    EXPECT_EQ(in, static_cast<std::byte>(7 - rank));
  });
}

// Rank 0 goes away from its place's group alone: those who share a row or the world with it learn
// of it, and nobody waits for ever.
TEST_F(ReplicaTransportTest, TheEndOfOneGroupIsTheEndOfAll) {
  Run([this](int rank, Transport& transport, Member& member) {
    if (rank == 0) {
      groups_[0].equal_places->Abort("rank 0 has had enough");
      return;
    }
    Completion completion;
    // Rank 4 finds out by its place, all others by rank 4.
    while (completion.progress == Progress::kDone) {
      completion = transport.StartAllReduceSum(member.buffer)->Wait();
    }
    EXPECT_THAT(completion.reason, HasSubstr("had enough"));
    EXPECT_EQ(groups_[static_cast<std::size_t>(rank)].row->StartBarrier()->Wait().progress,
              Progress::kFailed);
  });
}

}  // namespace
}  // namespace tactus::collective
