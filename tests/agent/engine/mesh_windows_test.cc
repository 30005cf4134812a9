// Windows of local steps of replicas that are meshes: each member has a part of the model, and a
// replica does what a worker does that holds all of it.

#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "agent/collective/in_process.h"
#include "agent/collective/mesh_groups.h"
#include "agent/collective/places.h"
#include "agent/collective/replicas.h"
#include "agent/engine/combine/lanes.h"
#include "agent/engine/exact_sum.h"
#include "agent/engine/round_engine.h"
#include "base/rng.h"
#include "cuda/device.h"
#include "cuda/ops/vector.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/survivor.h"

namespace tactus::engine {
namespace {

using collective::Completion;
using collective::MeshShape;
using collective::Progress;
using policies::Plan;
using policies::Synchronization;

// Unknowns of least squares, in which each sample is one random equation. Some are cut up over all
// places, the others over the columns alone, with a copy in each row, as a linear layer's biases.
constexpr std::size_t kSplit = 16;
constexpr std::size_t kCopied = 8;
constexpr std::size_t kUnknowns = kSplit + kCopied;
constexpr std::uint64_t kSamples = 157;
constexpr std::uint64_t kPeriod = 3;

struct Meeting {
  const MeshShape& shape;
  collective::Transport& world;
  collective::MeshGroups& groups;
};

class PartHolder;

// What happens in one group.
struct Stage {
  Plan plan{};
  // Before a step of a member, whose gradients may be spoilt; false: it is dead.
  std::function<bool(int rank, RoundEngine& engine, std::span<float> gradients)> before_step =
      [](int, RoundEngine&, std::span<float>) { return true; };
  std::function<double(int rank, std::uint64_t round)> added_loss = [](int, std::uint64_t) {
    return 0.0;
  };
  // After a step; false: the member gives the group up.
  std::function<bool(int rank, RoundEngine& engine)> after_step = [](int, RoundEngine&) {
    return true;
  };
  // Whether a member does not hear what its replica's norm came to, by its number.
  std::function<bool(int rank, int norm)> loses_norm = [](int, int) { return false; };
};

// A member that lives through several groups.
class PartHolder {
 public:
  PartHolder(EngineOptions options, const MeshShape& shape, int rank)
      : shape_(shape),
        place_(collective::PlaceOf(rank % shape.devices(), shape)),
        device_(cuda::MakeHostDevice("cpu:0")),
        segments_(SegmentsOf(shape)),
        parameters_(device_->Allocate(cuda::FlatLength(segments_))) {
    options.replica_members = static_cast<std::uint32_t>(shape.devices());
    options.micro_batch = 1000;
    member_.emplace(options, *device_, segments_, parameters_.span());
  }

  Member& member() { return *member_; }
  const std::vector<policies::Report>& reports() const { return reports_; }
  // Samples that it has passed over, also for nothing; and those of the window that the last group
  // went on with, as its engine said.
  const std::vector<std::uint64_t>& passed() const { return passed_; }
  const std::vector<std::uint64_t>& before() const { return before_; }
  std::vector<float> parameters() const {
    return {parameters_.span().begin(), parameters_.span().end()};
  }
  EngineState State() {
    EngineState state;
    member_->CopyState(state);
    state.train_time = {};
    return state;
  }

  // visit(the number in a buffer of this member's, the one among all, whether it counts here)
  void ForEach(const std::function<void(std::size_t, std::size_t, bool)>& visit) const {
    const auto place = static_cast<std::size_t>(place_.row * shape_.columns + place_.column);
    const auto column = static_cast<std::size_t>(place_.column);
    for (std::size_t i = 0; i < segments_[0].length; ++i) {
      visit(segments_[0].offset + i, place * segments_[0].length + i, true);
    }
    for (std::size_t i = 0; i < segments_[1].length; ++i) {
      visit(segments_[1].offset + i, kSplit + column * segments_[1].length + i, place_.row == 0);
    }
  }

  // Until the end, or the group is lost; nothing: it is dead.
  std::optional<Outcome> TrainIn(const Meeting& meeting, const Stage& stage,
                                 const std::vector<std::uint64_t>& rounds) {
    const int rank = meeting.world.rank();
    const auto members = static_cast<std::size_t>(meeting.world.size());
    cuda::Buffer sums = device_->Allocate(parameters_.size() + LaneCount(members));
    const std::span<float> gradients = sums.span().first(parameters_.size());
    collective::ReplicaTransport transport(meeting.world, meeting.groups, shape_, gradients);
    double loss_sum = 0;
    int norms = 0;
    EngineBuffers buffers{.gradients = sums.span(), .loss_sum = {&loss_sum, 1}};
    if (shape_.devices() > 1) {
      buffers.whole_norm = [&](std::span<const float> vector, double& norm2) {
        Completion completion = Norm(meeting, vector, norm2);
        if (stage.loses_norm(rank, norms++)) completion = {.progress = Progress::kFailed};
        return completion;
      };
    }
    RoundEngine engine(*member_, std::move(buffers), transport, stage.plan);
    const auto lose = [&](const std::string& reason) {
      transport.Abort(reason);
      if (engine.outcome() == Outcome::kTraining) engine.LoseGroup(reason);
    };
    if (rounds.empty()) {
      engine.Begin(SurvivorTime());
    } else {
      engine.Begin(SurvivorTime(), {.rounds = rounds});
    }
    before_.clear();
    for (const Batch& batch : engine.UsedBefore()) {
      before_.insert(before_.end(), batch.indices.begin(), batch.indices.end());
    }
    while (const std::optional<Batch> batch = engine.NextBatch()) {
      StepResult result{.started = SurvivorTime()};
      if (!Pass(meeting, *batch, gradients, loss_sum)) {
        lose("a pass was lost");
        break;
      }
      loss_sum += stage.added_loss(rank, batch->round);
      result.finished = SurvivorTime();
      if (!stage.before_step(rank, engine, gradients)) {
        transport.Abort("died");
        return std::nullopt;
      }
      engine.Step(result);
      while (const auto report = engine.TakeReport()) reports_.push_back(*report);
      if (engine.outcome() != Outcome::kTraining || stage.after_step(rank, engine)) continue;
      lose("told to");
    }
    if (engine.outcome() == Outcome::kGroupLost) lose("lost");
    return engine.outcome();
  }

 private:
  static cuda::SegmentTable SegmentsOf(const MeshShape& shape) {
    const std::size_t split = kSplit / static_cast<std::size_t>(shape.devices());
    const std::size_t copied = kCopied / static_cast<std::size_t>(shape.columns);
    cuda::SegmentTable segments = {
        {.name = "split", .length = split, .shape = {static_cast<std::int64_t>(split)}},
        {.name = "copied", .length = copied, .shape = {static_cast<std::int64_t>(copied)}}};
    cuda::AssignOffsets(segments);
    return segments;
  }

  static bool SumOverReplica(const Meeting& meeting, std::span<float> values) {
    for (collective::Transport* const group :
         {meeting.groups.row.get(), meeting.groups.column.get()}) {
      if (group->StartAllReduceSum(values)->Wait().progress == Progress::kFailed) return false;
    }
    return true;
  }

  Completion Norm(const Meeting& meeting, std::span<const float> vector, double& norm2) const {
    double own = norm2;
    ForEach([&](std::size_t here, std::size_t, bool counts) {
      const double value = vector[here];
      if (counts) own += value * value;
    });
    const Completion row = SumExactly(*meeting.groups.row, own, norm2);
    if (row.progress == Progress::kFailed) return row;
    return SumExactly(*meeting.groups.column, norm2, norm2);
  }

  // What a mesh's pass leaves: each member's part of the gradient of all members' samples. False:
  // the replica is lost.
  bool Pass(const Meeting& meeting, const Batch& batch, std::span<float> gradients,
            double& loss_sum) {
    std::vector<float> x(kUnknowns);
    ForEach([&](std::size_t here, std::size_t among_all, bool counts) {
      if (counts) x[among_all] = parameters_.span()[here];
    });
    if (!SumOverReplica(meeting, x)) return false;
    std::vector<float> gradient(kUnknowns);
    double loss = 0;
    for (const std::uint64_t index : batch.indices) {
      Rng rng = Rng(7).Fork(std::to_string(index));
      std::vector<float> row(kUnknowns);
      for (float& value : row) value = static_cast<float>(rng.Normal());
      float error = 0;
      for (std::size_t i = 0; i < kUnknowns; ++i) {
        error += row[i] * (x[i] - 0.1f * static_cast<float>(i));
      }
      for (std::size_t i = 0; i < kUnknowns; ++i) gradient[i] += error * row[i];
      loss += 0.5 * error * error;
      passed_.push_back(index);
    }
    if (!SumOverReplica(meeting, gradient)) return false;
    ForEach([&](std::size_t here, std::size_t among_all, bool) {
      gradients[here] += gradient[among_all];
    });
    loss_sum += loss;
    return true;
  }

  const MeshShape shape_;
  const collective::Place place_;
  const std::unique_ptr<cuda::Device> device_;
  const cuda::SegmentTable segments_;
  cuda::Buffer parameters_;
  std::optional<Member> member_;
  std::vector<std::uint64_t> passed_;
  std::vector<std::uint64_t> before_;
  std::vector<policies::Report> reports_;
};

// Replicas of one shape.
class Replicas {
 public:
  Replicas(const EngineOptions& options, const MeshShape& shape, int count) : shape_(shape) {
    for (int rank = 0; rank < count * shape.devices(); ++rank) {
      members_.push_back(std::make_unique<PartHolder>(options, shape, rank));
    }
  }

  PartHolder& operator[](std::size_t rank) const { return *members_[rank]; }
  std::size_t size() const { return members_.size(); }
  // One that misses a member is ended.
  void EndLast() { members_.resize(members_.size() - static_cast<std::size_t>(shape_.devices())); }

  // goes_on: from another group.
  std::vector<std::optional<Outcome>> Train(const Stage& stage, bool goes_on = false) {
    const auto size = static_cast<int>(members_.size());
    auto worlds = collective::MakeInProcessGroup(size, SurvivorTime);
    auto groups = collective::MakeInProcessMeshes(size, shape_, SurvivorTime);
    std::vector<std::uint64_t> rounds;
    for (const auto& member : members_) rounds.push_back(member->member().rounds);
    if (!goes_on) rounds.clear();
    std::vector<std::optional<Outcome>> outcomes(members_.size());
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
      threads.emplace_back([&, rank] {
        const Meeting meeting{.shape = shape_, .world = *worlds[rank], .groups = groups[rank]};
        outcomes[rank] = members_[rank]->TrainIn(meeting, stage, rounds);
      });
    }
    threads.clear();
    return outcomes;
  }

  // Of the first replica, which is what all have.
  std::vector<float> Parameters() const {
    const auto devices = static_cast<std::size_t>(shape_.devices());
    std::vector<float> whole(kUnknowns);
    for (std::size_t rank = 0; rank < devices; ++rank) {
      const std::vector<float> own = members_[rank]->parameters();
      members_[rank]->ForEach([&](std::size_t here, std::size_t among_all, bool counts) {
        if (counts) whole[among_all] = own[here];
      });
    }
    for (std::size_t rank = 0; rank < members_.size(); ++rank) {
      const std::vector<float> own = members_[rank]->parameters();
      members_[rank]->ForEach([&](std::size_t here, std::size_t among_all, bool) {
        EXPECT_EQ(own[here], whole[among_all]) << "rank " << rank;
      });
    }
    return whole;
  }

 private:
  const MeshShape shape_;
  std::vector<std::unique_ptr<PartHolder>> members_;
};

struct Way {
  std::string name;
  EngineOptions options{};
};

void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }

Way WayOf(std::string name, OptimizerOptions optimizer) {
  return {
      .name = std::move(name),
      .options = {.train_samples = kSamples, .optimizer = optimizer, .stop = {.epochs = 3}},
  };
}

Way OfSgd(std::string name = "Sgd") {
  return WayOf(std::move(name), SgdOptions{.learning_rate = 0.01, .momentum = 0.5});
}

Way OfAdam() { return WayOf("Adam", AdamOptions{.learning_rate = 0.01}); }

std::vector<Way> AllWays() {
  std::vector<Way> ways = {OfSgd(), OfAdam(), OfSgd("BlockMomentum"), OfSgd("MomentumAnew"),
                           OfSgd("Clipped")};
  ways[2].options.block_momentum = 0.3;
  ways[3].options.keep_local_momentum = false;
  ways[4].options.clip_norm = 2;
  return ways;
}

// sizes: of a step, by replica.
Plan PlanOf(const MeshShape& shape, const std::vector<std::uint32_t>& sizes) {
  Plan plan{.synchronization = Synchronization::kPeriodic, .period = kPeriod};
  const auto devices = static_cast<std::uint32_t>(shape.devices());
  for (const std::uint32_t size : sizes) {
    plan.batch_sizes.insert(plan.batch_sizes.end(), devices, size / devices);
  }
  return plan;
}

double Distance(const std::vector<float>& one, const std::vector<float>& other) {
  double norm2 = 0;
  for (std::size_t i = 0; i < one.size(); ++i) norm2 += std::pow(double{one[i]} - other[i], 2);
  return std::sqrt(norm2);
}

// ---- As workers that hold all of the model

class MeshWindowsTest : public testing::TestWithParam<std::tuple<Way, MeshShape>> {};

// A step's gradient is a sum of 8 samples at most, of 24 products each, in another order: some 40
// roundings from what the other has, of its longest term, which is some 5 times as long as what is
// left of them. There are 3 x 14 steps, of which momentum repeats each twice, and Adam goes by the
// quotient of two such.
constexpr double kBound = 2 * 2 * 2 * 5 * 40 * 42 * 0x1p-24;

TEST_P(MeshWindowsTest, TrainAsWorkersDoThatHoldAll) {
  const auto& [way, shape] = GetParam();
  const std::vector<std::uint32_t> sizes = {8, 4};
  const MeshShape whole{1, 1};
  Replicas workers(way.options, whole, 2);
  workers.Train({.plan = PlanOf(whole, sizes)});
  Replicas meshes(way.options, shape, 2);
  meshes.Train({.plan = PlanOf(shape, sizes)});
  const auto devices = static_cast<std::size_t>(shape.devices());
  Plan by_step = PlanOf(shape, sizes);
  by_step.synchronization = Synchronization::kEveryStep;
  by_step.period = 1;
  Replicas steps(way.options, shape, 2);
  steps.Train({.plan = by_step});

  const std::vector<float> expected = workers.Parameters();
  const double length = Distance(expected, std::vector<float>(kUnknowns));
  EXPECT_LT(Distance(meshes.Parameters(), expected), kBound * length);
  EXPECT_GT(Distance(steps.Parameters(), expected), 2 * kBound * length)
      << "windows have no effect";
  for (std::size_t replica = 0; replica < 2; ++replica) {
    const std::vector<policies::Report>& of_worker = workers[replica].reports();
    for (std::size_t round = 0; round < of_worker.size(); ++round) {
      std::uint64_t samples = 0;
      double loss_sum = 0;
      for (std::size_t i = 0; i < devices; ++i) {
        const PartHolder& member = meshes[replica * devices + i];
        ASSERT_EQ(member.reports().size(), of_worker.size());
        EXPECT_EQ(member.reports()[round].steps, of_worker[round].steps);
        EXPECT_EQ(member.reports()[round].samples_global, of_worker[round].samples_global);
        EXPECT_EQ(member.reports()[round].gradient_samples, 0) << "tells of the noise";
        samples += member.reports()[round].samples;
        loss_sum += member.reports()[round].loss_sum;
      }
      EXPECT_EQ(samples, of_worker[round].samples);
      EXPECT_NEAR(loss_sum, of_worker[round].loss_sum, 1e-3 * (1 + of_worker[round].loss_sum));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, MeshWindowsTest,
                         testing::Combine(testing::ValuesIn(AllWays()),
                                          testing::Values(MeshShape{1, 2}, MeshShape{2, 2})),
                         [](const auto& each) {
                           const MeshShape& shape = std::get<1>(each.param);
                           return std::get<0>(each.param).name + std::to_string(shape.rows) + "x" +
                                  std::to_string(shape.columns);
                         });

TEST(MeshWindowSamplesTest, AStepsSamplesAreThoseOfAWorkerThatHoldsAll) {
  const Way way = OfSgd();
  Replicas workers(way.options, {1, 1}, 2);
  workers.Train({.plan = PlanOf({1, 1}, {8, 4})});
  Replicas meshes(way.options, {2, 2}, 2);
  meshes.Train({.plan = PlanOf({2, 2}, {8, 4})});

  for (std::size_t replica = 0; replica < 2; ++replica) {
    std::multiset<std::uint64_t> passed;
    for (std::size_t i = 0; i < 4; ++i) {
      const auto& own = meshes[4 * replica + i].passed();
      passed.insert(own.begin(), own.end());
    }
    const auto& expected = workers[replica].passed();
    EXPECT_EQ(passed, std::multiset<std::uint64_t>(expected.begin(), expected.end()));
    // Of the first step, the first member has the first samples.
    const auto& first = meshes[4 * replica].passed();
    const std::size_t own = replica == 0 ? 2 : 1;
    EXPECT_TRUE(std::equal(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(own),
                           expected.begin()));
    // And of the second those behind all members' of the first.
    EXPECT_EQ(first[own], expected[4 * own]);
  }
}

// ---- What is not finite

class NotFiniteMeshTest : public testing::TestWithParam<bool> {};

// The others of its replica hear of it in the step, so that none has taken one: what their
// optimizers hold is of one step.
TEST_P(NotFiniteMeshTest, NobodyOfTheReplicaTakesAStepThatIsNotFiniteOnOne) {
  const bool loss = GetParam();
  Way way = OfAdam();
  way.options.stop = {.rounds = 1};
  Replicas meshes(way.options, {2, 2}, 2);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();

  meshes.Train(
      {.plan = PlanOf({2, 2}, {8, 4}),
       .before_step =
           [&](int rank, RoundEngine&, std::span<float> gradients) {
             if (!loss && rank == 1) gradients[0] = kInfinity;
             return true;
           },
       .added_loss = [&](int rank,
                         std::uint64_t) { return loss && rank == 1 ? double{kInfinity} : 0.0; }});

  EXPECT_EQ(meshes.Parameters(), std::vector<float>(kUnknowns));
  for (std::size_t rank = 0; rank < meshes.size(); ++rank) {
    ASSERT_EQ(meshes[rank].reports().size(), 1u);
    EXPECT_EQ(meshes[rank].reports()[0].nonfinite_members, 4u);
    bool stepped = false;
    for (const std::vector<float>& moment : meshes[rank].State().optimizer) {
      stepped = stepped || std::ranges::any_of(moment, [](float value) { return value != 0; });
    }
    EXPECT_EQ(stepped, rank >= 4) << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Both, NotFiniteMeshTest, testing::Bool(),
                         [](const auto& loss) { return loss.param ? "Loss" : "Gradient"; });

// ---- Losses within a window

class LostMeshTest : public testing::TestWithParam<Way> {};

// The last of three replicas dies in a window, and all of another give the group up behind the
// window's first step: they go on with it, and so does who has taken all of its steps.
TEST_P(LostMeshTest, TheShareOfTheDeadReplicaAloneIsLost) {
  const Way& way = GetParam();
  const MeshShape shape{2, 2};
  Replicas without(way.options, shape, 2);
  without.Train({.plan = PlanOf(shape, {8, 4})});
  Replicas meshes(way.options, shape, 3);
  std::barrier together(4);

  meshes.Train({.plan = PlanOf(shape, {8, 4, 8}),
                .before_step = [](int rank, RoundEngine&, std::span<float>) { return rank != 9; },
                .after_step =
                    [&](int rank, RoundEngine&) {
                      if (rank >= 4) return true;
                      together.arrive_and_wait();
                      return false;
                    }});
  meshes.EndLast();
  meshes.Train({.plan = PlanOf(shape, {8, 4})}, true);

  EXPECT_EQ(meshes.Parameters(), without.Parameters());
  for (std::size_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(meshes[rank].State(), without[rank].State()) << "rank " << rank;
    EXPECT_EQ(meshes[rank].passed(), without[rank].passed()) << "none twice, rank " << rank;
    const std::size_t of_step = rank < 4 ? 2 : 1;
    const std::size_t steps = rank < 4 ? 1 : kPeriod;
    const auto& passed = meshes[rank].passed();
    EXPECT_EQ(
        meshes[rank].before(),
        std::vector(passed.begin(), passed.begin() + static_cast<std::ptrdiff_t>(steps * of_step)));
  }
}

// Whom it leaves alone has a plan of single steps next, and goes on with the window all the same.
TEST_P(LostMeshTest, OneReplicaGoesOnWithItsWindow) {
  const Way& way = GetParam();
  const MeshShape shape{2, 2};
  Replicas meshes(way.options, shape, 2);
  std::barrier together(4);
  meshes.Train({.plan = PlanOf(shape, {8, 4}),
                .before_step = [](int rank, RoundEngine&, std::span<float>) { return rank < 4; },
                .after_step =
                    [&](int, RoundEngine&) {
                      together.arrive_and_wait();
                      return false;
                    }});
  meshes.EndLast();
  ASSERT_TRUE(meshes[0].member().window.has_value());
  Plan alone = PlanOf(shape, {8});
  alone.synchronization = Synchronization::kEveryStep;
  alone.period = 1;

  meshes.Train({.plan = alone}, true);

  for (std::size_t rank = 0; rank < 4; ++rank) {
    const policies::Report& first = meshes[rank].reports().front();
    EXPECT_EQ(first.steps, kPeriod) << "rank " << rank;
    EXPECT_EQ(first.samples_global, 8 * kPeriod) << "rank " << rank;
  }
}

// One has not heard what the norm of the second step is, and the others of its replica have taken
// the step: all is as if the window had not begun, in the moments of optimizers, too.
TEST_P(LostMeshTest, AReplicaOfUnequalStepsHasTheWindowBegunAnew) {
  const Way& way = GetParam();
  const MeshShape shape{2, 2};
  Replicas undisturbed(way.options, shape, 2);
  undisturbed.Train({.plan = PlanOf(shape, {8, 4})});
  Replicas meshes(way.options, shape, 2);

  const auto outcomes =
      meshes.Train({.plan = PlanOf(shape, {8, 4}),
                    .loses_norm = [](int rank, int norm) { return rank == 1 && norm == 1; }});
  for (const auto& outcome : outcomes) EXPECT_EQ(outcome, Outcome::kGroupLost);
  ASSERT_TRUE(meshes[0].member().window && meshes[1].member().window);
  ASSERT_NE(meshes[0].member().window->taken.steps, meshes[1].member().window->taken.steps);
  meshes.Train({.plan = PlanOf(shape, {8, 4})}, true);

  EXPECT_EQ(meshes.Parameters(), undisturbed.Parameters());
  for (std::size_t rank = 0; rank < 8; ++rank) {
    EXPECT_TRUE(meshes[rank].before().empty());
    EXPECT_EQ(meshes[rank].State(), undisturbed[rank].State()) << "rank " << rank;
  }
}

// One gives the group up between two windows, when the others of its replica have begun the next:
// the replica has no part in it, and the other one goes on.
TEST_P(LostMeshTest, AReplicaOfWhichSomeHaveBegunHasNoPartInTheWindow) {
  const Way& way = GetParam();
  const MeshShape shape{2, 2};
  Replicas meshes(way.options, shape, 2);
  std::barrier together(8);

  meshes.Train({.plan = PlanOf(shape, {8, 4}), .after_step = [&](int rank, RoundEngine& engine) {
                  if (engine.rounds() != 2 || !engine.at_edge()) return true;
                  together.arrive_and_wait();
                  return rank != 4;
                }});
  for (std::size_t rank = 0; rank < 8; ++rank) {
    ASSERT_EQ(meshes[rank].member().rounds, 2u);
    EXPECT_EQ(meshes[rank].member().window.has_value(), rank < 4) << "rank " << rank;
  }
  meshes.Train({.plan = PlanOf(shape, {8, 4})}, true);

  meshes.Parameters();  // the same on all
  for (std::size_t rank = 0; rank < 8; ++rank) {
    EXPECT_EQ(meshes[rank].State().ledger, meshes[0].State().ledger);
    const std::uint64_t samples = rank < 4 ? 2 * kPeriod : 0;
    EXPECT_EQ(meshes[rank].reports()[2].samples, samples) << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, LostMeshTest, testing::ValuesIn(AllWays()),
                         [](const auto& way) { return way.param.name; });

}  // namespace
}  // namespace tactus::engine
