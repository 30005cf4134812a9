// Members of one replica, each with a part of the model: what of it comes to rank 0, and the norm
// that all of them know.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "agent/collective/in_process.h"
#include "agent/engine/combine/lanes.h"
#include "agent/engine/round_engine.h"
#include "cuda/device.h"

namespace tactus::engine {
namespace {

using collective::Completion;
using collective::Progress;
using testing::ElementsAre;

constexpr std::uint64_t kRounds = 4;

// One number each; every sample's gradient is 3.
struct PartMember {
  std::vector<std::uint64_t> gathered;  // rounds that were applied before
  std::vector<bool> at_hand;            // after each round
  float parameter = 0;
  Outcome outcome = Outcome::kTraining;
};

struct PartRun {
  EngineOptions options{.train_samples = 64,
                        .optimizer = SgdOptions{.learning_rate = 1},
                        .stop = {.rounds = kRounds}};
  // What a gathering comes to, by its number.
  std::function<Completion(std::size_t gathering)> gather = [](std::size_t) {
    return Completion();
  };
  collective::ReplicaSums sums{.counts = {true}};
  std::uint64_t asks_after = 1;  // rank 0, in the round behind so many; kRounds: not
};

PartMember RunPart(const PartRun& run, collective::Transport& transport) {
  PartMember member;
  const std::unique_ptr<cuda::Device> device = cuda::MakeHostDevice("cpu:0");
  cuda::SegmentTable segments = {{.name = "w", .length = 1, .shape = {1}}};
  cuda::AssignOffsets(segments);
  cuda::Buffer parameters = device->Allocate(cuda::FlatLength(segments));
  cuda::Buffer gradients = device->Allocate(parameters.size() + LaneCount(2));
  double loss_sum = 0;
  Member kept(run.options, *device, segments, parameters.span());
  std::uint64_t rounds = 0;
  policies::Plan plan;
  plan.batch_sizes = {2, 2};
  RoundEngine engine(kept,
                     {.gradients = gradients.span(),
                      .loss_sum = {&loss_sum, 1},
                      .gather_parts =
                          [&] {
                            member.gathered.push_back(kept.rounds);
                            return run.gather(member.gathered.size());
                          },
                      .replica_sums = run.sums},
                     transport, plan);
  Instant now{};
  EXPECT_TRUE(engine.Begin(now));
  while (const std::optional<Batch> batch = engine.NextBatch()) {
    gradients.span()[0] = 3 * static_cast<float>(batch->indices.size());
    if (transport.rank() == 0 && rounds == run.asks_after) engine.RequestResiduals();
    const Instant started = now;
    now += Seconds(0.001);
    engine.Step({.started = started, .finished = now});
    ++rounds;
    if (engine.outcome() != Outcome::kGroupLost) {
      member.at_hand.push_back(engine.residuals_at_hand());
    }
  }
  if (engine.outcome() == Outcome::kFinished) engine.GatherShards();
  member.parameter = parameters.span()[0];
  member.outcome = engine.outcome();
  return member;
}

std::vector<PartMember> RunParts(const PartRun& run) {
  auto group = collective::MakeInProcessGroup(2, [] { return Instant{}; });
  std::vector<PartMember> members(2);
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] { members[rank] = RunPart(run, *group[rank]); });
  }
  threads.clear();
  return members;
}

TEST(PartsTest, TheyAreGatheredAtTheEdgeBehindTheAskingAndAtTheEnd) {
  for (const PartMember& member : RunParts({})) {
    EXPECT_EQ(member.outcome, Outcome::kFinished);
    EXPECT_THAT(member.gathered, ElementsAre(2, kRounds));
    EXPECT_THAT(member.at_hand, ElementsAre(false, true, false, false));
  }
}

TEST(PartsTest, AtTheEndTheyAreGatheredOnceThoughTheyWereAskedForThen) {
  for (const PartMember& member : RunParts({.asks_after = kRounds - 2})) {
    EXPECT_THAT(member.gathered, ElementsAre(kRounds - 1, kRounds));
  }
}

TEST(PartsTest, AGatheringThatFailsIsTheEndOfTheGroup) {
  const auto fails = [](std::size_t) {
    return Completion{.progress = Progress::kFailed, .reason = "the mesh is over"};
  };
  for (const PartMember& member : RunParts({.gather = fails})) {
    EXPECT_EQ(member.outcome, Outcome::kGroupLost);
    EXPECT_EQ(member.gathered.size(), 1u);
  }
}

// A mean gradient of 3 here, of 15 in all: a norm of 5 is a third of that.
TEST(PartsTest, ClippingGoesByTheNormOfAllParts) {
  PartRun run{.asks_after = kRounds};
  run.sums.add = [](std::span<double> sums) {
    sums[0] *= 25;
    return Completion();
  };
  run.options.stop.rounds = 1;
  run.options.clip_norm = 20;
  EXPECT_FLOAT_EQ(RunParts(run)[0].parameter, -3);
  run.options.clip_norm = 5;
  EXPECT_FLOAT_EQ(RunParts(run)[0].parameter, -1);
}

TEST(PartsTest, ANormThatIsNotFiniteElsewhereSkipsTheStepHereToo) {
  PartRun run{.asks_after = kRounds};
  run.sums.add = [](std::span<double> sums) {
    sums[0] = std::numeric_limits<double>::infinity();
    return Completion();
  };
  for (const PartMember& member : RunParts(run)) {
    EXPECT_EQ(member.outcome, Outcome::kFinished);
    EXPECT_EQ(member.parameter, 0);
  }
}

TEST(PartsTest, AMeshThatIsLostWithTheNormAppliesNothing) {
  PartRun run{.asks_after = kRounds};
  run.sums.add = [](std::span<double>) {
    return Completion{.progress = Progress::kFailed, .reason = "the mesh is over"};
  };
  for (const PartMember& member : RunParts(run)) {
    EXPECT_EQ(member.outcome, Outcome::kGroupLost);
    EXPECT_EQ(member.parameter, 0);
  }
}

}  // namespace
}  // namespace tactus::engine
