// What a round costs the host: how often it waits for the device or for other members, and how many
// operations it queues, counted on the doubles of the CUDA runtime and of NCCL.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/agent/engine/nccl_double/on_devices.h"
#include "tests/support/cuda_double/cuda_double.h"

namespace tactus::engine {
namespace {

using collective::Collective;
using collective::Completion;
using collective::Progress;
using policies::Aggregation;
using policies::Synchronization;

// Of the calling thread: waits for collectives that nothing says are over.
int& WaitsForOthers() {
  thread_local int waits = 0;
  return waits;
}

class CountedCollective : public Collective {
 public:
  // over: from the start, as in a group of one. orders: by the device, where the inner one can.
  CountedCollective(std::unique_ptr<Collective> inner, bool over, bool orders)
      : inner_(std::move(inner)), orders_(orders), ordered_(over) {}

  Progress Poll() override { return inner_->Poll(); }
  Completion Wait() override {
    if (!ordered_) ++WaitsForOthers();
    return inner_->Wait();
  }
  Progress WaitOnDevice() override {
    const Progress progress = orders_ ? inner_->WaitOnDevice() : inner_->Wait().progress;
    if (!ordered_ && !orders_) ++WaitsForOthers();
    ordered_ = true;
    return progress;
  }

 private:
  const std::unique_ptr<Collective> inner_;
  const bool orders_;
  bool ordered_;  // whoever has waited for the device since has waited for this
};

class CountedTransport : public collective::Transport {
 public:
  CountedTransport(std::unique_ptr<collective::Transport> inner, bool orders)
      : inner_(std::move(inner)), orders_(orders) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::unique_ptr<Collective> Start(const collective::Operation& operation) override {
    return std::make_unique<CountedCollective>(inner_->Start(operation), size() == 1, orders_);
  }
  const std::uint32_t* lost() const override { return inner_->lost(); }
  void Abort(const std::string& reason) override { inner_->Abort(reason); }

 private:
  const std::unique_ptr<collective::Transport> inner_;
  const bool orders_;
};

struct StepCosts {
  int waits = 0;
  int launches = 0;
  bool closed = false;  // a round
};

// A member whose model is two operations a pass on the device, of which one adds up the losses and
// the other the gradients; with `brings` these stay where they are until they are asked for, as
// libtorch's do, and at the end of a pass at the latest.
std::vector<StepCosts> CostsOf(const GroupRun& run, cuda::Device& device,
                               collective::Transport& transport, bool brings) {
  cuda::SegmentTable segments{{.name = "a", .length = 64, .shape = {64}},
                              {.name = "b", .length = 64, .shape = {64}}};
  cuda::AssignOffsets(segments);
  const auto members = static_cast<std::size_t>(transport.size());
  cuda::Buffer parameters = device.Allocate(cuda::FlatLength(segments));
  cuda::Buffer gradients = device.Allocate(parameters.size() + LaneCount(members));
  cuda::Buffer pass = device.Allocate(parameters.size());
  cuda::Sums losses = device.AllocateSums(1);
  device.Fill(0.5f, pass.span());
  bool waits = false;
  const auto bring = [&](std::span<float> stretch, std::span<double> norm2) {
    if (!waits) return false;
    const cuda::GatherPart part{.length = stretch.size(), .from = pass.span().data()};
    device.Gather({.parts = {&part, 1}}, stretch, norm2);
    return true;
  };
  Member member(run.options, device, segments, parameters.span());
  RoundEngine engine(member,
                     {.gradients = gradients.span(),
                      .loss_sum = losses.span(),
                      .bring = brings ? BringStretch(bring) : BringStretch()},
                     transport, run.plan);
  EXPECT_TRUE(engine.Begin(Instant()));
  std::vector<StepCosts> steps;
  const auto now = [] {
    cuda_double::Costs costs = cuda_double::CostsOfThread();
    costs.waits += WaitsForOthers();
    return costs;
  };
  for (cuda_double::Costs before = now(); std::optional<Batch> batch = engine.NextBatch();) {
    waits = brings && batch->last_of_round;
    const std::span<float> vector = gradients.span().first(pass.size());
    if (!brings) device.Axpy(1, pass.span(), vector);
    if (brings && !waits) device.Copy(pass.span(), vector);
    device.AddSquaredNorm(pass.span().first(1), losses.span());
    const int of_model = (now() - before).launches;
    if (batch->awaited) device.Synchronize();
    if (batch->last_of_round) {
      for (std::size_t i = 0; i < segments.size(); ++i) engine.SegmentReady(i);
    }
    waits = false;
    engine.Step({});
    const cuda_double::Costs costs = now() - before;
    const bool closed = engine.TakeReport().has_value();
    steps.push_back(
        {.waits = costs.waits, .launches = costs.launches - of_model, .closed = closed});
    before = now();
  }
  EXPECT_EQ(engine.outcome(), Outcome::kFinished) << engine.reason();
  return steps;
}

struct Case {
  std::string name{};
  GroupRun run{};
  StepCosts within{};  // of a step that closes no round
  StepCosts at_end{};  // of one that does
  // The same over a transport that waits for its collectives, as all of them did once.
  int waits_of_old = 0;
};
void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

GroupRun RunOf(std::vector<std::uint32_t> batch_sizes, std::uint32_t period) {
  GroupRun run{.options = {.train_samples = 6000,
                           .optimizer = SgdOptions{.learning_rate = 0.01, .momentum = 0.9},
                           .clip_norm = 0.5,
                           .stop = {.rounds = 6},
                           .bucket_bytes = 1 << 20},
               .plan = {.period = period, .batch_sizes = std::move(batch_sizes)}};
  if (period > 1) run.plan.synchronization = Synchronization::kPeriodic;
  return run;
}

std::vector<Case> Cases() {
  // The lanes are waited for.
  std::vector<Case> cases = {
      {.name = "Period1",
       .run = RunOf({8, 4}, 1),
       .at_end = {.waits = 1, .launches = 11},
       .waits_of_old = 2},
      {.name = "Period1Alone",
       .run = RunOf({8}, 1),
       .at_end = {.waits = 1, .launches = 11},
       .waits_of_old = 1},
      {.name = "Period1WithAdascale",
       .run = RunOf({8, 8}, 1),
       .at_end = {.waits = 1, .launches = 11},
       .waits_of_old = 2},
      {.name = "Period1WithAdasum",
       .run = RunOf({8, 4}, 1),
       .at_end = {.waits = 1, .launches = 22},
       .waits_of_old = 4},
      {.name = "Window",
       .run = RunOf({8, 4}, 4),
       .within = {.waits = 0, .launches = 6},
       .at_end = {.waits = 1, .launches = 21},
       .waits_of_old = 2},
  };
  cases[2].run.plan.learning_rate_rule = policies::LearningRateRule::kAdascale;
  cases[3].run.plan.aggregation = Aggregation::kAdasum;
  cases[3].run.options.optimizer = SgdOptions{.learning_rate = 0.01};
  return cases;
}

class RoundCostsTest : public OnDevices, public ::testing::WithParamInterface<Case> {
 protected:
  // By rank.
  std::vector<std::vector<StepCosts>> CostsOfAll(bool orders, bool brings = false) {
    const GroupRun& run = GetParam().run;
    std::vector<Place> places = Places(static_cast<int>(run.plan.batch_sizes.size()));
    std::vector<std::vector<StepCosts>> costs(places.size());
    for (Place& place : places) {
      place.transport = std::make_unique<CountedTransport>(std::move(place.transport), orders);
    }
    collective::OnEveryRank(static_cast<int>(places.size()), [&](int rank) {
      const auto index = static_cast<std::size_t>(rank);
      costs[index] = CostsOf(run, *places[index].device, *places[index].transport, brings);
    });
    collective::OnEveryRank(static_cast<int>(places.size()), [&](int rank) {
      places[static_cast<std::size_t>(rank)].transport.reset();
    });
    return costs;
  }

  // Of the steps beyond the first rounds, which make memory, tables and plans; without those that
  // open a window, and keep its start.
  static void ExpectCosts(const std::vector<StepCosts>& steps, const StepCosts& at_end,
                          int launches_within = GetParam().within.launches) {
    const std::uint32_t period = GetParam().run.plan.period;
    ASSERT_EQ(steps.size(), 6 * period);
    for (std::size_t i = 2 * period; i < steps.size(); ++i) {
      if (i % period == 0 && period > 1) continue;
      const StepCosts& expected = steps[i].closed ? at_end : GetParam().within;
      EXPECT_EQ(steps[i].waits, expected.waits) << i;
      EXPECT_EQ(steps[i].launches, steps[i].closed ? expected.launches : launches_within) << i;
    }
  }
};

TEST_P(RoundCostsTest, AreThoseOfTheTable) {
  for (const std::vector<StepCosts>& steps : CostsOfAll(true)) {
    ExpectCosts(steps, GetParam().at_end);
  }
}

TEST_P(RoundCostsTest, AreMoreWhereCollectivesAreWaitedFor) {
  StepCosts at_end = GetParam().at_end;
  at_end.waits = GetParam().waits_of_old;

  for (const std::vector<StepCosts>& steps : CostsOfAll(false)) ExpectCosts(steps, at_end);
}

// A bucket's gradients come by the launch that takes its norm, so the engine has no operation more,
// and the model has none: without, an addition a tensor. Where none leaves early, in windows and
// for Adasum, clearing the vector after a step is one less.
TEST_P(RoundCostsTest, AreNotMoreWhereGradientsAreBrought) {
  StepCosts at_end = GetParam().at_end;
  if (GetParam().run.plan.period > 1) --at_end.launches;

  for (const std::vector<StepCosts>& steps : CostsOfAll(true, true)) {
    ExpectCosts(steps, at_end, GetParam().within.launches - 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Every, RoundCostsTest, ::testing::ValuesIn(Cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tactus::engine
