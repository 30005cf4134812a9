// Rows, columns and equal places between devices, over the doubles of NCCL and of the CUDA runtime
// and real TCP: by NCCL, by way of the hosts' memories, and with hosts among the devices. The
// double's device memory is shut to the host. Sums of NCCL's double are in rank order, as all are,
// so that every group has the bits of the same group on hosts.

#include "agent/collective/device_mesh.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "agent/collective/rank_sum.h"
#include "agent/collective/replicas.h"
#include "cuda/device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/collective/endpoint_board.h"
#include "tests/agent/collective/groups.h"
#include "tests/agent/collective/nccl_double/nccl_members.h"
#include "tests/support/cuda_double/cuda_double.h"
#include "tests/support/nccl_double/nccl_double.h"

namespace tactus::collective {
namespace {

using ::testing::HasSubstr;

// Of the members: all on devices by NCCL, all by way of their hosts, every second one on a host.
enum class Way { kNccl, kStaged, kMixed };

struct Layout {
  Way way = Way::kNccl;
  MeshShape shape = {};
  int replicas = 1;

  int size() const { return replicas * shape.devices(); }
  bool on_device(int rank) const { return way != Way::kMixed || rank % 2 == 0; }
};

std::string NameOf(const Layout& layout) {
  const std::string ways[] = {"Nccl", "Staged", "Mixed"};
  return ways[static_cast<int>(layout.way)] + std::to_string(layout.replicas) + "of" +
         std::to_string(layout.shape.rows) + "x" + std::to_string(layout.shape.columns);
}

void PrintTo(const Layout& layout, std::ostream* out) { *out << NameOf(layout); }

// Floats of a member, wherever its memory is.
class Floats {
 public:
  Floats(bool on_device, std::vector<float> values) : host_(std::move(values)) {
    if (on_device) device_.emplace(host_);
  }
  std::span<float> span() { return device_ ? device_->span() : std::span(host_); }
  std::vector<float> values() const { return device_ ? device_->values() : host_; }

 private:
  std::vector<float> host_;
  std::optional<DeviceFloats> device_;
};

std::vector<float> OfRank(int rank, std::size_t length) {
  return RandomValues(length, 1 + static_cast<std::uint64_t>(rank));
}

// Of what OfRank says, over the ranks in their order.
std::vector<float> SumOf(const std::vector<int>& ranks, std::size_t length) {
  std::vector<std::vector<float>> all;
  std::vector<const float*> sources;
  for (const int rank : ranks) all.push_back(OfRank(rank, length));
  for (const std::vector<float>& own : all) sources.push_back(own.data());
  std::vector<float> sum(length);
  SumInRankOrder(sources, sum);
  return sum;
}

std::vector<int> AllOf(int size) {
  std::vector<int> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back(rank);
  return ranks;
}

class DeviceMeshTest : public NcclMembers, public ::testing::WithParamInterface<Layout> {
 protected:
  using Body = std::function<void(int rank, ConnectedMesh& mesh)>;

  // Connects all members and runs `body` for each on its own thread.
  void Run(const Body& body) {
    const Layout& layout = GetParam();
    EndpointBoard board(layout.size());
    OnEveryRank(layout.size(), [&](int rank) {
      ConnectedMesh mesh = Connect(rank, board);
      ASSERT_EQ(mesh.reason, "");
      ASSERT_EQ(mesh.world.size(), 1U);
      body(rank, mesh);
    });
  }

  ConnectedMesh Connect(int rank, EndpointBoard& board) {
    const Layout& layout = GetParam();
    const auto now = [this] { return clock_.Now(); };
    const DeviceMeeting meeting{
        .rank = rank,
        .size = layout.size(),
        .generation = generation_,
        .address = "127.0.0.1",
        .device = rank,
        .exchange = [rank, &board](const std::string& own) { return board.Exchange(rank, own); },
        .now = now};
    if (layout.way == Way::kNccl) return ConnectDeviceMesh(meeting, layout.shape);
    ConnectedMesh hosts = ConnectTcpMesh(TcpMeetingOf(meeting), 1, layout.shape);
    if (!layout.on_device(rank)) return hosts;
    return StageMesh(std::move(hosts), {.device = rank, .now = now});
  }

  // What a member has, of the row and the column.
  Floats On(int rank, std::vector<float> values) const {
    return {GetParam().on_device(rank), std::move(values)};
  }

  void ExpectSums(int rank, Transport& group, const std::vector<int>& ranks) {
    for (const std::size_t length : {std::size_t{1}, std::size_t{1000}}) {
      Floats all = On(rank, OfRank(rank, length));
      EXPECT_EQ(group.StartAllReduceSum(all.span())->Wait().progress, Progress::kDone);
      EXPECT_TRUE(SameBits(all.values(), SumOf(ranks, length)));
      for (int root = 0; root < group.size(); ++root) {
        Floats buffer = On(rank, OfRank(rank, length));
        EXPECT_EQ(group.StartRootSum(buffer.span(), root)->Wait().progress, Progress::kDone);
        if (root != group.rank()) continue;
        EXPECT_TRUE(SameBits(buffer.values(), SumOf(ranks, length))) << "at " << root;
      }
    }
  }

  void ExpectCopies(int rank, Transport& group, const std::vector<int>& ranks) {
    constexpr std::size_t kLength = 777;
    std::vector<float> expected;
    for (const int other : ranks) {
      const std::vector<float> own = OfRank(other, kLength);
      expected.insert(expected.end(), own.begin(), own.end());
    }
    Floats own = On(rank, OfRank(rank, kLength));
    Floats all = On(rank, std::vector<float>(expected.size()));
    EXPECT_EQ(group.StartAllGather(own.span(), all.span())->Wait().progress, Progress::kDone);
    EXPECT_TRUE(SameBits(all.values(), expected));
    const int root = group.size() - 1;
    EXPECT_EQ(group.StartBroadcast(own.span(), root)->Wait().progress, Progress::kDone);
    EXPECT_TRUE(SameBits(own.values(), OfRank(ranks.back(), kLength)));
  }
};

TEST_P(DeviceMeshTest, EachGroupHasTheBitsOfTheSameGroupOnHosts) {
  const Layout& layout = GetParam();
  Run([&](int rank, ConnectedMesh& mesh) {
    const std::vector<std::pair<Transport*, std::vector<int>>> groups = {
        {mesh.groups.row.get(), RowOf(rank, layout.shape)},
        {mesh.groups.column.get(), ColumnOf(rank, layout.shape)},
        {mesh.groups.equal_places.get(), EqualPlacesOf(rank, layout.shape, layout.size())},
        {mesh.world.front().get(), AllOf(layout.size())}};
    for (const auto& [group, ranks] : groups) {
      SCOPED_TRACE(rank);
      ASSERT_EQ(group->size(), static_cast<int>(ranks.size()));
      EXPECT_EQ(ranks[static_cast<std::size_t>(group->rank())], rank);
      if (group->size() == 1) continue;
      ExpectSums(rank, *group, ranks);
      ExpectCopies(rank, *group, ranks);
    }
  });
}

TEST_P(DeviceMeshTest, WhatIsOfTheHostTravelsInTheSameGroups) {
  const Layout& layout = GetParam();
  Run([&](int rank, ConnectedMesh& mesh) {
    Transport& row = *mesh.groups.row;
    const std::vector<int> ranks = RowOf(rank, layout.shape);
    std::vector<float> buffer = OfRank(rank, 5);
    EXPECT_EQ(row.StartAllReduceSum(buffer)->Wait().progress, Progress::kDone);
    EXPECT_TRUE(SameBits(buffer, SumOf(ranks, 5)));
    const std::vector<float> own = {static_cast<float>(rank)};
    std::vector<float> all(ranks.size());
    EXPECT_EQ(row.StartAllGather(own, all)->Wait().progress, Progress::kDone);
    EXPECT_EQ(all, std::vector<float>(ranks.begin(), ranks.end()));
    EXPECT_EQ(row.StartBarrier()->Wait().progress, Progress::kDone);
  });
}

// As products do: neighbours start theirs in different orders.
TEST_P(DeviceMeshTest, RowAndColumnAreUnderWayAtOnce) {
  const Layout& layout = GetParam();
  Run([&](int rank, ConnectedMesh& mesh) {
    Floats of_row = On(rank, OfRank(rank, 500));
    Floats of_column = On(rank, OfRank(rank, 500));
    std::unique_ptr<Collective> row;
    std::unique_ptr<Collective> column;
    const bool row_first = PlaceOf(rank, layout.shape).row % 2 == 0;
    if (row_first) row = mesh.groups.row->StartBroadcast(of_row.span(), 0);
    const bool has_column = mesh.groups.column->size() > 1;
    if (has_column) column = mesh.groups.column->StartRootSum(of_column.span(), 0);
    if (!row_first) row = mesh.groups.row->StartBroadcast(of_row.span(), 0);
    EXPECT_EQ(row->Wait().progress, Progress::kDone);
    EXPECT_TRUE(SameBits(of_row.values(), OfRank(RowOf(rank, layout.shape).front(), 500)));
    if (!has_column) return;
    EXPECT_EQ(column->Wait().progress, Progress::kDone);
    if (mesh.groups.column->rank() > 0) return;
    EXPECT_TRUE(SameBits(of_column.values(), SumOf(ColumnOf(rank, layout.shape), 500)));
  });
}

// Parts of all replicas, then lanes of all members, in one buffer.
TEST_P(DeviceMeshTest, PartsAreSummedOverReplicasAndLanesOverAll) {
  constexpr std::size_t kParts = 300;
  constexpr std::size_t kLanes = 7;
  const Layout& layout = GetParam();
  Run([&](int rank, ConnectedMesh& mesh) {
    Floats buffer = On(rank, OfRank(rank, kParts + kLanes));
    ReplicaTransport transport(*mesh.world.front(), mesh.groups, layout.shape,
                               buffer.span().first(kParts));

    EXPECT_EQ(transport.StartAllReduceSum(buffer.span())->Wait().progress, Progress::kDone);

    std::vector<float> expected =
        SumOf(EqualPlacesOf(rank, layout.shape, layout.size()), kParts + kLanes);
    const std::vector<float> of_all = SumOf(AllOf(layout.size()), kParts + kLanes);
    std::copy(of_all.begin() + kParts, of_all.end(), expected.begin() + kParts);
    EXPECT_TRUE(SameBits(buffer.values(), expected)) << rank;
  });
}

// Who finds a group lost ends its others, as members do: so all learn of it, and nobody waits.
TEST_P(DeviceMeshTest, TheLossOfAMemberEndsTheCollectivesOfAll) {
  const Layout& layout = GetParam();
  EndpointBoard board(layout.size());
  std::vector<ConnectedMesh> meshes(static_cast<std::size_t>(layout.size()));
  OnEveryRank(layout.size(),
              [&](int rank) { meshes[static_cast<std::size_t>(rank)] = Connect(rank, board); });
  for (const ConnectedMesh& mesh : meshes) ASSERT_EQ(mesh.reason, "");
  OnEveryRankInTime(layout.size(), [&](int rank) {
    ConnectedMesh& mesh = meshes[static_cast<std::size_t>(rank)];
    if (rank == layout.size() - 1) {
      mesh = {};
      return;
    }
    Floats buffer = On(rank, OfRank(rank, 100));
    std::string reason;
    while (reason.empty()) {
      for (Transport* const group : {mesh.groups.row.get(), mesh.groups.column.get(),
                                     mesh.groups.equal_places.get(), mesh.world.front().get()}) {
        if (group->size() == 1 || !reason.empty()) continue;
        reason = group->StartAllReduceSum(buffer.span())->Wait().reason;
      }
    }
    mesh.groups.Abort(reason);
    mesh.world.front()->Abort(reason);
    EXPECT_EQ(mesh.world.front()->StartBarrier()->Wait().progress, Progress::kFailed);
    mesh = {};
  });
}

std::vector<Layout> Layouts() {
  std::vector<Layout> layouts;
  for (const Way way : {Way::kNccl, Way::kStaged, Way::kMixed}) {
    layouts.push_back({way, {1, 2}, 1});
    layouts.push_back({way, {1, 2}, 2});
    layouts.push_back({way, {2, 2}, 1});
    layouts.push_back({way, {2, 2}, 2});
  }
  layouts.push_back({Way::kNccl, {3, 3}, 1});
  return layouts;
}

INSTANTIATE_TEST_SUITE_P(Layouts, DeviceMeshTest, ::testing::ValuesIn(Layouts()),
                         [](const auto& test) { return NameOf(test.param); });

using DeviceMeshMeetingTest = NcclMembers;

TEST_F(DeviceMeshMeetingTest, AGroupThatWasGivenUpIsNotFormed) {
  const ConnectedMesh mesh =
      ConnectDeviceMesh({.rank = 1,
                         .size = 2,
                         .address = "127.0.0.1",
                         .device = 1,
                         .exchange = [](const std::string&) { return std::vector<std::string>(); },
                         .now = [this] { return clock_.Now(); }},
                        {1, 2});

  EXPECT_TRUE(mesh.world.empty());
  EXPECT_THAT(mesh.reason, HasSubstr("given up"));
}

// Of one of the groups that come behind the first: the others are told, and nobody waits for it.
TEST_F(DeviceMeshMeetingTest, AMemberWhoseCommunicatorCannotBeIsWaitedForByNobody) {
  EndpointBoard board(2);
  nccl_double::FailCall("ncclCommInitRankConfig", 3, ncclSystemError);
  std::vector<std::string> reasons(2);
  OnEveryRankInTime(2, [&](int rank) {
    const ConnectedMesh mesh = ConnectDeviceMesh(
        {.rank = rank,
         .size = 2,
         .address = "127.0.0.1",
         .device = rank,
         .exchange = [&board, rank](const std::string& own) { return board.Exchange(rank, own); },
         .now = [this] { return clock_.Now(); }},
        {1, 2});
    EXPECT_TRUE(mesh.world.empty());
    reasons[static_cast<std::size_t>(rank)] = mesh.reason;
  });
  EXPECT_NE(reasons[0], "");
  EXPECT_NE(reasons[1], "");
}

}  // namespace
}  // namespace tactus::collective
