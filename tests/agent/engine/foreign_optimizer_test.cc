// An optimizer that is not the engine's trains as the engine's own does, whatever a plan asks for.

#include "agent/engine/foreign_optimizer.h"

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "agent/engine/optimizer.h"
#include "agent/engine/round_engine.h"
#include "gtest/gtest.h"
#include "tests/agent/engine/linear_task.h"

namespace tactus::engine {
namespace {

using policies::Aggregation;
using policies::Plan;
using policies::Synchronization;

// The engine's arithmetic behind the interface, at a rate of its own.
class Wrapped : public ForeignOptimizer {
 public:
  Wrapped(OptimizerOptions options, double rate, cuda::Device& device,
          const cuda::SegmentTable& segments, std::span<float> parameters)
      : optimizer_(std::move(options), device, segments), rate_(rate), parameters_(parameters) {}

  void Step(std::span<float> gradients, double gain) override {
    ++calls_;
    optimizer_.Step(gradients, {.learning_rate = rate_ * gain}, parameters_);
  }
  std::vector<std::span<float>> State() override { return optimizer_.State(); }
  void TakeState(std::uint64_t steps) override { optimizer_.GoOnFrom(steps); }

  std::uint64_t steps() const { return optimizer_.steps(); }
  std::uint64_t calls() const { return calls_; }

 private:
  Optimizer optimizer_;
  const double rate_;
  const std::span<float> parameters_;
  std::uint64_t calls_ = 0;
};

struct Kind {
  OptimizerOptions own{};
  ForeignOptions foreign{};
};

std::vector<Kind> Kinds() {
  const SgdOptions sgd{.learning_rate = 0.01, .momentum = 0.5, .weight_decay = 1e-3};
  const AdamOptions adam{.learning_rate = 0.01, .decoupled = true};
  return {{.own = sgd,
           .foreign = {.kind = "sgd",
                       .state_buffers = 1,
                       .has_step_counts = false,
                       .window_momentum = policies::WindowMomentum{.momentum = 0.5}}},
          {.own = adam,
           .foreign = {.kind = "adamw",
                       .state_buffers = 2,
                       .bending_decay = adam.beta2,
                       .window_momentum = policies::WindowMomentum{.momentum = adam.beta1,
                                                                   .weight = 1 - adam.beta1}}}};
}

// Who has how many samples of delayed rounds is a matter of time: alone it is known.
std::vector<Plan> Plans() {
  return {{.batch_sizes = {7, 5, 3, 1}},
          {.aggregation = Aggregation::kAdasum, .batch_sizes = {4, 4}},
          {.synchronization = Synchronization::kPeriodic, .period = 3, .batch_sizes = {7, 5, 3}},
          {.synchronization = Synchronization::kDelayed, .period = 4, .batch_sizes = {7}}};
}

class Wrappers {
 public:
  explicit Wrappers(Kind kind) : kind_(std::move(kind)) {}

  OptimizerOptions Make(int rank, cuda::Device& device, const cuda::SegmentTable& segments,
                        std::span<float> parameters) {
    const std::lock_guard lock(mutex_);
    auto& made = made_[rank];
    made = std::make_unique<Wrapped>(kind_.own, BaseLearningRate(kind_.own), device, segments,
                                     parameters);
    ForeignOptions options = kind_.foreign;
    options.steps = made.get();
    return options;
  }
  const Wrapped& of(int rank) const { return *made_.at(rank); }

 private:
  const Kind kind_;
  std::mutex mutex_;
  std::map<int, std::unique_ptr<Wrapped>> made_;
};

GroupRun Of(const Plan& plan) {
  return {.options = {.train_samples = 203,
                      .micro_batch = 3,
                      .clip_norm = 1.5,
                      .keep_local_momentum = false,
                      .stop = {.epochs = 2}},
          .plan = plan};
}

// Rates are products of two numbers here and one there: a last bit of float32 in each of some 40
// steps.
constexpr double kTolerance = 1e-5;

TEST(ForeignOptimizerTest, ItTrainsAsTheEnginesOwn) {
  for (const Kind& kind : Kinds()) {
    for (const Plan& plan : Plans()) {
      SCOPED_TRACE(kind.foreign.kind + ", " +
                   std::to_string(static_cast<int>(plan.synchronization)));
      GroupRun run = Of(plan);
      run.options.optimizer = kind.own;
      const std::vector<MemberRun> own = Train(run);
      Wrappers wrappers(kind);
      run.own_optimizer = [&](int rank, auto& device, const auto& segments, auto parameters) {
        return wrappers.Make(rank, device, segments, parameters);
      };

      const std::vector<MemberRun> foreign = Train(run);

      for (std::size_t rank = 0; rank < own.size(); ++rank) {
        EXPECT_EQ(foreign[rank].parameters, foreign[0].parameters);
        EXPECT_EQ(foreign[rank].reports.size(), own[rank].reports.size());
        for (std::size_t i = 0; i < own[rank].parameters.size(); ++i) {
          EXPECT_NEAR(foreign[rank].parameters[i], own[rank].parameters[i], kTolerance) << i;
        }
        EXPECT_GT(wrappers.of(static_cast<int>(rank)).calls(), 0u);
        EXPECT_EQ(wrappers.of(static_cast<int>(rank)).steps(), own[rank].state->steps);
      }
    }
  }
}

TEST(ForeignOptimizerTest, AStepWhoseGateIsShutIsNotAskedFor) {
  GroupRun run = Of({.batch_sizes = {4, 4}});
  run.options.nonfinite_rounds_max = 100;
  Wrappers wrappers(Kinds()[1]);
  run.own_optimizer = [&](int rank, auto& device, const auto& segments, auto parameters) {
    return wrappers.Make(rank, device, segments, parameters);
  };
  run.after_gradient = [](int rank, std::uint64_t round, std::span<float> gradients) {
    if (rank == 1 && round % 5 == 2) gradients[0] = std::numeric_limits<float>::quiet_NaN();
  };

  const std::vector<MemberRun> done = Train(run);

  const auto rounds = static_cast<std::uint64_t>(done[0].reports.size());
  ASSERT_GT(rounds, 40u);
  const std::uint64_t lost = (rounds + 2) / 5;
  EXPECT_EQ(wrappers.of(0).calls(), rounds - lost);
  EXPECT_EQ(wrappers.of(1).calls(), rounds - lost);
  EXPECT_EQ(done[0].parameters, done[1].parameters);
}

// What training goes on from has the foreign state, which another instance takes.
TEST(ForeignOptimizerTest, AStateGoesOnElsewhere) {
  for (const Kind& kind : Kinds()) {
    SCOPED_TRACE(kind.foreign.kind);
    GroupRun run = Of({.batch_sizes = {5, 4}});
    run.options.stop = {.rounds = 30};
    Wrappers whole(kind);
    run.own_optimizer = [&](int rank, auto& device, const auto& segments, auto parameters) {
      return whole.Make(rank, device, segments, parameters);
    };
    run.keep_edges = true;
    const std::vector<MemberRun> through = Train(run);
    run.from = through[0].edges[9];
    Wrappers rest(kind);
    run.own_optimizer = [&](int rank, auto& device, const auto& segments, auto parameters) {
      return rest.Make(rank, device, segments, parameters);
    };

    const std::vector<MemberRun> resumed = Train(run);

    EXPECT_EQ(resumed[0].parameters, through[0].parameters);
    EXPECT_EQ(rest.of(1).steps(), 30u);
    EXPECT_EQ(rest.of(1).calls(), 20u);
  }
}

}  // namespace
}  // namespace tactus::engine
