// Members that mix their parameters with their neighbours': DecentLaM, and DmSGD beside it.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "agent/engine/round_engine.h"
#include "base/rng.h"
#include "gtest/gtest.h"
#include "policies/mixing.h"
#include "tests/agent/engine/linear_task.h"
#include "tests/agent/engine/own_parameters.h"
#include "tests/agent/engine/survivor.h"
#include "tests/agent/engine/survivors.h"

namespace tactus::engine {
namespace {

using policies::MixingGraph;
using policies::Synchronization;
using policies::Topology;

// f_i = h (x - c_i)^2 / 2 on a graph, from any parameters.
struct Case {
  Topology graph = Topology::kRing;
  std::vector<double> bottoms{};
  std::vector<double> start{};  // empty: 0
  double curvature = 1;
  double rate = 0.1;
  double momentum = 0.9;
  double weight_decay = 0;
  bool correct_bias = true;
  std::vector<std::uint64_t> falls{};  // steps after which the rate is a tenth
  std::uint64_t rounds = 3;

  std::uint32_t members() const { return static_cast<std::uint32_t>(bottoms.size()); }
  double StartOf(std::size_t rank) const { return start.empty() ? 0 : start[rank]; }
  double RateOf(std::uint64_t round) const {
    const auto falls_by = std::ranges::count_if(falls, [&](auto step) { return step <= round; });
    return rate * std::pow(0.1, static_cast<double>(falls_by));
  }
};

EngineOptions OptionsOf(const Case& that) {
  EngineOptions options{.train_samples = 1'000'000,
                        .optimizer = SgdOptions{.learning_rate = that.rate,
                                                .momentum = that.momentum,
                                                .weight_decay = that.weight_decay},
                        .neighbours = {.correct_bias = that.correct_bias},
                        .stop = {.rounds = that.rounds}};
  options.learning_rate.base_batch = that.members();
  if (!that.falls.empty()) {
    options.learning_rate.schedule.shape = policies::Schedule::Shape::kStep;
    options.learning_rate.schedule.boundaries = that.falls;
    options.learning_rate.schedule.factor = 0.1;
  }
  return options;
}

policies::Plan PlanOf(const Case& that) {
  return {.synchronization = Synchronization::kDecentlam,
          .batch_sizes = std::vector<std::uint32_t>(that.members(), 1),
          .graph = that.graph};
}

// x of each member after each round, by rank.
using Trace = std::vector<std::vector<double>>;

// One member, which begins with parameters of its own, as after a loss in the first round.
std::vector<double> Descend(const Case& that, std::size_t rank, collective::Transport& transport) {
  const auto device = cuda::MakeHostDevice("cpu:0");
  cuda::SegmentTable segments = {{.name = "x", .length = 1, .shape = {1}}};
  cuda::AssignOffsets(segments);
  const std::size_t length = cuda::FlatLength(segments);
  cuda::Buffer parameters = device->Allocate(length);
  cuda::Buffer gradients = device->Allocate(length + LaneCount(that.members()));
  cuda::Sums loss = device->AllocateSums(1);
  parameters.span()[0] = static_cast<float>(that.StartOf(rank));
  Member member(OptionsOf(that), *device, segments, parameters.span());
  RoundEngine engine(member, {.gradients = gradients.span(), .loss_sum = loss.span()}, transport,
                     PlanOf(that));
  std::vector<double> trace;
  EXPECT_TRUE(
      engine.Begin(Instant{}, Rejoining{.rounds = std::vector<std::uint64_t>(that.members())}));
  while (engine.NextBatch()) {
    const double distance = parameters.span()[0] - that.bottoms[rank];
    gradients.span()[0] += static_cast<float>(that.curvature * distance);
    loss.span()[0] += 0.5 * that.curvature * distance * distance;
    engine.Step({});
    trace.push_back(parameters.span()[0]);
  }
  EXPECT_EQ(engine.outcome(), Outcome::kFinished) << engine.reason();
  return trace;
}

// The last round's is the mean of all.
Trace RunCase(const Case& that) {
  Trace trace(that.members());
  std::vector<std::unique_ptr<collective::Transport>> transports = NewGroup(that.members());
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < trace.size(); ++rank) {
    threads.emplace_back([&, rank] { trace[rank] = Descend(that, rank, *transports[rank]); });
  }
  threads.clear();
  return trace;
}

// The textbook's form in float64: m <- beta m + (x - y) / gamma, x <- x - gamma m.
Trace Textbook(const Case& that) {
  const std::size_t members = that.members();
  std::vector<double> x(members);
  std::vector<double> m(members);
  for (std::size_t i = 0; i < members; ++i) x[i] = that.StartOf(i);
  Trace trace(members);
  for (std::uint64_t round = 0; round < that.rounds; ++round) {
    const double rate = that.RateOf(round);
    const MixingGraph graph = policies::GraphOf(that.graph, that.members(), round);
    std::vector<double> z(members);
    for (std::size_t i = 0; i < members; ++i) {
      const double g = that.curvature * (x[i] - that.bottoms[i]) + that.weight_decay * x[i];
      if (!that.correct_bias) m[i] = that.momentum * m[i] + g;
      z[i] = x[i] - rate * (that.correct_bias ? g : m[i]);
    }
    for (std::size_t i = 0; i < members; ++i) {
      double y = 0;
      for (const policies::Neighbour& one : graph[i]) y += one.weight * z[one.rank];
      if (that.correct_bias) m[i] = that.momentum * m[i] + (x[i] - y) / rate;
      x[i] = that.correct_bias ? x[i] - rate * m[i] : y;
    }
    for (std::size_t i = 0; i < members; ++i) trace[i].push_back(x[i]);
  }
  return trace;
}

std::vector<double> After(const Trace& trace, std::size_t rounds) {
  std::vector<double> values;
  for (const std::vector<double>& member : trace) values.push_back(member[rounds - 1]);
  return values;
}

double MeanOf(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

void ExpectNear(const std::vector<double>& found, const std::vector<double>& wanted, double error) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], error) << i;
}

Case Vectors(std::uint64_t rounds) { return {.bottoms = {0, 1, 2, 5}, .rounds = rounds + 1}; }

// ---- The specification's vectors

TEST(NeighbourRoundsPaperTest, TV1TheFirstThreeSteps) {
  Case that = Vectors(3);

  const Trace decentlam = RunCase(that);
  that.correct_bias = false;
  const Trace dmsgd = RunCase(that);

  ExpectNear(After(decentlam, 1), {0.15, 0.1, 0.25, 0.3}, 1e-6);
  ExpectNear(After(decentlam, 2), {0.4425, 0.325, 0.6775, 0.795}, 1e-6);
  ExpectNear(After(decentlam, 3), {0.864375, 0.70075, 1.191625, 1.35525}, 1e-6);
  ExpectNear(After(dmsgd, 2), {0.4425, 0.325, 0.6775, 0.795}, 1e-6);
  ExpectNear(After(dmsgd, 3), {0.841875, 0.65575, 1.214125, 1.40025}, 1e-6);
}

double MeanSquaredBias(const std::vector<double>& x) {
  double sum = 0;
  for (const double value : x) sum += (value - 2) * (value - 2);
  return sum / static_cast<double>(x.size());
}

// The bias of DmSGD is 30 times that of SGD without momentum, and DecentLaM has no more than that.
TEST(NeighbourRoundsPaperTest, TV2WhereTheyComeToRest) {
  Case that = Vectors(600);
  const std::vector<double> wanted = {21.0 / 11, 20.0 / 11, 23.0 / 11, 24.0 / 11};

  const std::vector<double> decentlam = After(RunCase(that), 600);
  that.momentum = 0;
  const std::vector<double> dsgd = After(RunCase(that), 600);
  that.momentum = 0.9;
  that.correct_bias = false;
  const std::vector<double> dmsgd = After(RunCase(that), 600);

  ExpectNear(decentlam, wanted, 1e-4);
  ExpectNear(dsgd, wanted, 1e-4);
  ExpectNear(dmsgd, {1.5, 1, 2.5, 3}, 1e-4);
  EXPECT_NEAR(MeanSquaredBias(decentlam), 0.02066116, 1e-4);
  EXPECT_NEAR(MeanSquaredBias(dmsgd), 0.625, 1e-3);
}

TEST(NeighbourRoundsPaperTest, TV3ARateThatFalls) {
  Case that = Vectors(6);
  that.start = {1, 0, -1, 2};
  that.falls = {3};

  ExpectNear(After(RunCase(that), 6), {1.7097519193, 1.379651607, 0.4267957767, 2.067638089}, 2e-6);
}

// TV4 is of the gate: MixingTest. What it is told of diverges: with other than linear data, which
// does not excite the mode.
TEST(NeighbourRoundsPaperTest, TV4WhatTheGateRefusesDiverges) {
  Case that{.graph = Topology::kDirectedExponential,
            .bottoms = {0.3, -1.2, 0.7, 2.1, -0.4, 0.9, -2.2, 1.1},
            .rate = 0.01,
            .rounds = 121};

  const std::vector<double> directed = After(RunCase(that), 120);
  that.graph = Topology::kExponential;
  const std::vector<double> symmetric = After(RunCase(that), 120);

  const auto [low, high] = std::ranges::minmax(directed);
  EXPECT_GT(high - low, 1e6);
  const auto [near, far] = std::ranges::minmax(symmetric);
  EXPECT_LT(far - near, 0.2);
}

// ---- Properties

Case RandomCase(std::uint64_t seed) {
  Rng rng(seed);
  const auto draw = [&](double low, double high) { return low + (high - low) * rng.Uniform(); };
  Case that{.rounds = 7};
  const std::array graphs = {Topology::kRing,
                             Topology::kExponential,
                             Topology::kDirectedExponential,
                             Topology::kOnePeerExponential,
                             Topology::kOnePeerHypercube,
                             Topology::kComplete};
  that.graph = graphs[rng.Below(graphs.size())];
  std::uint64_t members = 1 + rng.Below(6);
  while (!policies::Takes(that.graph, static_cast<std::uint32_t>(members))) ++members;
  for (std::uint64_t i = 0; i < members; ++i) {
    that.bottoms.push_back(draw(-3, 3));
    that.start.push_back(draw(-3, 3));
  }
  that.curvature = draw(0.1, 2);
  that.rate = draw(0.01, 0.3);
  that.momentum = rng.Below(4) == 0 ? 0 : draw(0, 0.95);
  that.weight_decay = rng.Below(2) == 0 ? 0 : draw(0, 0.1);
  that.correct_bias = rng.Below(4) != 0;
  if (rng.Below(2) == 0) that.falls = {1 + rng.Below(5)};
  return that;
}

// The slow twin, and the mean: x <- x - gamma m, m <- beta m + the mean of all gradients, whatever
// the graph.
TEST(NeighbourRoundsPropertyTest, MembersFollowTheTextbookAndTheirMeanMomentumSgd) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Case that = RandomCase(seed);
    const Trace wanted = Textbook(that);

    const Trace found = RunCase(that);

    std::vector<double> x = that.start;
    double momentum = 0;
    double mean = MeanOf(x);
    for (std::size_t round = 1; round < that.rounds; ++round) {
      ExpectNear(After(found, round), After(wanted, round), 2e-5);
      double gradient = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        gradient += that.curvature * (x[i] - that.bottoms[i]) + that.weight_decay * x[i];
      }
      momentum = that.momentum * momentum + gradient / static_cast<double>(x.size());
      mean -= that.RateOf(round - 1) * momentum;
      x = After(found, round);
      EXPECT_NEAR(MeanOf(x), mean, 2e-5) << round;
    }
    if (::testing::Test::HasFailure()) return;
  }
}

// Members of equal samples are those of one that trains by itself, to the bit.
TEST(NeighbourRoundsTest, MembersThatAreAlikeAreMomentumSgd) {
  for (const Topology graph : {Topology::kRing, Topology::kExponential, Topology::kComplete}) {
    GroupRun run{
        .options = {.train_samples = 100'000,
                    .optimizer =
                        SgdOptions{.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01},
                    .clip_norm = 0.5,
                    .stop = {.rounds = 30}},
        .plan = {.batch_sizes = {1}},
        .task = Scalar(3, [](int, double x) { return x - 1; })};
    const auto alone = Train(run);
    run.plan = {.synchronization = Synchronization::kDecentlam,
                .batch_sizes = {1, 1, 1, 1, 1},
                .graph = graph};

    for (const MemberRun& member : Train(run)) EXPECT_EQ(member.trace, alone[0].trace);
  }
}

TEST(NeighbourRoundsTest, OneMemberIsMomentumSgd) {
  GroupRun run{.options = {.train_samples = 400,
                           .optimizer = SgdOptions{.learning_rate = 0.002, .momentum = 0.9},
                           .stop = {.rounds = 20}},
               .plan = {.batch_sizes = {4}}};
  const auto alone = Train(run);
  run.plan.synchronization = Synchronization::kDecentlam;
  run.plan.graph = Topology::kRing;

  EXPECT_EQ(Train(run)[0].trace, alone[0].trace);
}

// From equal parameters all mix with all: what momentum SGD with an all-reduce does.
TEST(NeighbourRoundsTest, WhereAllAreNeighboursItIsParallelMomentumSgd) {
  GroupRun run{.options = {.train_samples = 4000,
                           .optimizer = SgdOptions{.learning_rate = 0.002, .momentum = 0.9},
                           .stop = {.rounds = 20}},
               .plan = {.batch_sizes = {2, 2, 2, 2}}};
  const auto reduced = Train(run);
  run.plan.synchronization = Synchronization::kDecentlam;
  run.plan.graph = Topology::kComplete;

  const auto mixed = Train(run);

  for (std::size_t i = 0; i < mixed[0].parameters.size(); ++i) {
    EXPECT_NEAR(mixed[0].parameters[i], reduced[0].parameters[i], 1e-4);
  }
}

// By 2^t places in each step, and then once more: of 8 members all have the mean after 3.
TEST(NeighbourRoundsTest, GraphsFollowOneAnotherFromStepToStep) {
  for (const Topology graph : {Topology::kOnePeerExponential, Topology::kOnePeerHypercube}) {
    Case that{.graph = graph,
              .bottoms = std::vector<double>(8),
              .start = {0, 1, 2, 3, 4, 5, 6, 15},
              .curvature = 0,
              .momentum = 0,
              .rounds = 4};

    const Trace trace = RunCase(that);

    const std::vector<double> second = After(trace, 2);
    EXPECT_GT(*std::ranges::max_element(second) - *std::ranges::min_element(second), 1);
    ExpectNear(After(trace, 3), std::vector<double>(8, 4.5), 1e-6);
  }
}

// On a circle of which 0 and 1 are no neighbours they have nothing of each other after one step.
TEST(NeighbourRoundsTest, WhoAreNeighboursFollowsFromTheCircle) {
  GroupRun run{.options = {.train_samples = 1000,
                           .optimizer = SgdOptions{.learning_rate = 0.5},
                           .stop = {.rounds = 3}},
               .plan = {.synchronization = Synchronization::kDecentlam,
                        .batch_sizes = {1, 1, 1, 1},
                        .graph = Topology::kRing,
                        .circle = {0, 2, 1, 3}},
               .task = Scalar(0, [](int rank, double) { return rank == 0 ? -8 : 0; })};

  const auto group = Train(run);

  EXPECT_FLOAT_EQ(group[0].trace[0][0], 2);
  EXPECT_FLOAT_EQ(group[1].trace[0][0], 0);
  EXPECT_FLOAT_EQ(group[2].trace[0][0], 1);
  EXPECT_FLOAT_EQ(group[3].trace[0][0], 1);
}

// ---- What is not finite

GroupRun Valleys(std::vector<double> bottoms, std::uint64_t rounds) {
  GroupRun run{.options = {.train_samples = 100'000,
                           .optimizer = SgdOptions{.learning_rate = 0.1, .momentum = 0.5},
                           .stop = {.rounds = rounds},
                           .nonfinite_rounds_max = 5},
               .plan = {.synchronization = Synchronization::kDecentlam,
                        .batch_sizes = std::vector<std::uint32_t>(bottoms.size(), 1),
                        .graph = Topology::kRing}};
  run.task = Scalar(
      3, [bottoms](int rank, double x) { return x - bottoms[static_cast<std::size_t>(rank)]; });
  return run;
}

// Its neighbours pull it along, and the mean takes the steps of the others' gradients.
TEST(NeighbourRoundsTest, AMemberWhoseGradientIsNotFiniteMixesAllTheSame) {
  GroupRun run = Valleys({0, 1, 1, 2}, 60);
  SpoilGradients(run, {.to = 20, .rank = 1});

  const auto group = Train(run);

  for (const MemberRun& member : group) {
    EXPECT_EQ(member.outcome, Outcome::kFinished) << member.reason;
    EXPECT_NEAR(member.parameters[0], 1, 0.01);
  }
  EXPECT_EQ(group[0].reports[3].nonfinite_members, 1u);
  EXPECT_EQ(group[0].reports[30].nonfinite_members, 0u);
  EXPECT_GT(group[1].trace[1][0], group[1].trace[19][0]);
}

TEST(NeighbourRoundsTest, WhereNobodysGradientIsFiniteItDivergesAndNothingMoves) {
  GroupRun run = Valleys({0, 1, 2}, 60);
  SpoilGradients(run, {.from = 10});

  for (const MemberRun& member : Train(run)) {
    EXPECT_EQ(member.outcome, Outcome::kDiverged);
    EXPECT_EQ(member.reports.size(), 15u);
    EXPECT_EQ(member.trace[9], member.trace[14]);
  }
}

// ---- Parameters that overflow

// Its neighbours' vectors stand in for its own, and theirs are as without it in that step.
TEST(NeighbourRoundsTest, AMemberWhoseParametersOverflowGoesOnFromItsNeighboursMean) {
  for (const bool correct_bias : {true, false}) {
    GroupRun run = Valleys({-1, 0, 1, 2, 3}, 80);
    run.options.neighbours.correct_bias = correct_bias;
    run.options.optimizer = SgdOptions{.learning_rate = 4, .momentum = 0.5};
    run.task = Scalar(3, [](int rank, double x) { return 0.025 * (x + 1 - rank); });
    const auto calm = Train(run);
    run.after_gradient = [](int rank, std::uint64_t round, std::span<float> gradients) {
      if (rank == 1 && round == 10) gradients[0] = 3e38f;
    };

    const auto group = Train(run);

    for (const MemberRun& member : group) {
      EXPECT_EQ(member.outcome, Outcome::kFinished) << member.reason;
      EXPECT_NEAR(member.parameters[0], 1, 0.05);
    }
    for (const std::size_t far : {3u, 4u}) EXPECT_EQ(group[far].trace[10], calm[far].trace[10]);
    for (const std::size_t near : {0u, 2u}) {
      EXPECT_NEAR(group[near].trace[10][0], calm[near].trace[10][0], 0.5);
      EXPECT_NE(group[near].trace[10], calm[near].trace[10]);
    }
    EXPECT_EQ(group[0].reports[9].nonfinite_members, 0u);
    EXPECT_EQ(group[0].reports[10].nonfinite_members, 1u) << "it is told of";
    EXPECT_EQ(group[0].reports[11].nonfinite_members, 0u);
    if (!correct_bias) continue;
    const auto sent = [&](std::size_t rank) {
      const double x = calm[rank].trace[9][0];
      return x - 0.1 * (x + 1 - static_cast<double>(rank));
    };
    EXPECT_NEAR(group[1].trace[10][0], (sent(0) + sent(2)) / 2, 1e-5);
  }
}

TEST(NeighbourRoundsTest, ParametersThatAreNotFiniteAreMendedOnEveryGraph) {
  for (const Topology graph :
       {Topology::kRing, Topology::kExponential, Topology::kDirectedExponential,
        Topology::kOnePeerExponential, Topology::kOnePeerHypercube, Topology::kComplete}) {
    Case that{.graph = graph,
              .bottoms = std::vector<double>(8),
              .start = {1, 2, 3, 4, 5, 6, 7, 8},
              .momentum = 0,
              .rounds = 8};
    that.start[3] = std::numeric_limits<double>::infinity();
    that.start[4] = std::numeric_limits<double>::quiet_NaN();

    const Trace trace = RunCase(that);

    for (std::size_t rank = 0; rank < 8; ++rank) {
      const bool whole = rank != 3 && rank != 4;
      EXPECT_TRUE(!whole || std::isfinite(trace[rank][0])) << policies::NameOf(graph) << rank;
      EXPECT_TRUE(std::isfinite(trace[rank][2])) << policies::NameOf(graph) << rank;
      EXPECT_LT(std::abs(trace[rank][2]), 8);
    }
  }
}

// There is nobody to go on from: nothing moves, and the round is lost.
TEST(NeighbourRoundsTest, WhereAllOverflowAtOnceNothingMoves) {
  GroupRun run = Valleys({0, 1, 2}, 60);
  run.options.optimizer = SgdOptions{.learning_rate = 4, .momentum = 0};
  run.task = Scalar(3, [](int rank, double x) { return 0.025 * (x - rank); });
  run.after_gradient = [](int, std::uint64_t round, std::span<float> gradients) {
    if (round == 10) gradients[0] = 3e38f;
  };

  for (const MemberRun& member : Train(run)) {
    EXPECT_EQ(member.outcome, Outcome::kFinished) << member.reason;
    EXPECT_EQ(member.trace[10], member.trace[9]);
    EXPECT_EQ(member.reports[10].nonfinite_members, 3u);
    EXPECT_NEAR(member.parameters[0], 1, 0.1);
  }
}

// ---- Epochs, edges, losses

TEST(NeighbourRoundsTest, EverySampleIsUsedOncePerEpoch) {
  ExpectEpochsThatEndWithTheMean(Valleys({0, 1, 2, 3}, 0));
}

TEST(NeighbourRoundsTest, MeansOfBatchesAreAsGoodAsSums) {
  GroupRun run = Valleys({0, 1, 2}, 12);
  run.plan.batch_sizes = {4, 2, 3};
  run.options.micro_batch = 2;
  const auto sums = Train(run);
  run.options.mean_gradients = true;

  const auto means = Train(run);

  for (std::size_t rank = 0; rank < 3; ++rank) {
    for (std::size_t round = 0; round < 12; ++round) {
      EXPECT_NEAR(means[rank].trace[round][0], sums[rank].trace[round][0], 1e-5);
    }
  }
}

TEST(NeighbourRoundsTest, ValidationsAreOfTheMeanAndChangeNothing) {
  const GroupRun run = Valleys({0, 4, 8}, 9);
  const auto without = Train(run);

  const LookedAt looked = TrainAndLook(run);

  for (const auto& [rounds, value] : looked.parameters) {
    if (rounds > 8) continue;
    double mean = 0;
    for (const MemberRun& member : without) mean += member.trace[rounds - 1][0] / 3;
    EXPECT_NEAR(value, mean, 1e-5);
  }
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(looked.group[rank].trace[6], without[rank].trace[6]) << rank;
  }
}

TEST(NeighbourRoundsTest, WhatIsSuspendedGoesOnFromTheMean) {
  const auto group = GoOnFromTheMean(Valleys({0, 4, 1}, 40), Valleys({0, 4, 1}, 60));

  ASSERT_EQ(group.size(), 3u);
  for (const MemberRun& member : group) EXPECT_NEAR(member.parameters[0], 5.0 / 3, 0.01);
}

// A plan under which all members are alike follows: they become so, and go on with one momentum.
TEST(NeighbourRoundsTest, MembersBecomeAlikeWithAPlanUnderWhichTheyAre) {
  ExpectToBecomeAlike(Valleys({0, 4, 8}, 12));
}

EngineOptions OfSurvivors() {
  return {.train_samples = 400,
          .optimizer = SgdOptions{.learning_rate = 0.003, .momentum = 0.5},
          .stop = {.rounds = 8}};
}

// After a loss those who live keep what is theirs, on a graph of those who are there; who joins
// begins as the first of them.
TEST(NeighbourRoundsTest, AGroupThatIsLostLeavesEachMemberItsOwn) {
  ExpectALossToLeaveEachItsOwn(OfSurvivors(), {.synchronization = Synchronization::kDecentlam,
                                               .batch_sizes = {2, 3, 1, 2},
                                               .graph = Topology::kRing});
}

// Some have not heard of the last round: they take over the whole state of one that has.
TEST(NeighbourRoundsTest, WhoIsARoundBehindTakesOverAMembersState) {
  const Members all(OfSurvivors(), 3);
  std::vector<Survivor*> members = all.Everybody();
  Stage stage{.plan = {.version = 1,
                       .synchronization = Synchronization::kDecentlam,
                       .batch_sizes = {2, 3, 1},
                       .graph = Topology::kRing}};
  stage.told_of_rounds = false;
  TrainTorn(members, stage, {.rounds = 3, .ranks = {false, true, false}});
  ASSERT_EQ(members.size(), 3u);
  EXPECT_EQ(all[1].member().rounds + 1, all[0].member().rounds);

  Stage next{.plan = stage.plan};
  next.plan.version = 10;
  Train(members, next);

  ExpectAlike(members);
  EXPECT_EQ(all[0].member().rounds, 8u);
}

}  // namespace
}  // namespace tactus::engine
