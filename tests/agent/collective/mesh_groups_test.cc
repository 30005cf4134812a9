// Rows, columns and equal places as transports, in one process and over sockets.

#include "agent/collective/mesh_groups.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "tests/agent/collective/groups.h"

namespace tactus::collective {
namespace {

struct Layout {
  Kind kind = Kind::kInProcess;
  MeshShape shape = {};
  int replicas = 1;

  int size() const { return replicas * shape.devices(); }
};

std::string LayoutName(const ::testing::TestParamInfo<Layout>& test) {
  const Layout& layout = test.param;
  return NameOf({.kind = layout.kind, .size = layout.replicas}) + "of" +
         std::to_string(layout.shape.rows) + "x" + std::to_string(layout.shape.columns);
}

void PrintTo(const Layout& layout, std::ostream* out) {
  *out << layout.replicas << " of " << layout.shape.rows << " x " << layout.shape.columns;
}

std::vector<Layout> Layouts() {
  std::vector<Layout> layouts;
  for (const Kind kind : {Kind::kInProcess, Kind::kTcp, Kind::kTls}) {
    for (const MeshShape shape :
         {MeshShape{1, 1}, MeshShape{1, 3}, MeshShape{2, 2}, MeshShape{3, 3}}) {
      for (const int replicas : {1, 2}) layouts.push_back({kind, shape, replicas});
    }
  }
  return layouts;
}

class MeshGroupsTest : public ::testing::TestWithParam<Layout> {
 protected:
  using Body = std::function<void(int rank, MeshGroups& groups, Transport* world)>;

  // Connects all members and runs `body` for each on its own thread. No world in one process.
  void Run(const Body& body) const {
    const Layout& layout = GetParam();
    if (layout.kind == Kind::kInProcess) {
      std::vector<MeshGroups> groups =
          MakeInProcessMeshes(layout.size(), layout.shape, [] { return kTestNow; });
      OnEveryRank(layout.size(),
                  [&](int rank) { body(rank, groups[static_cast<std::size_t>(rank)], nullptr); });
      return;
    }
    const std::vector<TcpMeeting> meetings = MeetInMemory(layout.size(), layout.kind == Kind::kTls);
    OnEveryRank(layout.size(), [&](int rank) {
      ConnectedMesh connected =
          ConnectTcpMesh(meetings[static_cast<std::size_t>(rank)], 2, layout.shape);
      ASSERT_EQ(connected.reason, "");
      ASSERT_EQ(connected.world.size(), 2U);
      body(rank, connected.groups, connected.world.back().get());
    });
  }
};

// The sum of the ranks in a group, by that group.
float SumOfRanks(Transport& group, int rank) {
  std::vector<float> buffer(3, static_cast<float>(rank));
  EXPECT_EQ(group.StartAllReduceSum(buffer)->Wait().progress, Progress::kDone);
  return buffer.back();
}

float Sum(const std::vector<int>& ranks) {
  float sum = 0;
  for (const int rank : ranks) sum += static_cast<float>(rank);
  return sum;
}

TEST_P(MeshGroupsTest, EachGroupIsOfThoseWhoShareIt) {
  const Layout& layout = GetParam();
  Run([&](int rank, MeshGroups& groups, Transport* world) {
    const Place place = PlaceOf(rank, layout.shape);
    EXPECT_EQ(groups.row->rank(), place.column);
    EXPECT_EQ(groups.row->size(), layout.shape.columns);
    EXPECT_EQ(groups.column->rank(), place.row);
    EXPECT_EQ(groups.column->size(), layout.shape.rows);
    EXPECT_EQ(groups.equal_places->rank(), place.replica);
    EXPECT_EQ(groups.equal_places->size(), layout.replicas);
    EXPECT_EQ(SumOfRanks(*groups.row, rank), Sum(RowOf(rank, layout.shape)));
    EXPECT_EQ(SumOfRanks(*groups.column, rank), Sum(ColumnOf(rank, layout.shape)));
    EXPECT_EQ(SumOfRanks(*groups.equal_places, rank),
              Sum(EqualPlacesOf(rank, layout.shape, layout.size())));
    if (world != nullptr) {
      EXPECT_EQ(world->size(), layout.size());
      EXPECT_EQ(SumOfRanks(*world, 1), static_cast<float>(layout.size()));
    }
  });
}

TEST_P(MeshGroupsTest, CollectivesOfDifferentGroupsAreUnderWayAtOnce) {
  Run([&](int rank, MeshGroups& groups, Transport* /*world*/) {
    // Started in different orders by neighbours: one group does not wait for another.
    std::vector<float> of_row(50'000, 1.0F);
    std::vector<float> of_column(50'000, 2.0F);
    const bool row_first = PlaceOf(rank, GetParam().shape).row % 2 == 0;
    std::unique_ptr<Collective> row;
    if (row_first) row = groups.row->StartAllReduceSum(of_row);
    const std::unique_ptr<Collective> column = groups.column->StartAllReduceSum(of_column);
    if (!row_first) row = groups.row->StartAllReduceSum(of_row);
    EXPECT_EQ(column->Wait().progress, Progress::kDone);
    EXPECT_EQ(row->Wait().progress, Progress::kDone);
    EXPECT_EQ(of_row.back(), static_cast<float>(GetParam().shape.columns));
    EXPECT_EQ(of_column.back(), 2.0F * static_cast<float>(GetParam().shape.rows));
  });
}

TEST_P(MeshGroupsTest, WhoLeavesEndsEveryGroupOfItsOwn) {
  const Layout& layout = GetParam();
  if (layout.shape.devices() == 1) return;  // nobody is left
  Run([&](int rank, MeshGroups& groups, Transport* /*world*/) {
    const std::vector<int> row = RowOf(0, layout.shape);
    if (rank == 0) {
      groups.Abort("enough");
    } else if (rank < static_cast<int>(row.size())) {
      std::vector<float> buffer(10, 1.0F);
      EXPECT_EQ(groups.row->StartAllReduceSum(buffer)->Wait().progress, Progress::kFailed);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Layouts, MeshGroupsTest, ::testing::ValuesIn(Layouts()), LayoutName);

}  // namespace
}  // namespace tactus::collective
