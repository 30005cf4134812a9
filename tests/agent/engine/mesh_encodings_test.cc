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
#include "policies/encodings.h"
#include "tests/agent/engine/mesh_task.h"

namespace tactus::engine::mesh_task {
namespace {

using policies::Encoding;
using ::testing::Each;

constexpr Encoding kAll[] = {Encoding::kFloat16, Encoding::kBfloat16, Encoding::kDq,
                             Encoding::kSketch, Encoding::kAdacomp};

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
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      if (!copies || i == kPart) continue;
      copies_.push_back({.offset = segments_[i].offset, .length = segments_[i].length});
    }
    Meet(kReplicas);
  }

  // The first so many; each keeps its encodings.
  void Meet(std::size_t replicas) {
    const auto size = static_cast<int>(replicas) * shape_.devices();
    worlds_ = collective::MakeInProcessGroup(size, [] { return Instant(); });
    groups_ = collective::MakeInProcessMeshes(size, shape_, [] { return Instant(); });
    encodings_.resize(worlds_.size());
    for (std::unique_ptr<Encodings>& encodings : encodings_) {
      if (encodings == nullptr) {
        encodings = std::make_unique<Encodings>(EncodingOptions{.sketch = {.share = 0.01}},
                                                *device_, segments_);
      }
      encodings->Meet({.copies = copies_});
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

  // Where one of them dies in place of it, it comes to nothing.
  std::vector<std::vector<float>> Sum(std::vector<std::vector<float>> buffers,
                                      const EncodedRound& round,
                                      std::optional<std::size_t> dies = {}) {
    bytes_.assign(size(), 0);
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < size(); ++rank) {
      threads.emplace_back([&, rank] {
        const std::span<float> buffer = buffers[rank];
        collective::ReplicaTransport transport(*worlds_[rank], groups_[rank], shape_,
                                               buffer.first(length()));
        if (rank == dies) return transport.Abort("died");
        encodings_[rank]->Open(round);
        engine::Encoding& encoding = encodings_[rank]->For(kind_);
        const Piece piece{.values = buffer.first(length()), .lanes = buffer.subspan(length())};
        encoding.Prepare(piece);
        const Completion completion = encoding.Exchange(transport, piece)->Wait();
        EXPECT_EQ(completion.progress, dies ? Progress::kFailed : Progress::kDone);
        if (dies) return transport.Abort(completion.reason);
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
  std::vector<cuda::FlatRange> copies_;
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

// What has come out, and is left, is what was put in: by place, and over all rounds that were
// applied.
class Owed {
 public:
  Owed(Places& places, std::size_t devices)
      : places_(places), owed_(devices, std::vector<double>(places.length())) {}

  void Applied(const std::vector<std::vector<float>>& own,
               const std::vector<std::vector<float>>& sums) {
    for (std::size_t rank = 0; rank < places_.size(); ++rank) {
      std::vector<double>& of_place = owed_[places_.PlaceOf(rank)];
      for (std::size_t i = 0; i < of_place.size(); ++i) {
        of_place[i] += own[rank][i];
        if (places_.ReplicaOf(rank) == 0) of_place[i] -= sums[rank][i];
      }
    }
  }

  // What a member was left with is gone with it.
  void LeftWith(std::size_t rank) {
    const std::vector<float> left = places_.Left(rank);
    ASSERT_EQ(left.size(), places_.length());
    EXPECT_THAT(places_.Of(0, left), Each(0)) << "of copies nothing is left";
    EXPECT_THAT(places_.Of(2, left), Each(0));
    EXPECT_TRUE(std::ranges::any_of(left, [](float value) { return value != 0; }));
    std::vector<double>& of_place = owed_[places_.PlaceOf(rank)];
    for (std::size_t i = 0; i < left.size(); ++i) of_place[i] -= left[i];
  }

  // Values of up to 61 in 5 deviations, of which the sums of three round 10 times in each of four
  // rounds.
  void IsNothing() const {
    for (const std::vector<double>& of_place : owed_) {
      for (const double still : of_place) EXPECT_NEAR(still, 0, 4 * 10 * 5 * 61 * 3 * 0x1p-24);
    }
  }

 private:
  Places& places_;
  std::vector<std::vector<double>> owed_;  // by place
};

class MeshRestsTest : public testing::TestWithParam<std::tuple<Encoding, MeshShape>> {};

TEST_P(MeshRestsTest, NothingIsLostOrCountedTwice) {
  const auto& [kind, shape] = GetParam();
  Places places(shape, kind);
  Owed owed(places, static_cast<std::size_t>(shape.devices()));
  for (std::uint64_t round = 0; round < 4; ++round) {
    const std::vector<std::vector<float>> own = places.Own(round);
    const auto sums = places.Sum(own, {.number = round, .samples = 8});
    const bool applied = round != 2;
    for (std::size_t rank = 0; rank < places.size(); ++rank) {
      places.encodings(rank).Settle(applied);
    }
    if (applied) owed.Applied(own, sums);
  }
  for (std::size_t rank = 0; rank < places.size(); ++rank) owed.LeftWith(rank);
  owed.IsNothing();
}

// The round that it was lost in is done anew by the others, who have what was left with them.
TEST_P(MeshRestsTest, AReplicaIsLostWithItsOwnAndTheOthersGoOn) {
  const auto& [kind, shape] = GetParam();
  Places places(shape, kind);
  const auto devices = static_cast<std::size_t>(shape.devices());
  Owed owed(places, devices);
  const std::vector<std::vector<float>> first = places.Own(0);
  owed.Applied(first, places.Sum(first, {.number = 0, .samples = 8}));
  for (std::size_t rank = 0; rank < places.size(); ++rank) places.encodings(rank).Settle(true);

  places.Sum(places.Own(1), {.number = 1, .samples = 8}, 2 * devices);
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    places.encodings(rank).Settle(false);
    if (places.ReplicaOf(rank) == 2) owed.LeftWith(rank);
  }
  places.Meet(2);
  const std::vector<std::vector<float>> own = places.Own(1);
  const auto sums = places.Sum(own, {.number = 1, .samples = 8});

  owed.Applied(own, sums);
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    EXPECT_EQ(sums[rank], sums[places.PlaceOf(rank)]);
    EXPECT_TRUE(std::ranges::equal(places.Of(0, sums[rank]), places.Of(0, sums[0])));
    places.encodings(rank).Settle(true);
    owed.LeftWith(rank);
  }
  owed.IsNothing();
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

INSTANTIATE_TEST_SUITE_P(Encodings, MeshRestsTest,
                         testing::Combine(testing::Values(Encoding::kSketch, Encoding::kAdacomp),
                                          kMeshes),
                         [](const auto& each) {
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

// So few values travel as they are where they do not travel in 16 bits; larger models are in
// tests/agent/model/parallel.
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
  const Way way = OfAdam();
  Replicas dense(way.options, shape, 2);
  dense.Train({.plan = PlanWith(shape, Encoding::kDense, windows, {8, 4})});
  Replicas meshes(way.options, shape, 2);

  meshes.Train({.plan = PlanWith(shape, kind, windows, {8, 4})});

  const std::vector<float> expected = dense.Parameters();
  const std::vector<float> found = meshes.Parameters();
  EXPECT_NE(found, expected) << "it has an effect";
  // Rounded to 8 bits at least, each way; Adam makes steps of what is left of small gradients.
  EXPECT_LT(Distance(found, expected), 0.05 * Length(expected));
  EXPECT_EQ(meshes[0].reports().size(), dense[0].reports().size());
  EXPECT_LT(meshes[0].reports()[0].bytes_sent, dense[0].reports()[0].bytes_sent);
}

TEST_P(MeshEncodedRoundsTest, AReplicaIsLostAndTheCopiesOfTheOthersStayEqual) {
  const auto& [kind, shape, windows] = GetParam();
  const Way way = OfAdam();
  Replicas meshes(way.options, shape, 3);
  const int last = 2 * shape.devices();
  const auto outcomes =
      meshes.Train({.plan = PlanWith(shape, kind, windows, {8, 4, 4}),
                    .before_step = [&](int rank, RoundEngine& engine, std::span<float>) {
                      return rank != last || engine.rounds() < 5;
                    }});
  EXPECT_EQ(outcomes[0], Outcome::kGroupLost);
  meshes.EndLast();

  const auto ends = meshes.Train({.plan = PlanWith(shape, kind, windows, {8, 4})}, true);

  for (const auto& end : ends) EXPECT_EQ(end, Outcome::kFinished);
  EXPECT_GT(Length(meshes.Parameters()), 0.3);
}

INSTANTIATE_TEST_SUITE_P(Encodings, MeshEncodedRoundsTest,
                         testing::Combine(testing::Values(Encoding::kFloat16, Encoding::kBfloat16),
                                          kMeshes, testing::Bool()),
                         [](const auto& each) {
                           return std::string(policies::NameOf(std::get<0>(each.param))) +
                                  WordOf(std::get<1>(each.param)) +
                                  (std::get<2>(each.param) ? "InWindows" : "");
                         });

}  // namespace
}  // namespace tactus::engine::mesh_task
