// An array of jobs on one device, each with an engine of its own over the rows of one fused model.
//
// To its engine a job is what it would be alone: optimizer, clipping, schedule, stop conditions,
// reports and state are its own. What they share is the pass: all jobs whose next batch is as large
// go through the model together. One that ends, for whatever reason, leaves; the others go on.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/collective/transport.h"
#include "agent/engine/member.h"
#include "agent/engine/round_engine.h"
#include "agent/model/fused_model.h"
#include "cuda/device.h"
#include "policies/plan.h"

namespace tactus::torchscript {

// A job of the array. Its seed chooses its samples' order, and stands in the options.
struct ArrayJob {
  engine::EngineOptions options{};  // train_samples as all of the array
  std::uint32_t batch = 1;          // samples of a step, >= 1
};

// How a job stands, or ended.
struct ArrayStanding {
  engine::Outcome outcome = engine::Outcome::kTraining;
  std::string reason{};
  std::uint64_t rounds = 0;
};

// One pass of some jobs, as FusedModel::ForwardBackward. jobs: rising.
using FusedPass = std::function<absl::Status(std::span<const std::size_t> jobs,
                                             std::span<const std::vector<std::uint64_t>> indices,
                                             model::Rows gradients, std::span<double> losses)>;

// One thread.
class FusedArray {
 public:
  // device outlives this. Rounds are of one step each.
  FusedArray(cuda::Device& device, const cuda::SegmentTable& segments, std::vector<ArrayJob> jobs);
  ~FusedArray();
  FusedArray(const FusedArray&) = delete;
  FusedArray& operator=(const FusedArray&) = delete;

  std::size_t size() const { return jobs_.size(); }
  // Of the jobs' parameters, [FlatLength(segments)] of each row: theirs from Begin on.
  model::Rows parameters();

  // All jobs begin with what the rows of parameters hold.
  void Begin();

  // One batch of every job that trains. False: all are over. `report` is told of each applied
  // round. Errors: those of the pass, which no job survives.
  using OnReport = std::function<void(std::size_t job, const policies::Report& report)>;
  absl::StatusOr<bool> Step(const FusedPass& pass, const OnReport& report);

  // This job ends after its running round, by itself; the others do not hear of it.
  void Cancel(std::size_t job, std::string reason);

  ArrayStanding standing(std::size_t job) const;
  // What a job could go on from by itself, or in another array, with its row of parameters.
  // Between two Steps.
  engine::EngineState State(std::size_t job);

 private:
  struct Job;

  cuda::Device& device_;
  const cuda::SegmentTable segments_;
  const std::size_t stride_;           // of parameters
  const std::size_t gradient_stride_;  // with lanes
  cuda::Buffer parameters_;
  cuda::Buffer gradients_;
  cuda::Sums losses_;
  std::vector<std::unique_ptr<Job>> jobs_;
};

}  // namespace tactus::torchscript
