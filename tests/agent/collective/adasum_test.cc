// Adasum over transports: the published numbers, edges, failures.

#include "agent/collective/adasum.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "agent/collective/in_process.h"
#include "cuda/device.h"
#include "gtest/gtest.h"
#include "tests/agent/collective/adasum_twin.h"
#include "tests/agent/collective/groups.h"

namespace tactus::collective {
namespace {

// The vectors that the numbers below are of: two layers, of three and of two elements.
const std::vector<float> kG0 = {1, 2, 3, 4, 5};
const std::vector<float> kG1 = {2, 0, -1, 1, 1};
const std::vector<float> kG2 = {-1, 1, 0, 2, -2};
const std::vector<float> kG3 = {.5, .5, 1, -1, 3};
const std::vector<float> kG4 = {0, 1, 0, 1, 0};
const std::vector<float> kG5 = {1, 1, 1, 1, 1};

AdasumCase TwoLayers(Vectors vectors, std::vector<std::uint32_t> nodes = {}) {
  return {.vectors = std::move(vectors), .segments = SegmentsOf({3, 2}), .nodes = std::move(nodes)};
}

AdasumCase OneLayer(Vectors vectors) {
  const std::size_t length = vectors.front().size();
  return {.vectors = std::move(vectors), .segments = SegmentsOf({length})};
}

// Nine digits are given; float32 has seven and rounds at each level.
void ExpectNear(const std::vector<float>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(actual[i]), expected[i], 2e-6) << i;
  }
}

TEST(AdasumPaperTest, V1PairOfTwoVectors) {
  const std::vector<float> result = AgreedAdasum(OneLayer({{1, 2, 3}, {4, -5, 6}}));

  ExpectNear(result, {4.25974026, -3.46753247, 7.24675325});
  EXPECT_NEAR(Norm2In(SegmentsOf({3})[0], result), 82.6846011, 2e-5);
}

TEST(AdasumPaperTest, V2FourRanksWithTwoLayers) {
  const AdasumCase test = TwoLayers({kG0, kG1, kG2, kG3});

  const std::vector<float> result = AgreedAdasum(test);

  ExpectNear(result, {2.68439814, 2.62946164, 2.32090217, 1.84434221, 2.49626302});
  const std::vector<double> orthogonality = {0.866962169, 0.15791684};
  for (const std::size_t layer : {0, 1}) {
    double norms2 = 0;
    for (const std::vector<float>& g : test.vectors) norms2 += Norm2In(test.segments[layer], g);
    EXPECT_NEAR(Norm2In(test.segments[layer], result) / norms2, orthogonality[layer], 1e-6);
  }
}

TEST(AdasumPaperTest, V2FourRanksAsOneLayer) {
  ExpectNear(AgreedAdasum(OneLayer({kG0, kG1, kG2, kG3})),
             {1.40098494, 1.80905854, 2.13530726, 3.63993391, 4.38900062});
}

TEST(AdasumPaperTest, V2AnotherOrderOfRanksGivesAnotherResult) {
  ExpectNear(AgreedAdasum(TwoLayers({kG0, kG2, kG1, kG3})),
             {2.34082219, 2.94537357, 2.71888807, 5.64057679, 4.85191987});
}

// Keeps what is sent in exchanges, and where messages lay.
class RecordingTransport : public Transport {
 public:
  explicit RecordingTransport(std::unique_ptr<Transport> inner) : inner_(std::move(inner)) {}
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::unique_ptr<Collective> Start(const Operation& operation) override {
    if (operation.kind == Operation::Kind::kExchange) {
      sent_.emplace_back(operation.outgoing.begin(), operation.outgoing.end());
      places_.insert(places_.end(), {operation.outgoing, operation.incoming});
    }
    return inner_->Start(operation);
  }
  void Abort(const std::string& reason) override { inner_->Abort(reason); }

  // The numbers of one message, as doubles.
  template <typename Number>
  std::vector<double> Sent(std::size_t message) const {
    const std::vector<std::byte>& bytes = sent_[message];
    std::vector<Number> numbers(bytes.size() / sizeof(Number));
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return {numbers.begin(), numbers.end()};
  }

  // Memory that was sent from or received into.
  const std::vector<std::span<const std::byte>>& places() const { return places_; }

 private:
  const std::unique_ptr<Transport> inner_;
  std::vector<std::vector<std::byte>> sent_;
  std::vector<std::span<const std::byte>> places_;
};

// A group of recording transports.
struct RecordedGroup {
  std::vector<std::unique_ptr<Transport>> transports;
  std::vector<const RecordingTransport*> records;  // of the transports
};

RecordedGroup MakeRecordedGroup(int size) {
  RecordedGroup group;
  for (std::unique_ptr<Transport>& transport : MakeInProcessGroup(size, [] { return kTestNow; })) {
    auto recording = std::make_unique<RecordingTransport>(std::move(transport));
    group.records.push_back(recording.get());
    group.transports.push_back(std::move(recording));
  }
  return group;
}

void ExpectSums(const std::vector<double>& row, const std::vector<double>& expected) {
  ASSERT_GE(row.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(row[i], expected[i], 2e-6) << i;
}

// Messages of a member: a slice and its sums at the first level; a slice, the sums and then those
// of the pair at the second; slices on the way back. Slices and partial sums are the table's.
TEST(AdasumPaperTest, V2SlicesAndPartialSumsOfEachLevel) {
  auto [transports, records] = MakeRecordedGroup(4);
  AdasumGroup group(TwoLayers({kG0, kG1, kG2, kG3}), std::move(transports));
  group.Start();
  group.Finish();

  EXPECT_EQ(records[0]->Sent<float>(0), (std::vector<double>{3, 4, 5}));
  ExpectSums(records[0]->Sent<double>(1), {2, 5, 4, 0, 0, 0});
  ExpectSums(records[1]->Sent<double>(1), {-3, 9, 1, 9, 41, 2});
  ExpectSums(records[2]->Sent<double>(1), {0, 2, .5, 0, 0, 0});
  ExpectSums(records[3]->Sent<double>(1), {0, 0, 1, -8, 8, 10});
  ExpectSums(records[0]->Sent<float>(2), {2.07142857});
  ExpectSums(records[1]->Sent<float>(2), {2.31097561, 3.20121951});
  ExpectSums(records[2]->Sent<float>(2), {-0.5});
  ExpectSums(records[3]->Sent<float>(2), {1});
  ExpectSums(records[0]->Sent<double>(3), {-1.61785714, 10.4698469, .25, 0, 0, 0});
  ExpectSums(records[1]->Sent<double>(3), {2.00714286, 4.02862245, 1, 0, 0, 0});
  ExpectSums(records[2]->Sent<double>(3), {3.10714286, 4.29081633, 2.25, 0, 0, 0});
  ExpectSums(records[3]->Sent<double>(3), {0, 0, 0, 7.53902439, 15.5884146, 4});
  ExpectSums(records[0]->Sent<float>(5), {2.68439814});
  ExpectSums(records[1]->Sent<float>(5), {2.32090217});
  ExpectSums(records[2]->Sent<float>(5), {2.62946164});
  ExpectSums(records[3]->Sent<float>(5), {1.84434221, 2.49626302});
}

TEST(AdasumPaperTest, V3ThreeRanks) {
  ExpectNear(AgreedAdasum(TwoLayers({kG0, kG2})),
             {0.214285714, 2.67857143, 2.89285714, 6.34756098, 2.87195122});
  ExpectNear(AgreedAdasum(TwoLayers({kG0, kG1, kG2})),
             {2.72407953, 2.89027982, 1.87507364, 4.43986199, 1.2943271});
}

TEST(AdasumPaperTest, V3FiveRanks) {
  ExpectNear(AgreedAdasum(TwoLayers({kG0, kG1, kG2, kG3, kG4})),
             {2.58182281, 2.58236861, 2.18837397, 1.49671895, 2.71066867});
}

TEST(AdasumPaperTest, V3SixRanks) {
  ExpectNear(AgreedAdasum(TwoLayers({kG0, kG1, kG2, kG3, kG4, kG5})),
             {2.23108204, 2.52922719, 2.42326519, 1.49671895, 2.71066867});
}

TEST(AdasumPaperTest, V4TwoNodesOfTwo) {
  const std::vector<double> expected = {1.22058824, 1.27205882, 1.14705882, 1.39959016, 1.8545082};
  ExpectNear(AgreedAdasum(TwoLayers({kG0, kG1, kG2, kG3}, {0, 0, 1, 1})), expected);
  ExpectNear(AgreedAdasum(TwoLayers({kG0, kG2, kG1, kG3}, {7, 3, 7, 3})), expected);
}

// The vector of 1e-200 is none of float32's: cuda/ops' tests have it.
TEST(AdasumPaperTest, V5ZeroOppositeAndSkewVectors) {
  EXPECT_EQ(AgreedAdasum(OneLayer({{0, 0}, {3, 4}})), (std::vector<float>{3, 4}));
  EXPECT_EQ(AgreedAdasum(OneLayer({{1, -2}, {-1, 2}})), (std::vector<float>{0, 0}));
  EXPECT_EQ(AgreedAdasum(OneLayer({{1, -2}, {-2, 4}})), (std::vector<float>{-0.5, 1}));
  EXPECT_EQ(AgreedAdasum(OneLayer({{1, 0}, {1, 1}})), (std::vector<float>{1.25, 0.75}));
}

// Brings one reduction of the device's own memory to its end, and returns where all longer messages
// lay.
std::vector<std::span<const std::byte>> PlacesOfLongMessages(std::size_t length,
                                                             std::uint32_t nodes,
                                                             std::uint32_t node_size) {
  constexpr std::size_t kLongBytes = 256;
  const std::unique_ptr<cuda::Device> device = cuda::MakeHostDevice("cpu:0");
  const auto [transports, records] = MakeRecordedGroup(static_cast<int>(nodes * node_size));
  std::vector<std::uint32_t> node_of;
  for (std::uint32_t rank = 0; rank < nodes * node_size; ++rank)
    node_of.push_back(rank / node_size);
  std::vector<cuda::Buffer> buffers;
  std::vector<std::unique_ptr<AdasumReduction>> reductions;
  for (const std::unique_ptr<Transport>& transport : transports) {
    buffers.push_back(device->Allocate(length));
    reductions.push_back(
        std::make_unique<AdasumReduction>(*transport, *device, SegmentsOf({length}), node_of));
    reductions.back()->Start(buffers.back().span(), {});
  }
  for (bool running = true; running;) {
    running = false;
    for (const auto& reduction : reductions) running |= reduction->Poll() == Progress::kRunning;
  }
  for (const auto& reduction : reductions) reduction->Wait();

  std::vector<std::span<const std::byte>> places;
  for (const RecordingTransport* const record : records) {
    for (const std::span<const std::byte> place : record->places()) {
      if (place.size() >= kLongBytes) places.push_back(place);
    }
  }
  return places;
}

// A slice in another phase than its inbox could not be combined by whole packs.
TEST(AdasumTest, LongSlicesBeginWherePacksDo) {
  constexpr std::size_t kOddLength = 5003;
  constexpr std::uintptr_t kAlignment = 64;
  for (const std::uint32_t node_size : {1, 3}) {
    const auto places = PlacesOfLongMessages(kOddLength, 8, node_size);

    EXPECT_GT(places.size(), 50u);
    for (const std::span<const std::byte> place : places) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(place.data()) % kAlignment, 0u)
          << place.size() << " bytes, nodes of " << node_size;
    }
  }
}

TEST(AdasumTest, OneMemberKeepsItsVectorAndLanes) {
  AdasumCase test = TwoLayers({kG0});
  test.lanes = {{2.5, -1}};

  const AdasumOutcome outcome = ReduceByAdasum(test).front();

  EXPECT_EQ(outcome.vector, kG0);
  EXPECT_EQ(outcome.lanes, test.lanes.front());
  EXPECT_EQ(outcome.norm2_sum, 55);
}

// Of the nodes' means, which go up the tree.
double SumOfNorms(const Vectors& all, const std::vector<std::uint32_t>& nodes) {
  std::map<std::uint32_t, std::vector<std::size_t>> members;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    members[nodes.empty() ? static_cast<std::uint32_t>(rank) : nodes[rank]].push_back(rank);
  }
  double sum = 0;
  for (const auto& [node, ranks] : members) {
    for (std::size_t i = 0; i < all[0].size(); ++i) {
      double mean = 0;
      for (const std::size_t rank : ranks) mean += all[rank][i] / static_cast<double>(ranks.size());
      sum += mean * mean;
    }
  }
  return sum;
}

TEST(AdasumTest, LanesAreSummedOverAllMembersAndSquaredNormsOverNodes) {
  const Vectors all = {kG0, kG1, kG2, kG3, kG4, kG5};
  const std::vector<std::vector<std::uint32_t>> placings = {
      {}, {0, 0, 1, 1, 2, 2}, {0, 1, 2, 0, 1, 2}, {0, 0, 0, 1, 1, 1}, {4, 4, 4, 4, 4, 4}};
  for (const std::vector<std::uint32_t>& nodes : placings) {
    AdasumCase test = TwoLayers(all, nodes);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      test.lanes.push_back({static_cast<float>(rank), 16777216.0f});
    }
    for (const AdasumOutcome& outcome : ReduceByAdasum(test)) {
      EXPECT_EQ(outcome.lanes, (std::vector<float>{15, 6 * 16777216.0f}));
      EXPECT_NEAR(outcome.norm2_sum, SumOfNorms(all, nodes), 1e-5);
    }
  }
}

TEST(AdasumTest, OneNodeAloneAverages) {
  ExpectNear(AgreedAdasum(TwoLayers({kG0, kG1, kG2}, {5, 5, 5})),
             {2.0 / 3, 1, 2.0 / 3, 7.0 / 3, 4.0 / 3});
}

TEST(AdasumTest, NodesOfUnequalSizeAreNone) {
  EXPECT_EQ(AgreedAdasum(TwoLayers({kG0, kG1, kG2}, {0, 0, 1})),
            AgreedAdasum(TwoLayers({kG0, kG1, kG2})));
}

TEST(AdasumTest, BytesAreThoseOfVectorAndLanes) {
  AdasumCase test = TwoLayers({kG0, kG1});
  test.lanes = {{1}, {2}};
  AdasumGroup group(test);
  group.Start();
  group.Finish();

  EXPECT_EQ(group.reduction(1).bytes(), 24u);
}

TEST(AdasumTest, AReductionFollowsTheOther) {
  AdasumGroup group(TwoLayers({kG0, kG1, kG2}));
  group.Start();
  const std::vector<float> first = group.Finish().front().vector;
  group.Start();
  const std::vector<AdasumOutcome> second = group.Finish();

  // Equal vectors now, which stay.
  for (const AdasumOutcome& outcome : second) {
    for (std::size_t i = 0; i < first.size(); ++i) {
      EXPECT_FLOAT_EQ(outcome.vector[i], first[i]);
    }
  }
}

TEST(AdasumTest, EveryMemberLearnsOfAnyVectorThatIsNotFinite) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    for (std::size_t sick = 0; sick < 6; ++sick) {
      for (const std::vector<std::uint32_t>& nodes :
           {std::vector<std::uint32_t>(), std::vector<std::uint32_t>{0, 0, 1, 1, 2, 2},
            std::vector<std::uint32_t>{0, 0, 0, 0, 0, 0}}) {
        AdasumCase test = TwoLayers({kG0, kG1, kG2, kG3, kG4, kG5}, nodes);
        test.vectors[sick][4] = bad;
        for (const AdasumOutcome& outcome : ReduceByAdasum(test)) {
          EXPECT_TRUE(outcome.nonfinite) << "rank " << sick << " brought " << bad;
        }
        test.vectors[sick][4] = 1;
        for (const AdasumOutcome& outcome : ReduceByAdasum(test)) EXPECT_FALSE(outcome.nonfinite);
      }
    }
  }
}

// The two at the bottom are orthogonal, and their sum is too long for float32.
TEST(AdasumTest, EveryMemberLearnsOfAnOverflowOnTheWay) {
  for (const std::size_t size : {3, 4, 5}) {
    Vectors vectors(size, {1, 1});
    vectors[0] = {3e38f, 3e38f};
    vectors[size == 4 ? 1 : size == 3 ? 2 : 4] = {3e38f, -3e38f};
    for (const AdasumOutcome& outcome : ReduceByAdasum(OneLayer(vectors))) {
      EXPECT_TRUE(outcome.nonfinite) << size << " members";
    }
  }
}

TEST(AdasumTest, AnOverflowInTheResultIsInAllMembersResults) {
  for (const AdasumOutcome& outcome : ReduceByAdasum(OneLayer({{3e38f, 3e38f}, {3e38f, -3e38f}}))) {
    EXPECT_TRUE(std::isinf(outcome.vector[0]));
  }
}

TEST(AdasumTest, AMemberThatDiesAtAnyMomentFailsWhoIsNotDoneWithAReason) {
  int failures = 0;
  bool running = true;
  for (int polls = 0; running; ++polls) {
    AdasumGroup group(TwoLayers({kG0, kG1, kG2, kG3, kG4}));
    group.Start();
    for (int i = 0; i < polls; ++i) running = group.PollAll();
    group.transport(3).Abort("died");

    for (std::size_t rank = 0; rank < 5; ++rank) {
      const Progress before = group.reduction(rank).Poll();
      const Completion completion = group.reduction(rank).Wait();
      EXPECT_EQ(completion.progress, before);
      EXPECT_EQ(completion.reason, before == Progress::kDone ? "" : "rank 3: died");
      if (before == Progress::kFailed) ++failures;
    }
  }
  EXPECT_GT(failures, 20);  // of five members at a number of moments
}

// Four members, each in its own thread.
class AdasumOverTcpTest : public ::testing::Test {
 protected:
  static constexpr int kSize = 4;

  AdasumOverTcpTest() : members_(MakeGroup({.kind = Kind::kTcp, .size = kSize})) {
    for (std::uint64_t rank = 0; rank < kSize; ++rank) {
      test_.vectors.push_back(RandomValues(300'007, rank));
    }
    test_.segments = SegmentsOf({1, 200'000, 5, 100'001});
  }

  std::vector<std::unique_ptr<Transport>> members_;
  AdasumCase test_;
};

TEST_F(AdasumOverTcpTest, GivesTheSameBitsAsWithinTheProcess) {
  const std::vector<float> expected = AgreedAdasum(test_);
  for (int round = 0; round < 3; ++round) {
    OnEveryRank(kSize, [&](int rank) {
      const auto index = static_cast<std::size_t>(rank);
      const std::unique_ptr<cuda::Device> device = cuda::MakeHostDevice("cpu:0");
      AdasumReduction reduction(*members_[index], *device, test_.segments, {});
      std::vector<float> vector = test_.vectors[index];
      std::vector<float> lanes = {static_cast<float>(rank)};
      reduction.Start(vector, lanes);
      const Completion completion = reduction.Wait();
      EXPECT_EQ(completion.progress, Progress::kDone) << completion.reason;
      EXPECT_TRUE(SameBits(vector, expected));
      EXPECT_EQ(lanes.front(), 6.0f);
    });
  }
}

TEST_F(AdasumOverTcpTest, AMemberThatDiesMidwayFailsTheOthersWithAReason) {
  OnEveryRank(kSize, [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    const std::unique_ptr<cuda::Device> device = cuda::MakeHostDevice("cpu:0");
    auto reduction = std::make_unique<AdasumReduction>(*members_[index], *device, test_.segments,
                                                       std::vector<std::uint32_t>());
    std::vector<float> vector = test_.vectors[index];
    reduction->Start(vector, {});
    if (rank == 2) {
      // Its first exchange is done or fails; there is no second one.
      reduction.reset();
      members_[index].reset();
      return;
    }
    const Completion completion = reduction->Wait();
    EXPECT_EQ(completion.progress, Progress::kFailed);
    EXPECT_NE(completion.reason, "");
  });
}

}  // namespace
}  // namespace tactus::collective
