// Encodings between replicas that are meshes: those who have the same part talk about it, copies of
// a replica's members stay copies, and what is left out is each place's own.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "agent/collective/in_process.h"
#include "agent/collective/replicas.h"
#include "agent/engine/residual_talks.h"
#include "base/rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/mesh_task.h"

namespace tactus::engine::mesh_task {
namespace {

using policies::Encoding;
using ::testing::Each;

constexpr Encoding kAll[] = {Encoding::kFloat16, Encoding::kBfloat16, Encoding::kDq,
                             Encoding::kSketch, Encoding::kAdacomp};

bool LeavesRest(Encoding kind) {
  return policies::RowOf(kind).deviation == policies::Deviation::kResidual;
}

std::string WordOf(const MeshShape& shape) {
  return std::to_string(shape.rows) + "x" + std::to_string(shape.columns);
}

// ---- One sum after another

constexpr std::size_t kReplicas = 3;
constexpr std::size_t kLanes = 4;

// A matrix that each member has a part of, between two vectors of which each has a copy.
cuda::SegmentTable PartsAndCopies() {
  cuda::SegmentTable segments = {{.name = "norm", .length = 40, .shape = {40}},
                                 {.name = "part", .length = 64 * 96, .shape = {64, 96}},
                                 {.name = "positions", .length = 2048, .shape = {32, 64}}};
  cuda::AssignOffsets(segments);
  return segments;
}
constexpr std::size_t kPart = 1;  // of the segments

// Members of several replicas, which sum a piece.
class Places {
 public:
  Places(const MeshShape& shape, Encoding kind, bool copies = true)
      : shape_(shape), kind_(kind), segments_(PartsAndCopies()) {
    const auto size = static_cast<int>(kReplicas) * shape.devices();
    worlds_ = collective::MakeInProcessGroup(size, [] { return Instant(); });
    groups_ = collective::MakeInProcessMeshes(size, shape, [] { return Instant(); });
    EncodedMembers members;
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      if (!copies || i == kPart) continue;
      members.copies.push_back({.offset = segments_[i].offset, .length = segments_[i].length});
    }
    for (int rank = 0; rank < size; ++rank) {
      encodings_.push_back(std::make_unique<Encodings>(EncodingOptions{.sketch = {.share = 0.01}},
                                                       *device_, segments_));
      encodings_.back()->Meet(members);
    }
  }

  std::size_t size() const { return encodings_.size(); }
  std::size_t length() const { return cuda::FlatLength(segments_); }
  std::size_t ReplicaOf(std::size_t rank) const {
    return rank / static_cast<std::size_t>(shape_.devices());
  }
  std::size_t PlaceOf(std::size_t rank) const {
    return rank % static_cast<std::size_t>(shape_.devices());
  }
  std::span<const float> Of(std::size_t segment, std::span<const float> flat) const {
    return flat.subspan(segments_[segment].offset, segments_[segment].length);
  }

  // What each puts in: parts are its own, copies its replica's; lanes are 1, 2, ... by rank.
  std::vector<std::vector<float>> Own(std::uint64_t round) const {
    std::vector<std::vector<float>> all;
    for (std::size_t rank = 0; rank < size(); ++rank) {
      std::vector<float> own(length() + kLanes, static_cast<float>(rank + 1));
      std::fill_n(own.begin(), length(), 0.0f);
      for (std::size_t i = 0; i < segments_.size(); ++i) {
        // Places differ in how large theirs are, as layers do.
        const std::size_t of = i == kPart ? 100 + rank : ReplicaOf(rank);
        const double scale = i == kPart ? 1 + 20.0 * static_cast<double>(PlaceOf(rank)) : 1e-4;
        Rng rng = Rng(round).Fork(std::to_string(of) + "/" + std::to_string(i));
        for (std::size_t k = 0; k < segments_[i].length; ++k) {
          own[segments_[i].offset + k] = static_cast<float>(scale * rng.Normal());
        }
      }
      all.push_back(std::move(own));
    }
    return all;
  }

  std::vector<std::vector<float>> Sum(std::vector<std::vector<float>> buffers,
                                      const EncodedRound& round) {
    bytes_.assign(size(), 0);
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < size(); ++rank) {
      threads.emplace_back([&, rank] {
        const std::span<float> buffer = buffers[rank];
        collective::ReplicaTransport transport(*worlds_[rank], groups_[rank], shape_,
                                               buffer.first(length()));
        encodings_[rank]->Open(round);
        engine::Encoding& encoding = encodings_[rank]->For(kind_);
        const Piece piece{.values = buffer.first(length()), .lanes = buffer.subspan(length())};
        encoding.Prepare(piece);
        EXPECT_EQ(encoding.Exchange(transport, piece)->Wait().progress, Progress::kDone);
        encoding.Restore(piece);
        bytes_[rank] = encoding.Bytes(piece);
      });
    }
    threads.clear();
    return buffers;
  }

  Encodings& encodings(std::size_t rank) { return *encodings_[rank]; }
  cuda::Device& device() { return *device_; }
  collective::Transport& world(std::size_t rank) { return *worlds_[rank]; }
  std::uint64_t bytes(std::size_t rank) const { return bytes_[rank]; }
  std::uint64_t bytes_of_copies() const {
    std::size_t values = 0;
    for (const cuda::Segment& segment : segments_) values += segment.length;
    return (values - segments_[kPart].length) * sizeof(float);
  }
  // Empty: it keeps none.
  std::vector<float> Left(std::size_t rank) {
    for (const Residual& residual : encodings_[rank]->Residuals()) {
      if (residual.values.size() == length()) {
        return {residual.values.begin(), residual.values.end()};
      }
    }
    return {};
  }

 private:
  const MeshShape shape_;
  const Encoding kind_;
  const cuda::SegmentTable segments_;
  const std::unique_ptr<cuda::Device> device_ = cuda::MakeHostDevice("cpu:0");
  std::vector<std::unique_ptr<collective::Transport>> worlds_;
  std::vector<collective::MeshGroups> groups_;
  std::vector<std::unique_ptr<Encodings>> encodings_;
  std::vector<std::uint64_t> bytes_;
};

class MeshSumsTest : public testing::TestWithParam<std::tuple<Encoding, MeshShape>> {};

// Sums of few float32 in the order of ranks.
std::vector<float> SumOf(const std::vector<std::vector<float>>& all,
                         const std::function<bool(std::size_t rank)>& counts) {
  std::vector<float> sum(all.front().size());
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (!counts(rank)) continue;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += all[rank][i];
  }
  return sum;
}

TEST_P(MeshSumsTest, CopiesAreSummedAlikeAtAllPlacesAndPartsByThoseWhoHaveThem) {
  const auto& [kind, shape] = GetParam();
  Places places(shape, kind);
  for (std::uint64_t round = 0; round < 4; ++round) {
    const std::vector<std::vector<float>> own = places.Own(round);

    const auto sums = places.Sum(own, {.number = round, .samples = 8});

    for (std::size_t rank = 0; rank < places.size(); ++rank) {
      const std::size_t place = places.PlaceOf(rank);
      EXPECT_EQ(sums[rank], sums[place]) << "as the first replica's member there";
      const std::vector<float> exact =
          SumOf(own, [&](std::size_t other) { return places.PlaceOf(other) == place; });
      for (const std::size_t copied : {0, 2}) {
        EXPECT_TRUE(std::ranges::equal(places.Of(copied, sums[rank]), places.Of(copied, exact)))
            << "they travel as they are";
      }
      const std::vector<float> lanes = SumOf(own, [](std::size_t) { return true; });
      EXPECT_TRUE(
          std::ranges::equal(std::span(sums[rank]).last(kLanes), std::span(lanes).last(kLanes)));
    }
    for (std::size_t rank = 0; rank < places.size(); ++rank) places.encodings(rank).Settle(true);
  }
}

// What is put in and what was left comes out, or is left.
TEST_P(MeshSumsTest, NothingIsLostOrCountedTwice) {
  const auto& [kind, shape] = GetParam();
  if (!LeavesRest(kind)) GTEST_SKIP() << "it leaves nothing out";
  Places places(shape, kind);
  const auto devices = static_cast<std::size_t>(shape.devices());
  std::vector<std::vector<double>> owed(devices, std::vector<double>(places.length()));
  for (std::uint64_t round = 0; round < 4; ++round) {
    const std::vector<std::vector<float>> own = places.Own(round);
    const auto sums = places.Sum(own, {.number = round, .samples = 8});
    const bool applied = round != 2;
    for (std::size_t rank = 0; rank < places.size(); ++rank) {
      places.encodings(rank).Settle(applied);
      if (!applied) continue;
      std::vector<double>& of_place = owed[places.PlaceOf(rank)];
      for (std::size_t i = 0; i < of_place.size(); ++i) {
        of_place[i] += own[rank][i];
        if (places.ReplicaOf(rank) == 0) of_place[i] -= sums[rank][i];
      }
    }
  }
  bool any = false;
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    const std::vector<float> left = places.Left(rank);
    ASSERT_EQ(left.size(), places.length());
    EXPECT_THAT(places.Of(0, left), Each(0));
    EXPECT_THAT(places.Of(2, left), Each(0));
    any = any || std::ranges::any_of(left, [](float value) { return value != 0; });
    for (std::size_t i = 0; i < left.size(); ++i) owed[places.PlaceOf(rank)][i] -= left[i];
  }
  EXPECT_TRUE(any);
  // Values of up to 61 in 5 deviations, of which three rounds' sums round 10 times each.
  for (const std::vector<double>& of_place : owed) {
    for (const double still : of_place) EXPECT_NEAR(still, 0, 3 * 10 * 5 * 61 * 3 * 0x1p-24);
  }
}

// Payload of a place: its part's, its copies as they are, and the lanes.
TEST_P(MeshSumsTest, BytesAreThoseOfAPlace) {
  const auto& [kind, shape] = GetParam();
  Places places(shape, kind);
  places.Sum(places.Own(0), {.samples = 8});
  const std::uint64_t dense = places.length() * sizeof(float);
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    const std::uint64_t values =
        places.bytes(rank) - places.bytes_of_copies() - kLanes * sizeof(float);
    EXPECT_GT(values, 0u);
    EXPECT_LT(values, dense);
    if (policies::RowOf(kind).deviation == policies::Deviation::kRounding) {
      EXPECT_EQ(values, dense / 2);
    }
  }
}

const auto kMeshes = testing::Values(MeshShape{1, 2}, MeshShape{2, 2});

INSTANTIATE_TEST_SUITE_P(Encodings, MeshSumsTest,
                         testing::Combine(testing::ValuesIn(kAll), kMeshes), [](const auto& each) {
                           return std::string(policies::NameOf(std::get<0>(each.param))) +
                                  WordOf(std::get<1>(each.param));
                         });

// Why they travel beside: a slice's factor is another one at each place.
TEST(MeshSumsTest, EncodedCopiesWouldPart) {
  Places places({1, 2}, Encoding::kFloat16, /*copies=*/false);

  const auto sums = places.Sum(places.Own(0), {.samples = 8});

  EXPECT_FALSE(std::ranges::equal(places.Of(0, sums[0]), places.Of(0, sums[1])) &&
               std::ranges::equal(places.Of(2, sums[0]), places.Of(2, sums[1])));
}

// One member is told of one of another replica: all of that leaves, and each place has an heir at
// the same one.
TEST(MeshResidualsTest, WhoLeavesLeavesItsOwnToTheSamePlace) {
  Places places({1, 2}, Encoding::kAdacomp);
  places.Sum(places.Own(0), {.samples = 8});
  std::vector<std::vector<float>> before;
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    places.encodings(rank).Settle(true);
    before.push_back(places.Left(rank));
  }
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    threads.emplace_back([&, rank] {
      const std::vector<std::uint32_t> heard =
          rank == 0 ? std::vector<std::uint32_t>{3} : std::vector<std::uint32_t>();
      EXPECT_EQ(
          HandOverResiduals(places.encodings(rank), places.device(), places.world(rank), heard, 2)
              .progress,
          Progress::kDone);
    });
  }
  threads.clear();

  for (const std::size_t rank : {2, 3}) EXPECT_THAT(places.Left(rank), Each(0)) << rank;
  for (const std::size_t rank : {0, 1}) {
    const std::vector<float> left = places.Left(rank);
    for (std::size_t i = 0; i < left.size(); ++i) {
      EXPECT_EQ(left[i], before[rank][i] + before[rank + 2][i]) << "rank " << rank;
    }
  }
  for (const std::size_t rank : {4, 5}) EXPECT_EQ(places.Left(rank), before[rank]);
}

// ---- Training

Way Encoded(Way way) {
  way.options.encoding.adacomp = {.bin_of_convolutions = 2, .bin = 2};
  way.options.stop = {.epochs = 12};
  return way;
}

class MeshEncodedRoundsTest : public testing::TestWithParam<std::tuple<Encoding, MeshShape, bool>> {
 protected:
  static Plan PlanWith(const MeshShape& shape, Encoding kind, bool windows,
                       const std::vector<std::uint32_t>& sizes) {
    Plan plan = windows ? PlanOf(shape, sizes) : PlanOfSteps(shape, sizes);
    plan.encoding = kind;
    return plan;
  }
};

// That all members hold the same copies, and replicas the same parts, Parameters sees.
TEST_P(MeshEncodedRoundsTest, LearnWhatDenseOnesDoAndTheirCopiesStayEqual) {
  const auto& [kind, shape, windows] = GetParam();
  const Way way = Encoded(OfAdam());
  Replicas dense(way.options, shape, 2);
  dense.Train({.plan = PlanWith(shape, Encoding::kDense, windows, {8, 4})});
  Replicas meshes(way.options, shape, 2);

  meshes.Train({.plan = PlanWith(shape, kind, windows, {8, 4})});

  const std::vector<float> expected = dense.Parameters();
  const std::vector<float> found = meshes.Parameters();
  EXPECT_NE(found, expected) << "it has an effect";
  // What is left out comes later, which a rate that is far from the largest does not mind.
  EXPECT_LT(Distance(found, expected), 0.05 * Length(expected));
  EXPECT_EQ(meshes[0].reports().size(), dense[0].reports().size());
  EXPECT_LT(meshes[0].reports()[0].bytes, dense[0].reports()[0].bytes);
}

// Another replica is lost between two rounds; those left go on with what was left with them.
TEST_P(MeshEncodedRoundsTest, AReplicaIsLostAndTheOthersGoOn) {
  const auto& [kind, shape, windows] = GetParam();
  const Way way = Encoded(OfAdam());
  Replicas meshes(way.options, shape, 3);
  const int last = 2 * shape.devices();
  const auto outcomes =
      meshes.Train({.plan = PlanWith(shape, kind, windows, {8, 4, 4}),
                    .before_step = [&](int rank, RoundEngine& engine, std::span<float>) {
                      return rank != last || engine.rounds() < 10;
                    }});
  EXPECT_EQ(outcomes[0], Outcome::kGroupLost);
  meshes.EndLast();
  std::vector<Residuals> kept;
  for (std::size_t rank = 0; rank < meshes.size(); ++rank) {
    kept.push_back(meshes[rank].State().residuals);
    EXPECT_EQ(kept.back().empty(), !LeavesRest(kind));
  }

  const auto ends = meshes.Train(
      {.plan = PlanWith(shape, kind, windows, {8, 4}),
       .before_step =
           [&](int rank, RoundEngine& engine, std::span<float>) {
             if (engine.rounds() == meshes[0].member().rounds && !kept.empty() && rank == 0) {
               EXPECT_EQ(meshes[0].State().residuals, kept[0]) << "its own";
               kept.clear();
             }
             return true;
           }},
      true);

  for (const auto& end : ends) EXPECT_EQ(end, Outcome::kFinished);
  std::vector<float> target(kUnknowns);
  for (std::size_t i = 0; i < kUnknowns; ++i) target[i] = 0.1f * static_cast<float>(i);
  EXPECT_LT(Distance(meshes.Parameters(), target), 0.7 * Length(target));
}

INSTANTIATE_TEST_SUITE_P(Encodings, MeshEncodedRoundsTest,
                         testing::Combine(testing::Values(Encoding::kFloat16, Encoding::kAdacomp),
                                          kMeshes, testing::Bool()),
                         [](const auto& each) {
                           return std::string(policies::NameOf(std::get<0>(each.param))) +
                                  WordOf(std::get<1>(each.param)) +
                                  (std::get<2>(each.param) ? "InWindows" : "");
                         });

}  // namespace
}  // namespace tactus::engine::mesh_task
