// Adasum between replicas whose members have parts of the vectors: what workers come to that hold
// all of them, on all members alike.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "agent/collective/adasum.h"
#include "agent/collective/mesh_groups.h"
#include "agent/collective/places.h"
#include "cuda/device.h"
#include "gtest/gtest.h"
#include "tests/agent/collective/adasum_twin.h"
#include "tests/agent/collective/groups.h"

namespace tactus::collective {
namespace {

// What a member has of each segment of the whole vectors.
struct Part {
  std::size_t offset = 0;  // from the segment's start
  std::size_t length = 0;
  bool counts = true;
};

// A segment is cut up over all places, as evenly as it goes, but for the last: of a line each
// member has all of it, of a mesh each its column's part, with a copy in each row.
std::vector<Part> PartsAt(const Place& place, const MeshShape& shape,
                          const cuda::SegmentTable& segments) {
  std::vector<Part> parts;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const bool copied = i + 1 == segments.size();
    const bool line = shape.rows == 1;
    const int own_cut = !copied ? place.row * shape.columns + place.column
                        : line  ? 0
                                : place.column;
    const int all_cuts = !copied ? shape.devices() : line ? 1 : shape.columns;
    const auto own = static_cast<std::size_t>(own_cut);
    const auto cuts = static_cast<std::size_t>(all_cuts);
    const auto edge = [&](std::size_t cut) { return segments[i].length * cut / cuts; };
    parts.push_back({.offset = edge(own),
                     .length = edge(own + 1) - edge(own),
                     .counts = !copied || (line ? place.column : place.row) == 0});
  }
  return parts;
}

struct Outcome {
  Completion completion{};
  std::vector<float> vector{};  // the member's part
  std::vector<float> lanes{};
  double norm2_sum = 0;
  std::size_t replicas = 0;
  int sums = 0;  // over the replica
};

// sums <- those of the group, in rank order.
Completion AddOver(Transport& group, std::span<double> sums) {
  constexpr std::size_t kFloats = sizeof(double) / sizeof(float);
  std::vector<float> own(kFloats * sums.size());
  std::vector<float> all(own.size() * static_cast<std::size_t>(group.size()));
  std::memcpy(own.data(), sums.data(), sums.size_bytes());
  const Completion completion = group.StartAllGather(own, all)->Wait();
  std::ranges::fill(sums, 0);
  for (std::size_t at = 0; at < all.size(); at += own.size()) {
    std::vector<double> theirs(sums.size());
    std::memcpy(theirs.data(), all.data() + at, sums.size_bytes());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += theirs[i];
  }
  return completion;
}

// Replicas of meshes, of which each reduces one of the whole vectors.
class PartsGroup {
 public:
  PartsGroup(AdasumCase whole, const MeshShape& shape)
      : whole_(std::move(whole)),
        shape_(shape),
        size_(static_cast<int>(whole_.vectors.size()) * shape.devices()),
        meshes_(MakeInProcessMeshes(size_, shape, [] { return kTestNow; })),
        outcomes_(static_cast<std::size_t>(size_)) {}

  std::vector<Part> PartsOf(int rank) const {
    return PartsAt(PlaceOf(rank, shape_), shape_, whole_.segments);
  }
  int size() const { return size_; }

  // loses: does not hear what its replica's sums came to, by their number, and gives up.
  std::vector<Outcome> Reduce(int loser = -1, int loses = -1) {
    OnEveryRank(size_, [&](int rank) { ReduceOn(rank, rank == loser ? loses : -1); });
    return outcomes_;
  }

  // Of all members, put together; each number the same wherever it is.
  std::vector<float> Whole() const {
    std::vector<std::optional<float>> whole(whole_.vectors.front().size());
    for (int rank = 0; rank < size_; ++rank) {
      std::size_t here = 0;
      const std::vector<Part> parts = PartsOf(rank);
      for (std::size_t i = 0; i < parts.size(); ++i) {
        for (std::size_t k = 0; k < parts[i].length; ++k) {
          std::optional<float>& number = whole[whole_.segments[i].offset + parts[i].offset + k];
          const float found = outcomes_[static_cast<std::size_t>(rank)].vector[here++];
          if (!number) number = found;
          EXPECT_EQ(*number, found) << "rank " << rank << ", segment " << i;
        }
      }
    }
    std::vector<float> numbers;
    for (const std::optional<float>& number : whole) numbers.push_back(number.value());
    return numbers;
  }

 private:
  void ReduceOn(int rank, int loses) {
    const MeshGroups& groups = meshes_[static_cast<std::size_t>(rank)];
    Outcome& outcome = outcomes_[static_cast<std::size_t>(rank)];
    const auto replica = static_cast<std::size_t>(PlaceOf(rank, shape_).replica);
    cuda::SegmentTable segments;
    ReplicaSums sums{.add = [&](std::span<double> own) {
      Completion completion = AddOver(*groups.row, own);
      if (completion.progress == Progress::kDone) completion = AddOver(*groups.column, own);
      if (outcome.sums++ != loses) return completion;
      return Completion{.progress = Progress::kFailed, .reason = "the test"};
    }};
    outcome.vector.clear();
    const std::vector<Part> parts = PartsOf(rank);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      segments.push_back({.offset = outcome.vector.size(), .length = parts[i].length});
      sums.counts.push_back(parts[i].counts);
      const auto begin = whole_.vectors[replica].begin() +
                         static_cast<std::ptrdiff_t>(whole_.segments[i].offset + parts[i].offset);
      outcome.vector.insert(outcome.vector.end(), begin,
                            begin + static_cast<std::ptrdiff_t>(parts[i].length));
    }
    outcome.lanes = {1, static_cast<float>(rank)};
    const std::unique_ptr<cuda::Device> device = cuda::MakeHostDevice("cpu:0");
    AdasumReduction reduction(*groups.equal_places, *device, segments, {}, sums);
    reduction.Start(outcome.vector, outcome.lanes);
    outcome.completion = reduction.Wait();
    if (outcome.completion.progress == Progress::kFailed) groups.Abort("rank gave up");
    outcome.norm2_sum = reduction.norm2_sum();
    outcome.replicas = reduction.parts();
  }

  const AdasumCase whole_;
  const MeshShape shape_;
  const int size_;
  const std::vector<MeshGroups> meshes_;
  std::vector<Outcome> outcomes_;
};

AdasumCase RandomCase(std::size_t replicas, const std::vector<std::size_t>& lengths) {
  AdasumCase test{.segments = SegmentsOf(lengths)};
  for (std::size_t i = 0; i < replicas; ++i) {
    test.vectors.push_back(
        RandomValues(test.segments.back().offset + test.segments.back().length, i));
  }
  return test;
}

std::string NameOf(const MeshShape& shape) {
  return std::to_string(shape.rows) + "x" + std::to_string(shape.columns);
}

class AdasumPartsTest : public testing::TestWithParam<std::tuple<MeshShape, std::size_t>> {
 protected:
  static MeshShape shape() { return std::get<0>(GetParam()); }
  static std::size_t replicas() { return std::get<1>(GetParam()); }
};

TEST_P(AdasumPartsTest, AreReducedAsTheWholeIs) {
  const AdasumCase test = RandomCase(replicas(), {3, 1000, 1, 700, 260});
  PartsGroup group(test, shape());

  const std::vector<Outcome> outcomes = group.Reduce();

  const std::vector<float> found = group.Whole();
  const std::vector<float> expected = TwinAdasum(test);
  double norm2_sum = 0;
  for (const cuda::Segment& segment : test.segments) {
    double distance2 = 0;
    for (std::size_t i = segment.offset; i < segment.offset + segment.length; ++i) {
      const double apart = double{found[i]} - double{expected[i]};
      distance2 += apart * apart;
    }
    EXPECT_LE(std::sqrt(distance2), ToleranceIn(segment, test.vectors));
    for (const std::vector<float>& vector : test.vectors) {
      norm2_sum += Norm2In(segment, vector);
    }
  }
  const int members = group.size();
  // A replica beyond the largest power of two folds in first.
  const std::vector<std::vector<int>> levels = {{0}, {1, 1}, {2, 1, 1}, {2, 2, 2, 2}};
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    const Outcome& outcome = outcomes[rank];
    EXPECT_EQ(outcome.completion.progress, Progress::kDone);
    EXPECT_EQ(outcome.lanes[0], static_cast<float>(members));
    EXPECT_EQ(outcome.lanes[1], static_cast<float>(members * (members - 1) / 2));
    EXPECT_EQ(outcome.norm2_sum, outcomes[0].norm2_sum);
    EXPECT_NEAR(outcome.norm2_sum, norm2_sum, 1e-9 * norm2_sum) << "each element counts once";
    EXPECT_EQ(outcome.replicas, replicas());
    const std::size_t replica = rank / static_cast<std::size_t>(shape().devices());
    EXPECT_EQ(outcome.sums, levels[replicas() - 1][replica] + 1) << "and one of the lanes";
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, AdasumPartsTest,
                         testing::Combine(testing::Values(MeshShape{1, 2}, MeshShape{2, 2},
                                                          MeshShape{1, 3}),
                                          testing::Values(1, 2, 3, 4)),
                         [](const auto& test) {
                           return NameOf(std::get<0>(test.param)) + "By" +
                                  std::to_string(std::get<1>(test.param));
                         });

// ---- The specification's vectors

class AdasumPartsVectorsTest : public testing::TestWithParam<MeshShape> {
 protected:
  // Nine digits are given; float32 has seven and rounds at each level.
  static void ExpectNear(const AdasumCase& test, const std::vector<double>& expected) {
    PartsGroup group(test, GetParam());
    group.Reduce();
    const std::vector<float> found = group.Whole();
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 2e-6) << i;
  }
};

const std::vector<float> kG0 = {1, 2, 3, 4, 5};
const std::vector<float> kG1 = {2, 0, -1, 1, 1};
const std::vector<float> kG2 = {-1, 1, 0, 2, -2};
const std::vector<float> kG3 = {.5, .5, 1, -1, 3};

TEST_P(AdasumPartsVectorsTest, V1PairOfTwoVectors) {
  ExpectNear({.vectors = {{1, 2, 3}, {4, -5, 6}}, .segments = SegmentsOf({3})},
             {4.25974026, -3.46753247, 7.24675325});
}

TEST_P(AdasumPartsVectorsTest, V2FourReplicasWithTwoLayers) {
  ExpectNear({.vectors = {kG0, kG1, kG2, kG3}, .segments = SegmentsOf({3, 2})},
             {2.68439814, 2.62946164, 2.32090217, 1.84434221, 2.49626302});
}

TEST_P(AdasumPartsVectorsTest, V2FourReplicasAsOneLayer) {
  ExpectNear({.vectors = {kG0, kG1, kG2, kG3}, .segments = SegmentsOf({5})},
             {1.40098494, 1.80905854, 2.13530726, 3.63993391, 4.38900062});
}

TEST_P(AdasumPartsVectorsTest, V2AnotherOrderOfReplicas) {
  ExpectNear({.vectors = {kG0, kG2, kG1, kG3}, .segments = SegmentsOf({3, 2})},
             {2.34082219, 2.94537357, 2.71888807, 5.64057679, 4.85191987});
}

INSTANTIATE_TEST_SUITE_P(Shapes, AdasumPartsVectorsTest,
                         testing::Values(MeshShape{1, 2}, MeshShape{2, 2}),
                         [](const auto& shape) { return NameOf(shape.param); });

// ---- Losses

// Whoever does not hear of a sum fails with its reason, and so does, in the end, who needs it.
TEST(AdasumPartsLossTest, AMemberThatLosesASumFailsAndNobodyWaitsForEver) {
  const AdasumCase test = RandomCase(4, {50, 20});
  for (int sum = 0; sum < 3; ++sum) {
    PartsGroup group(test, {2, 2});

    const std::vector<Outcome> outcomes = group.Reduce(5, sum);

    EXPECT_EQ(outcomes[5].completion.progress, Progress::kFailed);
    EXPECT_EQ(outcomes[5].completion.reason, "the test");
    EXPECT_EQ(outcomes[5].sums, sum + 1) << "it asks for no other";
  }
}

TEST(AdasumPartsDeathTest, ReplicasAreNodesOfTheirOwn) {
  const auto meshes = MakeInProcessMeshes(2, {1, 2}, [] { return kTestNow; });
  const std::unique_ptr<cuda::Device> device = cuda::MakeHostDevice("cpu:0");
  const ReplicaSums sums{.counts = {true}, .add = [](std::span<double>) { return Completion(); }};

  EXPECT_DEATH(AdasumReduction(*meshes[0].equal_places, *device, SegmentsOf({4}), {0}, sums),
               "check failed");
}

}  // namespace
}  // namespace tactus::collective
