// A member that starts a collective piece by piece meets those that start it whole.

#include "agent/collective/mesh_pieces.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/agent/collective/groups.h"

namespace tactus::collective {
namespace {

constexpr std::size_t kLength = 2 * kPieceLength + 100;  // whose last piece goes another way

void ExpectDone(const std::unique_ptr<Collective>& handle) {
  const Completion completion = handle->Wait();
  EXPECT_EQ(completion.progress, Progress::kDone) << completion.reason;
}

class MeshPiecesTest : public testing::TestWithParam<int> {
 protected:
  int size() const { return GetParam(); }
  Transport& member(int rank) { return *members_[static_cast<std::size_t>(rank)]; }

 private:
  const std::vector<std::unique_ptr<Transport>> members_ =
      MakeGroup({.kind = Kind::kTcp, .size = GetParam()});
};

TEST_P(MeshPiecesTest, OfASum) {
  const std::vector<float> expected = ExpectedSum(size(), kLength, 3);
  OnEveryRank(size(), [&](int rank) {
    std::vector<float> buffer = RandomValues(kLength, 3 + static_cast<std::uint64_t>(rank));
    if (rank != 1) ExpectDone(member(rank).StartAllReduceSum(buffer));
    for (std::size_t i = 0; rank == 1 && i < PiecesIn(kLength); ++i) {
      ExpectDone(member(rank).StartAllReduceSum(PieceOf(std::span(buffer), i)));
    }
    EXPECT_TRUE(SameBits(buffer, expected)) << rank;
  });
}

TEST_P(MeshPiecesTest, OfABroadcast) {
  for (const int root : {0, 1}) {
    const std::vector<float> sent = RandomValues(kLength, 5);
    OnEveryRank(size(), [&](int rank) {
      std::vector<float> buffer = rank == root ? sent : std::vector<float>(kLength);
      if (rank != 1) ExpectDone(member(rank).StartBroadcast(buffer, root));
      for (std::size_t i = 0; rank == 1 && i < PiecesIn(kLength); ++i) {
        ExpectDone(member(rank).StartBroadcast(PieceOf(std::span(buffer), i), root));
      }
      EXPECT_TRUE(SameBits(buffer, sent)) << rank;
    });
  }
}

// One of them sends more than the other.
TEST_P(MeshPiecesTest, OfAnExchange) {
  const std::vector<float> sent[] = {RandomValues(kLength, 1), RandomValues(10, 2)};
  OnEveryRank(2, [&](int rank) {
    const auto outgoing = std::as_bytes(std::span(sent[rank]));
    std::vector<float> received(sent[1 - rank].size());
    const auto incoming = std::as_writable_bytes(std::span(received));
    if (rank == 0) ExpectDone(member(rank).StartExchange(1, outgoing, incoming));
    const std::size_t pieces = PiecesOfExchange(outgoing.size(), incoming.size());
    for (std::size_t i = 0; rank == 1 && i < pieces; ++i) {
      ExpectDone(member(rank).StartExchange(0, PieceOf(outgoing, i), PieceOf(incoming, i)));
    }
    EXPECT_TRUE(SameBits(received, sent[1 - rank])) << rank;
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, MeshPiecesTest, testing::Values(2, 3, 4));

}  // namespace
}  // namespace tactus::collective
