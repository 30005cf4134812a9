// Jobs of an array against each by itself.

#include "agent/torchscript/fused_array.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/collective/in_process.h"
#include "agent/engine/combine/lanes.h"
#include "agent/model/model.h"
#include "agent/worker/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tactus::torchscript {
namespace {

using engine::Outcome;
using testing::HasSubstr;

constexpr std::uint64_t kSamples = 50;

// Samples of a few bytes each, invented.
class Bytes {
 public:
  static constexpr std::int64_t kContext = 8;

  model::Examples Of(const std::vector<std::uint64_t>& indices) {
    inputs_.emplace_back();
    targets_.emplace_back();
    for (const std::uint64_t index : indices) {
      for (std::int64_t t = 0; t < kContext; ++t) {
        const auto byte = [&](std::int64_t at) {
          return static_cast<std::int64_t>((index * 7 + static_cast<std::uint64_t>(at) * 3) % 11);
        };
        inputs_.back().push_back(byte(t));
        targets_.back().push_back(byte(t + 1));
      }
    }
    const data::TensorSpec spec{data::ElementType::kInt64, {kContext}};
    return {.count = indices.size(),
            .input_specs = {spec},
            .target_spec = spec,
            .inputs = std::as_bytes(std::span(inputs_.back())),
            .targets = std::as_bytes(std::span(targets_.back()))};
  }

 private:
  std::vector<std::vector<std::int64_t>> inputs_, targets_;
};

const model::ModelOptions kTiny = {
    .builtin = "bytes-lm", .width = 16, .heads = 2, .layers = 1, .context = 8};

ArrayJob Job(engine::OptimizerOptions optimizer, std::uint64_t rounds = 20) {
  return {.options = {.seed = 1,
                      .train_samples = kSamples,
                      .optimizer = optimizer,
                      .stop = {.rounds = rounds}},
          .batch = 8};
}

struct Curve {
  std::vector<double> losses{};
  std::vector<float> parameters{};
  Outcome outcome = Outcome::kTraining;
  std::string reason{};
};

// An array with a seed of initial weights each, to its end.
class Array {
 public:
  Array(std::vector<ArrayJob> jobs, const std::vector<std::uint64_t>& seeds)
      : device_(cuda::MakeHostDevice("cpu:0")),
        fused_(*model::FusedModel::Open(kTiny, seeds)),
        array_(*device_, fused_->segments(), std::move(jobs)) {
    fused_->Bind(array_.parameters());
    array_.Begin();
  }

  std::vector<Curve> Run() {
    std::vector<Curve> curves(array_.size());
    const FusedPass pass = [this](auto jobs, auto indices, model::Rows gradients, auto losses) {
      Bytes bytes;
      std::vector<model::Examples> examples;
      for (const auto& one : indices) examples.push_back(bytes.Of(one));
      const absl::Status status = fused_->ForwardBackward(jobs, examples, gradients, losses);
      if (spoil) spoil(jobs, gradients);
      return status;
    };
    while (*array_.Step(pass, [&](std::size_t job, const policies::Report& report) {
      curves[job].losses.push_back(report.loss_mean_global);
      if (on_report) on_report(job, report);
    })) {
    }
    const std::size_t length = cuda::FlatLength(fused_->segments());
    for (std::size_t i = 0; i < curves.size(); ++i) {
      const auto row = array_.parameters().Row(i).first(length);
      curves[i].parameters.assign(row.begin(), row.end());
      curves[i].outcome = array_.standing(i).outcome;
      curves[i].reason = array_.standing(i).reason;
    }
    return curves;
  }

  FusedArray& array() { return array_; }

  std::function<void(std::span<const std::size_t>, model::Rows)> spoil{};
  std::function<void(std::size_t, const policies::Report&)> on_report{};

 private:
  std::unique_ptr<cuda::Device> device_;
  std::unique_ptr<model::FusedModel> fused_;
  FusedArray array_;
};

// The same job by the single model and an engine, as a worker runs it.
Curve Alone(const ArrayJob& job, std::uint64_t seed) {
  model::ModelOptions options = kTiny;
  options.seed = seed;
  const auto device = cuda::MakeHostDevice("cpu:0");
  const auto model = *model::Model::Open(options);
  const std::size_t length = cuda::FlatLength(model->segments());
  cuda::Buffer parameters = device->Allocate(length);
  cuda::Buffer gradients = device->Allocate(length + engine::LaneCount(1));
  cuda::Sums losses = device->AllocateSums(1);
  model->Bind(parameters.span(), losses.span());
  engine::Member member(job.options, *device, model->segments(), parameters.span());
  const auto transport = std::move(collective::MakeInProcessGroup(1, worker::Now).front());
  engine::RoundEngine engine(member, {.gradients = gradients.span(), .loss_sum = losses.span()},
                             *transport, {.version = 1, .batch_sizes = {job.batch}});
  Curve curve;
  engine.Begin(worker::Now());
  while (const auto batch = engine.NextBatch()) {
    Bytes bytes;
    const absl::Status passed = model->ForwardBackward(
        bytes.Of(batch->indices), [&](const model::SegmentGradient& gradient) {
          const cuda::Segment& segment = model->segments()[gradient.segment];
          for (std::size_t i = 0; gradient.values != nullptr && i < segment.length; ++i) {
            gradients.span()[segment.offset + i] += gradient.values[i];
          }
        });
    EXPECT_TRUE(passed.ok()) << passed;
    engine.Step({.started = worker::Now(), .finished = worker::Now()});
    while (const auto report = engine.TakeReport())
      curve.losses.push_back(report->loss_mean_global);
  }
  curve.parameters.assign(parameters.span().begin(), parameters.span().end());
  curve.outcome = engine.outcome();
  return curve;
}

void ExpectSame(const Curve& fused, const Curve& alone) {
  EXPECT_EQ(fused.outcome, alone.outcome);
  ASSERT_EQ(fused.losses.size(), alone.losses.size());
  for (std::size_t i = 0; i < alone.losses.size(); ++i) {
    EXPECT_NEAR(fused.losses[i], alone.losses[i], 1e-4 * alone.losses[i]) << "round " << i;
  }
}

// Rates, momentum, rules, clipping, schedules, seeds and ends of their own.
TEST(FusedArrayTest, EachJobsCurveIsThatOfItsSoloRun) {
  std::vector<ArrayJob> jobs = {
      Job(engine::SgdOptions{.learning_rate = 0.1}),
      Job(engine::SgdOptions{.learning_rate = 0.03, .momentum = 0.9, .weight_decay = 0.01}, 13),
      Job(engine::AdamOptions{.learning_rate = 0.003}), Job(engine::LambOptions{})};
  jobs[0].options.clip_norm = 0.05;
  jobs[2].options.learning_rate.schedule = {.warmup_steps = 5};
  jobs[2].options.seed = 9;  // other samples, in another order
  const std::vector<std::uint64_t> seeds = {1, 2, 2, 3};

  const std::vector<Curve> fused = Array(jobs, seeds).Run();

  for (std::size_t i = 0; i < jobs.size(); ++i) {
    SCOPED_TRACE(i);
    ExpectSame(fused[i], Alone(jobs[i], seeds[i]));
  }
  EXPECT_EQ(fused[1].losses.size(), 13u);
}

// Where one's numbers are no longer finite it ends as it does alone, and no bit of another changes.
TEST(FusedArrayTest, OneThatDivergesLeavesAndTheOthersGoOn) {
  const std::vector<ArrayJob> jobs(3, Job(engine::SgdOptions{.learning_rate = 0.1}));
  const std::vector<std::uint64_t> seeds = {1, 2, 3};
  const std::vector<Curve> before = Array(jobs, seeds).Run();
  Array array(jobs, seeds);
  array.spoil = [](std::span<const std::size_t> running, model::Rows gradients) {
    if (std::ranges::count(running, 1u) == 0) return;
    gradients.Row(1)[0] = std::numeric_limits<float>::quiet_NaN();
  };

  const std::vector<Curve> after = array.Run();

  EXPECT_EQ(after[1].outcome, Outcome::kDiverged);
  EXPECT_THAT(after[1].reason, HasSubstr("not finite in 10 rounds"));
  EXPECT_EQ(array.array().standing(1).rounds, 10u);
  for (const std::size_t i : {0, 2}) {
    EXPECT_EQ(after[i].outcome, Outcome::kFinished);
    EXPECT_EQ(after[i].losses.size(), 20u);
    ExpectSame(after[i], before[i]);
  }
}

TEST(FusedArrayTest, OneThatIsCancelledLeavesAfterItsRound) {
  Array array(std::vector<ArrayJob>(2, Job(engine::SgdOptions{.learning_rate = 0.1})), {1, 2});
  array.on_report = [&](std::size_t job, const policies::Report& report) {
    if (job == 0 && report.round == 4) array.array().Cancel(0, "enough");
  };

  const std::vector<Curve> curves = array.Run();

  EXPECT_EQ(curves[0].outcome, Outcome::kDiscarded);
  EXPECT_EQ(curves[0].reason, "enough");
  EXPECT_EQ(curves[0].losses.size(), 6u);
  EXPECT_EQ(curves[1].losses.size(), 20u);
}

// Section 6h, vectors 3 and 4: norms of one job's gradient, and steps of its own rate.
TEST(FusedArrayPaperTest, ClippingAndAdamAreByJob) {
  cuda::SegmentTable segments = {{.name = "x", .length = 2, .shape = {2}}};
  cuda::AssignOffsets(segments);
  const auto device = cuda::MakeHostDevice("cpu:0");
  const auto step = [&](std::vector<ArrayJob> jobs, std::vector<std::vector<float>> slopes) {
    FusedArray array(*device, segments, std::move(jobs));
    array.Begin();
    const FusedPass pass = [&](auto running, auto, model::Rows gradients, auto) {
      for (const std::size_t job : running) {
        for (std::size_t k = 0; k < 2; ++k) gradients.Row(job)[k] += slopes[job][k];
      }
      return absl::OkStatus();
    };
    EXPECT_TRUE(array.Step(pass, [](std::size_t, const policies::Report&) {}).ok());
    std::vector<float> moved;
    for (std::size_t job = 0; job < 2; ++job) {
      const auto row = array.parameters().Row(job);
      moved.insert(moved.end(), row.begin(), row.begin() + 2);
    }
    return moved;
  };
  ArrayJob clipped = Job(engine::SgdOptions{.learning_rate = 1}, 1);
  clipped.options.clip_norm = 1;
  clipped.batch = 1;
  ArrayJob fast = Job(engine::AdamOptions{.learning_rate = 0.1}, 1);
  ArrayJob slow = Job(engine::AdamOptions{.learning_rate = 0.01}, 1);
  fast.batch = slow.batch = 1;

  const std::vector<float> by_norm = step({clipped, clipped}, {{3, 4}, {.3F, .4F}});
  const std::vector<float> by_rate = step({fast, slow}, {{.5F, .5F}, {-2, -2}});

  const std::vector<float> expected = {-.6F, -.8F, -.3F, -.4F};
  EXPECT_THAT(by_norm, testing::Pointwise(testing::FloatNear(1e-6F), expected));
  EXPECT_NEAR(by_rate[0], -.099999998, 1e-7);
  EXPECT_NEAR(by_rate[2], .00999999995, 1e-8);
}

}  // namespace
}  // namespace tactus::torchscript
