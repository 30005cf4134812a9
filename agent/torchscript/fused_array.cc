#include "agent/torchscript/fused_array.h"

#include <algorithm>
#include <map>
#include <utility>

#include "agent/collective/in_process.h"
#include "agent/engine/combine/lanes.h"
#include "agent/worker/clock.h"
#include "base/check.h"

namespace tactus::torchscript {
namespace {

// Rows begin where vectors do.
std::size_t Rounded(std::size_t length) { return (length + 15) / 16 * 16; }

}  // namespace

// The engine goes before the member and the group that it is of.
struct FusedArray::Job {
  std::unique_ptr<engine::Member> member{};
  std::unique_ptr<collective::Transport> transport{};
  std::unique_ptr<engine::RoundEngine> engine{};
  std::optional<engine::Batch> batch{};  // that it is to work on
};

FusedArray::FusedArray(cuda::Device& device, const cuda::SegmentTable& segments,
                       std::vector<ArrayJob> jobs)
    : device_(device),
      segments_(segments),
      stride_(Rounded(cuda::FlatLength(segments))),
      gradient_stride_(Rounded(cuda::FlatLength(segments) + engine::LaneCount(1))),
      parameters_(device.Allocate(jobs.size() * stride_)),
      gradients_(device.Allocate(jobs.size() * gradient_stride_)),
      losses_(device.AllocateSums(jobs.size())) {
  TACTUS_CHECK(!jobs.empty());
  const std::size_t length = cuda::FlatLength(segments);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    TACTUS_CHECK(jobs[i].options.train_samples == jobs[0].options.train_samples);
    auto job = std::make_unique<Job>();
    job->member = std::make_unique<engine::Member>(jobs[i].options, device, segments,
                                                   parameters().Row(i).first(length));
    job->transport = std::move(collective::MakeInProcessGroup(1, worker::Now).front());
    const policies::Plan plan{.version = 1, .batch_sizes = {jobs[i].batch}};
    const auto gradients = gradients_.span().subspan(i * gradient_stride_);
    job->engine = std::make_unique<engine::RoundEngine>(
        *job->member,
        engine::EngineBuffers{.gradients = gradients.first(length + engine::LaneCount(1)),
                              .loss_sum = losses_.span().subspan(i, 1)},
        *job->transport, plan);
    jobs_.push_back(std::move(job));
  }
}

FusedArray::~FusedArray() = default;

model::Rows FusedArray::parameters() { return {.values = parameters_.span(), .stride = stride_}; }

void FusedArray::Begin() {
  for (const auto& job : jobs_) job->engine->Begin(worker::Now());
}

absl::StatusOr<bool> FusedArray::Step(const FusedPass& pass, const OnReport& report) {
  // Jobs whose batches are as large, by that size: those of an epoch's end may be smaller.
  std::map<std::size_t, std::vector<std::size_t>> by_size;
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    jobs_[i]->batch = jobs_[i]->engine->NextBatch();
    if (jobs_[i]->batch) by_size[jobs_[i]->batch->indices.size()].push_back(i);
  }
  const model::Rows gradients{.values = gradients_.span(), .stride = gradient_stride_};
  for (const auto& [size, group] : by_size) {
    const Instant started = worker::Now();
    std::vector<std::vector<std::uint64_t>> indices;
    for (const std::size_t i : group) indices.push_back(jobs_[i]->batch->indices);
    if (size > 0) {
      const absl::Status passed = pass(group, indices, gradients, losses_.span());
      if (!passed.ok()) return passed;
    }
    const Instant finished = worker::Now();
    for (const std::size_t i : group) {
      engine::RoundEngine& engine = *jobs_[i]->engine;
      engine.Step({.started = started, .finished = finished});
      while (const std::optional<policies::Report> one = engine.TakeReport()) report(i, *one);
    }
  }
  return !by_size.empty();
}

void FusedArray::Cancel(std::size_t job, std::string reason) {
  jobs_.at(job)->engine->RequestStop(std::move(reason), engine::StopKind::kDiscard);
}

ArrayStanding FusedArray::standing(std::size_t job) const {
  const engine::RoundEngine& engine = *jobs_.at(job)->engine;
  return {.outcome = engine.outcome(), .reason = engine.reason(), .rounds = engine.rounds()};
}

engine::EngineState FusedArray::State(std::size_t job) { return jobs_.at(job)->engine->State(); }

}  // namespace tactus::torchscript
