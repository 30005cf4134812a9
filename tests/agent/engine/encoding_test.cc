#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "agent/collective/in_process.h"
#include "agent/engine/combine/combination.h"
#include "agent/engine/combine/encodings.h"
#include "agent/engine/combine/lanes.h"
#include "agent/engine/member.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/encodings.h"
#include "tests/agent/engine/linear_task.h"

namespace tactus::engine {
namespace {

using policies::Aggregation;
using policies::Synchronization;
using ::testing::Each;
using ::testing::ElementsAre;

constexpr float kQuantum = 1;

MakeEncoding Scaled() {
  return [](cuda::Device&, std::size_t) { return std::make_unique<ScalingEncoding>(1.0f / 8); };
}

MakeEncoding Rounded() {
  return [](cuda::Device&, std::size_t length) {
    return std::make_unique<RoundingEncoding>(kQuantum, length);
  };
}

// Three parameters whose gradient is the same for every sample and differs between members, by
// numbers that float32 adds exactly.
Task ConstantTask() {
  return {.segments = {{.name = "w", .length = 3, .shape = {3}}},
          .start = {0, 0, 0},
          .add_gradient = [](int rank, std::uint64_t, std::span<const float>,
                             std::span<float> gradients) {
            gradients[0] += 0.3125f;
            gradients[1] -= 0.75f * static_cast<float>(rank + 1);
            gradients[2] += 2;
            return 1.0;
          }};
}

GroupRun RunOf(std::vector<std::uint32_t> batch_sizes, std::uint64_t rounds) {
  return {.options = {.train_samples = 1000,
                      .optimizer = SgdOptions{.learning_rate = 1},
                      .stop = {.rounds = rounds}},
          .plan = {.version = 1, .batch_sizes = std::move(batch_sizes)},
          .task = ConstantTask()};
}

// Notes the pieces that pass.
class NotingEncoding : public DenseEncoding {
 public:
  void Prepare(const Piece& piece) override { prepared.push_back(piece); }
  void Restore(const Piece& piece) override { restored.push_back(piece); }

  std::vector<Piece> prepared;
  std::vector<Piece> restored;
};

TEST(EncodingTest, PiecesAreTheWholeVectorAndLanesComeWithTheLast) {
  const std::unique_ptr<cuda::Device> device = cuda::MakeHostDevice("cpu:0");
  const auto members = collective::MakeInProcessGroup(1, [] { return Instant(); });
  cuda::SegmentTable segments{{.name = "a", .length = 16, .shape = {16}},
                              {.name = "b", .length = 16, .shape = {16}}};
  cuda::AssignOffsets(segments);
  NotingEncoding encoding;
  cuda::Sums losses = device->AllocateSums(1);
  Combination combination(*members[0], *device, segments,
                          {.bucket_bytes = 4, .lanes = LaneCount(1), .loss_sum = losses.span()});
  combination.SetEncoding(encoding);
  cuda::Buffer buffer = device->Allocate(32 + LaneCount(1));

  combination.Begin(combination.For(Aggregation::kAverage), buffer.span(),
                    [] { return LaneValuesOf({.lanes = {.samples = 1}}, 0); });
  combination.SegmentReady(0);
  EXPECT_EQ(encoding.prepared.size(), 1u);
  combination.Finish();
  combination.Wait();

  for (const std::vector<Piece>& pieces : {encoding.prepared, encoding.restored}) {
    ASSERT_EQ(pieces.size(), 2u);
    EXPECT_EQ(pieces[0].offset, 0u);
    EXPECT_EQ(pieces[0].values.data(), buffer.span().data());
    EXPECT_EQ(pieces[0].values.size(), 16u);
    EXPECT_TRUE(pieces[0].lanes.empty());
    EXPECT_EQ(pieces[1].offset, 16u);
    EXPECT_EQ(pieces[1].values.size(), 16u);
    EXPECT_EQ(pieces[1].lanes.data(), buffer.span().data() + 32);
    EXPECT_EQ(pieces[1].lanes.size(), LaneCount(1));
  }
  EXPECT_EQ(combination.bytes(), buffer.span().size_bytes());
}

TEST(EncodingTest, AdasumTravelsDense) {
  GroupRun run = RunOf({2, 2}, 3);
  run.plan.aggregation = Aggregation::kAdasum;
  const std::vector<MemberRun> dense = Train(run);
  run.options.encoding.dense = Rounded();

  const std::vector<MemberRun> rounded = Train(run);

  EXPECT_EQ(rounded[0].parameters, dense[0].parameters);
  EXPECT_THAT(rounded[0].state->residuals.at("left"), Each(0));
}

class EncodingTest : public ::testing::TestWithParam<Synchronization> {};

TEST_P(EncodingTest, WhatIsUndoneExactlyChangesNothingButTheBytes) {
  // How many steps a delayed round of several has depends on who is ready when.
  const bool alone = GetParam() == Synchronization::kDelayed;
  GroupRun run{.options = {.train_samples = 500,
                           .optimizer = SgdOptions{.learning_rate = 0.05, .momentum = 0.5},
                           .stop = {.rounds = 12},
                           .bucket_bytes = 4},
               .plan = {.version = 1,
                        .synchronization = GetParam(),
                        .period = GetParam() == Synchronization::kEveryStep ? 1u : 3u,
                        .batch_sizes = alone ? std::vector<std::uint32_t>{8}
                                             : std::vector<std::uint32_t>{5, 3}}};
  const std::vector<MemberRun> dense = Train(run);
  run.options.encoding.dense = Scaled();

  const std::vector<MemberRun> scaled = Train(run);

  for (std::size_t rank = 0; rank < scaled.size(); ++rank) {
    EXPECT_EQ(scaled[rank].trace, dense[rank].trace);
    ASSERT_EQ(scaled[rank].reports.size(), dense[rank].reports.size());
    for (std::size_t i = 0; i < scaled[rank].reports.size(); ++i) {
      const policies::Report& a = scaled[rank].reports[i];
      const policies::Report& b = dense[rank].reports[i];
      EXPECT_EQ(a.gradient_norm2_global, b.gradient_norm2_global);
      EXPECT_EQ(a.gradient_norm2_local, b.gradient_norm2_local);
      EXPECT_EQ(a.loss_mean_global, b.loss_mean_global);
      EXPECT_EQ(b.bytes_sent - a.bytes_sent, 3 * (32 + 16));  // padded segments, a byte for four
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, EncodingTest,
                         ::testing::Values(Synchronization::kEveryStep, Synchronization::kPeriodic,
                                           Synchronization::kDelayed));

// What was applied and what is left over are together what was gathered.
TEST(ResidualTest, NothingIsLost) {
  constexpr std::uint64_t kRounds = 7;
  GroupRun run = RunOf({1, 1}, kRounds);
  run.options.encoding.dense = Rounded();

  const std::vector<MemberRun> members = Train(run);

  EXPECT_EQ(members[0].parameters, members[1].parameters);
  const std::vector<float> gathered = {2 * 0.3125f, -3 * 0.75f, 4};
  for (std::size_t i = 0; i < gathered.size(); ++i) {
    float left = 0;
    for (const MemberRun& member : members) left += member.state->residuals.at("left")[i];
    // A rate of 1, and the mean of two samples.
    EXPECT_EQ(-2 * members[0].parameters[i] + left, kRounds * gathered[i]) << i;
  }
  EXPECT_NE(members[0].state->residuals, members[1].state->residuals);
}

TEST(ResidualTest, ARoundThatIsSkippedLeavesItFinite) {
  GroupRun run = RunOf({1, 1}, 4);
  run.options.encoding.dense = Rounded();
  run.after_gradient = [](int rank, std::uint64_t round, std::span<float> gradients) {
    if (rank == 0 && round == 1) gradients[0] = std::numeric_limits<float>::infinity();
  };

  const std::vector<MemberRun> members = Train(run);

  EXPECT_EQ(members[0].reports[1].nonfinite_members, 1u);
  for (const MemberRun& member : members) {
    EXPECT_EQ(member.outcome, Outcome::kFinished);
    for (const float value : member.state->residuals.at("left")) EXPECT_TRUE(std::isfinite(value));
  }
}

// One that was suspended after `rounds`.
MemberRun Suspended(GroupRun run, std::uint64_t rounds) {
  run.before_step = [=](int, RoundEngine& engine, StepResult&) {
    if (engine.rounds() + 1 == rounds) engine.RequestStop("pause", StopKind::kSuspend);
  };
  return Train(run)[0];
}

TEST(ResidualTest, WhoGoesOnFromAStateGoesOnFromIt) {
  GroupRun run = RunOf({1}, 8);
  run.options.encoding.dense = Rounded();
  const MemberRun whole = Train(run)[0];
  const MemberRun first = Suspended(run, 3);
  ASSERT_EQ(first.outcome, Outcome::kSuspended);
  ASSERT_THAT(std::span(first.state->residuals.at("left")).first(3),
              ElementsAre(3 * 0.3125f - 1, -0.25f, 0));

  run.from = Continued{.state = *first.state, .parameters = first.parameters};
  const MemberRun second = Train(run)[0];

  EXPECT_EQ(second.parameters, whole.parameters);
  EXPECT_EQ(second.state->residuals, whole.state->residuals);
}

TEST(ResidualTest, WhoHasNoneBeginsWithNone) {
  GroupRun run = RunOf({1}, 8);
  run.options.encoding.dense = Rounded();
  const MemberRun first = Suspended(run, 3);
  run.from = Continued{.state = *first.state, .parameters = first.parameters};
  run.from->state.residuals = {{"another", {1, 2}}};

  const MemberRun second = Train(run)[0];

  // Five rounds of 0.3125 and 0.75, rounded to whole numbers.
  EXPECT_THAT(std::span(second.state->residuals.at("left")).first(3),
              ElementsAre(5 * 0.3125f - 2, 5 * -0.75f + 4, 0));
  EXPECT_FALSE(second.state->residuals.contains("another"));
}

TEST(ResidualTest, AStateOfAnotherLengthIsRefused) {
  const EngineState dense{.ledger = {.epoch_size = 1000}};
  EngineState rounded = dense;
  rounded.residuals["left"] = {0, 0};
  const StateFit fit{.train_samples = 1000};
  StateFit fit_rounded = fit;
  fit_rounded.residuals["left"] = 3;

  EXPECT_EQ(ReasonAgainst(rounded, fit), "");
  EXPECT_EQ(ReasonAgainst(dense, fit_rounded), "");
  EXPECT_EQ(ReasonAgainst(rounded, fit_rounded),
            "its residual left has 2 elements, the job's encoding 3");
}

TEST(ProgressTest, IsOfTheConditionThatIsNearest) {
  const std::unique_ptr<cuda::Device> device = cuda::MakeHostDevice("cpu:0");
  const cuda::SegmentTable segments{{.name = "a", .length = 16, .shape = {16}}};
  cuda::Buffer parameters = device->Allocate(16);
  const auto progress_of = [&](const StopOptions& stop, std::uint64_t rounds) {
    Member member({.train_samples = 100, .stop = stop}, *device, segments, parameters.span());
    member.rounds = rounds;
    member.ledger.SetShares({150}, 0);
    member.ledger.Reserve(Edges::kCrossed);
    member.ledger.ApplyWhole();
    return member.progress();
  };

  EXPECT_EQ(progress_of({}, 10), 0);
  EXPECT_EQ(progress_of({.train_loss = 1, .time = Seconds(5)}, 10), 0);
  EXPECT_EQ(progress_of({.rounds = 40}, 10), 0.25);
  EXPECT_EQ(progress_of({.epochs = 6, .rounds = 40}, 5), 0.25);
  EXPECT_EQ(progress_of({.rounds = 40}, 50), 1);
}

TEST(EncodingsTest, AnotherInForceForgetsWhatTheOneBeforeHasLeft) {
  const std::unique_ptr<cuda::Device> device = cuda::MakeHostDevice("cpu:0");
  const cuda::SegmentTable segments{{.name = "a", .length = 16, .shape = {16}}};
  Encodings encodings({.dense = Rounded()}, *device, segments);
  encodings.For(policies::Encoding::kDense);
  std::ranges::fill(encodings.Residuals().front().values, 0.25f);

  encodings.For(policies::Encoding::kDense);
  EXPECT_THAT(encodings.Residuals().front().values, Each(0.25f));
  encodings.For(policies::Encoding::kFloat16);
  EXPECT_TRUE(encodings.Residuals().empty());
  encodings.For(policies::Encoding::kDense);
  EXPECT_THAT(encodings.Residuals().front().values, Each(0));
}

TEST(EncodingsTest, EveryNameIsOneOfItsOwn) {
  const std::unique_ptr<cuda::Device> device = cuda::MakeHostDevice("cpu:0");
  const cuda::SegmentTable segments{{.name = "a", .length = 16, .shape = {16}}};
  Encodings encodings({}, *device, segments);
  std::vector<const Encoding*> made;
  for (std::size_t i = 0; i < policies::kEncodingNames.size(); ++i) {
    const auto kind = static_cast<policies::Encoding>(i);
    made.push_back(&encodings.For(kind));
    EXPECT_EQ(&encodings.For(kind), made.back());
  }

  EXPECT_EQ(made.size(), policies::kEncodingNames.size());
  std::ranges::sort(made);
  EXPECT_EQ(std::ranges::adjacent_find(made), made.end());
  EXPECT_EQ(encodings.Residuals().size(), 2u);  // of 1-bit Adam, the last that came into force
}

}  // namespace
}  // namespace tactus::engine
