// Jobs whose passes go together, against each by itself.

#include "agent/torchscript/fusion.h"

#include <atomic>
#include <chrono>
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
#include "agent/engine/member.h"
#include "agent/engine/round_engine.h"
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

  explicit Bytes(const std::vector<std::uint64_t>& indices) {
    for (const std::uint64_t index : indices) {
      for (std::int64_t t = 0; t < kContext; ++t) {
        const auto byte = [&](std::int64_t at) {
          return static_cast<std::int64_t>((index * 7 + static_cast<std::uint64_t>(at) * 3) % 11);
        };
        inputs_.push_back(byte(t));
        targets_.push_back(byte(t + 1));
      }
    }
    const data::TensorSpec spec{data::ElementType::kInt64, {kContext}};
    examples = {.count = indices.size(),
                .input_specs = {spec},
                .target_spec = spec,
                .inputs = std::as_bytes(std::span(inputs_)),
                .targets = std::as_bytes(std::span(targets_))};
  }

  // A target that the model has no output for.
  void Spoil() { targets_.front() = 1000; }

  model::Examples examples;

 private:
  std::vector<std::int64_t> inputs_, targets_;
};

const model::ModelOptions kTiny = {
    .builtin = "bytes-lm", .width = 16, .heads = 2, .layers = 1, .context = 8};

struct Job {
  engine::OptimizerOptions optimizer{};
  std::uint64_t rounds = 20;
  std::uint64_t model_seed = 1;
  std::uint64_t order_seed = 1;
  double clip_norm = 0;
  std::uint32_t batch = 8;
  std::uint64_t spoilt_from = std::numeric_limits<std::uint64_t>::max();  // round
  // Called behind each round, by the job's thread.
  std::function<void(engine::RoundEngine& engine, std::span<float> parameters)> behind{};
};

struct Curve {
  std::vector<double> losses{};
  Outcome outcome = Outcome::kTraining;
  std::string reason{};
  absl::Status failed{};
};

// As a worker runs it, on this thread. Null: with the model alone.
Curve TrainJob(const Job& job, Fusion* fusion) {
  engine::EngineOptions options = {.seed = job.order_seed,
                                   .train_samples = kSamples,
                                   .optimizer = job.optimizer,
                                   .stop = {.rounds = job.rounds}};
  options.clip_norm = job.clip_norm;
  model::ModelOptions of_model = kTiny;
  of_model.seed = job.model_seed;
  const auto device = cuda::MakeHostDevice("cpu:0");
  std::unique_ptr<model::Model> model;
  {
    std::optional<threads::MutexLock> held;
    if (fusion != nullptr) held.emplace(fusion->opening());
    model = *model::Model::Open(of_model);
  }
  if (fusion != nullptr) model = fusion->Join(std::move(model), of_model, *device);
  const std::size_t length = cuda::FlatLength(model->segments());
  cuda::Buffer parameters = device->Allocate(length);
  cuda::Buffer gradients = device->Allocate(length + engine::LaneCount(1));
  cuda::Sums losses = device->AllocateSums(1);
  model->Bind(parameters.span(), losses.span());
  engine::Member member(options, *device, model->segments(), parameters.span());
  const auto transport = std::move(collective::MakeInProcessGroup(1, worker::Now).front());
  engine::RoundEngine engine(member, {.gradients = gradients.span(), .loss_sum = losses.span()},
                             *transport, {.version = 1, .batch_sizes = {job.batch}});
  Curve curve;
  engine.Begin(worker::Now());
  while (const auto batch = engine.NextBatch()) {
    Bytes bytes(batch->indices);
    if (engine.rounds() >= job.spoilt_from) bytes.Spoil();
    const absl::Status passed =
        model->ForwardBackward(bytes.examples, [&](const model::SegmentGradient& gradient) {
          const cuda::Segment& segment = model->segments()[gradient.segment];
          for (std::size_t i = 0; gradient.values != nullptr && i < segment.length; ++i) {
            gradients.span()[segment.offset + i] += gradient.values[i];
          }
        });
    if (!passed.ok()) {
      EXPECT_GE(engine.rounds(), job.spoilt_from) << passed;
      curve.failed = passed;
      return curve;
    }
    engine.Step({.started = worker::Now(), .finished = worker::Now()});
    while (const auto report = engine.TakeReport()) {
      curve.losses.push_back(report->loss_mean_global);
    }
    if (job.behind) job.behind(engine, parameters.span());
  }
  curve.outcome = engine.outcome();
  curve.reason = engine.reason();
  return curve;
}

std::vector<Curve> RunTogether(Fusion& fusion, const std::vector<Job>& jobs) {
  std::vector<Curve> curves(jobs.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    threads.emplace_back([&, i] { curves[i] = TrainJob(jobs[i], &fusion); });
  }
  for (std::thread& thread : threads) thread.join();
  return curves;
}

void ExpectSame(const Curve& fused, const Curve& alone) {
  EXPECT_EQ(fused.outcome, alone.outcome);
  ASSERT_EQ(fused.losses.size(), alone.losses.size());
  for (std::size_t i = 0; i < alone.losses.size(); ++i) {
    EXPECT_NEAR(fused.losses[i], alone.losses[i], 1e-4 * alone.losses[i]) << "round " << i;
  }
}

// Rates, momentum, rules, clipping, seeds, batches and ends of their own.
TEST(FusionTest, EachJobsCurveIsThatOfItsSoloRun) {
  const std::vector<Job> jobs = {
      {.optimizer = engine::SgdOptions{.learning_rate = 0.1}, .clip_norm = 0.05},
      {.optimizer =
           engine::SgdOptions{.learning_rate = 0.03, .momentum = 0.9, .weight_decay = 0.01},
       .rounds = 13,
       .model_seed = 2},
      {.optimizer = engine::AdamOptions{.learning_rate = 0.003}, .order_seed = 9},
      {.optimizer = engine::LambOptions{}, .model_seed = 3},
      {.optimizer = engine::SgdOptions{.learning_rate = 0.1}, .batch = 5}};
  Fusion fusion;

  const std::vector<Curve> fused = RunTogether(fusion, jobs);

  for (std::size_t i = 0; i < jobs.size(); ++i) {
    SCOPED_TRACE(i);
    ExpectSame(fused[i], TrainJob(jobs[i], nullptr));
  }
  EXPECT_EQ(fused[1].losses.size(), 13u);
  const Fusion::Counts counts = fusion.counts();
  EXPECT_GT(counts.fused, 10u);
  EXPECT_GT(counts.parts, 2 * counts.fused) << "most went four at a time";
}

// Where one's numbers are no longer finite it ends as it does alone, and the others do not notice.
TEST(FusionTest, OneThatDivergesLeavesAndTheOthersGoOn) {
  std::vector<Job> jobs(3, {.optimizer = engine::SgdOptions{.learning_rate = 0.1}});
  for (std::size_t i = 0; i < 3; ++i) jobs[i].model_seed = i + 1;
  const Curve first = TrainJob(jobs[0], nullptr);
  const Curve last = TrainJob(jobs[2], nullptr);
  jobs[1].behind = [](engine::RoundEngine&, std::span<float> parameters) {
    parameters[0] = std::numeric_limits<float>::quiet_NaN();
  };
  Fusion fusion;

  const std::vector<Curve> curves = RunTogether(fusion, jobs);

  EXPECT_EQ(curves[1].outcome, Outcome::kDiverged);
  EXPECT_THAT(curves[1].reason, HasSubstr("not finite"));
  ExpectSame(curves[0], first);
  ExpectSame(curves[2], last);
}

// It hears of it before anybody waits for it.
TEST(FusionTest, APassFailsOnlyForTheOneWhoseInputsAreWrong) {
  std::vector<Job> jobs(3, {.optimizer = engine::SgdOptions{.learning_rate = 0.1}});
  for (std::size_t i = 0; i < 3; ++i) jobs[i].model_seed = i + 1;
  jobs[1].spoilt_from = 5;
  Fusion fusion;

  const std::vector<Curve> curves = RunTogether(fusion, jobs);

  EXPECT_THAT(curves[1].failed.message(), HasSubstr("1000"));
  EXPECT_EQ(curves[1].losses.size(), 5u);
  ExpectSame(curves[0], TrainJob(jobs[0], nullptr));
  ExpectSame(curves[2], TrainJob(jobs[2], nullptr));
  EXPECT_GT(fusion.counts().fused, 10u) << "the two that are left go together again";
}

TEST(FusionTest, OneThatIsCancelledLeavesAfterItsRound) {
  std::vector<Job> jobs(2, {.optimizer = engine::SgdOptions{.learning_rate = 0.1}});
  jobs[0].behind = [](engine::RoundEngine& engine, std::span<float>) {
    if (engine.rounds() == 5) engine.RequestStop("enough", engine::StopKind::kDiscard);
  };
  Fusion fusion;

  const std::vector<Curve> curves = RunTogether(fusion, jobs);

  EXPECT_EQ(curves[0].outcome, Outcome::kDiscarded);
  EXPECT_EQ(curves[0].reason, "enough");
  EXPECT_LT(curves[0].losses.size(), 8u);
  ExpectSame(curves[1], TrainJob(jobs[1], nullptr));
}

// One that is at something else, as a validation, holds nobody up, and finds the others again.
TEST(FusionTest, WhoStandsStillIsNotWaitedFor) {
  std::vector<Job> jobs(3, {.optimizer = engine::SgdOptions{.learning_rate = 0.1}, .rounds = 200});
  std::atomic<int> done = 0;
  jobs[0].behind = [&](engine::RoundEngine& engine, std::span<float>) {
    if (engine.rounds() != 20) return;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (done < 2 && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  for (const std::size_t i : {1, 2}) {
    jobs[i].behind = [&](engine::RoundEngine& engine, std::span<float>) {
      if (engine.rounds() == 200) ++done;
    };
  }
  Fusion fusion;

  const std::vector<Curve> curves = RunTogether(fusion, jobs);

  EXPECT_EQ(done, 2) << "they waited for the one that stood";
  for (const Curve& curve : curves) EXPECT_EQ(curve.losses.size(), 200u);
  EXPECT_GT(fusion.counts().fused, 100u);
  EXPECT_GE(fusion.counts().alone, 100u) << "the last rounds of the one that stood";
}

TEST(FusionTest, AModelThatCannotBeFusedIsAsItWas) {
  const auto device = cuda::MakeHostDevice("cpu:0");
  const model::ModelOptions options = {.builtin = "resnet18", .width = 4};
  std::unique_ptr<model::Model> own = *model::Model::Open(options);
  const model::Model* const before = own.get();
  Fusion fusion;

  const std::unique_ptr<model::Model> joined = fusion.Join(std::move(own), options, *device);

  EXPECT_EQ(joined.get(), before);
}

}  // namespace
}  // namespace tactus::torchscript
