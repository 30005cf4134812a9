#include "tests/agent/engine/linear_task.h"

#include <array>
#include <memory>
#include <thread>

#include "agent/collective/in_process.h"
#include "agent/engine/lanes.h"
#include "base/rng.h"

namespace tactus::engine {
namespace {

struct Sample {
  std::array<float, kWeights> x;
  float y;
};

Sample At(std::uint64_t index) {
  Rng rng = Rng(99).Fork(std::to_string(index));
  Sample sample{};
  float y = 0.5f;
  for (std::size_t i = 0; i < kWeights; ++i) {
    sample.x[i] = static_cast<float>(rng.Normal());
    y += sample.x[i] * static_cast<float>(i) * 0.1f;
  }
  sample.y = y + 0.1f * static_cast<float>(rng.Normal());
  return sample;
}

// Adds the gradient of the squared error over two; returns it.
double AddGradient(const Sample& sample, std::span<const float> parameters,
                   const cuda::SegmentTable& segments, std::span<float> gradients) {
  const std::size_t bias = segments[1].offset;
  float error = parameters[bias] - sample.y;
  for (std::size_t i = 0; i < kWeights; ++i) error += parameters[i] * sample.x[i];
  for (std::size_t i = 0; i < kWeights; ++i) gradients[i] += error * sample.x[i];
  gradients[bias] += error;
  return 0.5 * error * error;
}

class Member {
 public:
  Member(const GroupRun& run, collective::Transport& transport)
      : run_(run),
        transport_(transport),
        device_(cuda::MakeHostDevice("cpu:0")),
        segments_{{.name = "weight", .length = kWeights, .shape = {kWeights}},
                  {.name = "bias", .length = 1, .shape = {1}}} {
    cuda::AssignOffsets(segments_);
    const std::size_t length = cuda::FlatLength(segments_);
    parameters_ = device_->Allocate(length);
    gradients_ = device_->Allocate(length + LaneCount(static_cast<std::size_t>(transport.size())));
  }

  MemberRun Run() {
    RoundEngine engine(run_.options, *device_, segments_,
                       {.parameters = parameters_.span(), .gradients = gradients_.span()},
                       transport_, run_.plan);
    MemberRun done;
    engine.Begin(Tick());
    while (std::optional<Batch> batch = engine.NextBatch()) {
      if (run_.vanish && run_.vanish(transport_.rank(), engine.rounds())) break;
      const std::uint64_t plan_version = engine.plan().version;
      StepResult result = Compute(engine, *batch);
      if (run_.before_step) run_.before_step(transport_.rank(), engine, result);
      engine.Step(result);
      pending_.insert(pending_.end(), batch->indices.begin(), batch->indices.end());
      if (const auto report = engine.TakeReport()) {
        done.reports.push_back(*report);
        done.plan_versions.push_back(plan_version);
        auto& used = done.used[batch->epoch];
        used.insert(used.end(), pending_.begin(), pending_.end());
        pending_.clear();
      }
    }
    done.parameters.assign(parameters_.span().begin(), parameters_.span().end());
    done.outcome = engine.outcome();
    done.reason = engine.reason();
    return done;
  }

 private:
  Instant Tick() { return now_ += std::chrono::milliseconds(1); }

  StepResult Compute(RoundEngine& engine, const Batch& batch) {
    StepResult result{.started = Tick()};
    for (const std::uint64_t index : batch.indices) {
      result.loss_sum += AddGradient(At(index), parameters_.span(), segments_, gradients_.span());
    }
    if (run_.after_gradient) {
      run_.after_gradient(transport_.rank(), batch.round, gradients_.span());
    }
    if (run_.announce_segments && batch.last_of_round) {
      engine.SegmentReady(0);
      engine.SegmentReady(1);
    }
    result.finished = Tick();
    return result;
  }

  const GroupRun& run_;
  collective::Transport& transport_;
  std::unique_ptr<cuda::Device> device_;
  cuda::SegmentTable segments_;
  cuda::Buffer parameters_;
  cuda::Buffer gradients_;
  std::vector<std::uint64_t> pending_;  // used in the running round
  Instant now_;
};

}  // namespace

std::vector<MemberRun> Train(const GroupRun& run) {
  const int size = static_cast<int>(run.plan.batch_sizes.size());
  auto group = collective::MakeInProcessGroup(size, [] { return Instant{}; });
  std::vector<MemberRun> done(group.size());
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    threads.emplace_back([&, rank] {
      done[rank] = Member(run, *group[rank]).Run();
      if (done[rank].outcome == Outcome::kTraining)
        group[rank].reset();  // it vanished: a dead peer
    });
  }
  threads.clear();
  return done;
}

}  // namespace tactus::engine
