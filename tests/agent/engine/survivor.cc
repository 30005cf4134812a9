#include "tests/agent/engine/survivor.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "agent/engine/combine/lanes.h"
#include "base/rng.h"

namespace tactus::engine {
namespace {

thread_local Instant survivor_time;

double AddSlope(std::uint64_t index, std::span<const float> x, std::span<float> gradient) {
  Rng rng = Rng(7).Fork(std::to_string(index));
  std::vector<float> row(x.size());
  for (float& value : row) value = static_cast<float>(rng.Normal());
  float error = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    error += row[i] * (x[i] - 0.1f * static_cast<float>(i));
  }
  for (std::size_t i = 0; i < x.size(); ++i) gradient[i] += error * row[i];
  return 0.5 * error * error;
}

std::vector<float> Read(cuda::Device& device, std::span<const float> values) {
  std::vector<float> read(values.size());
  device.Copy(values, read);
  device.Synchronize();
  return read;
}

}  // namespace

Instant SurvivorTime() { return survivor_time += std::chrono::milliseconds(1); }

Survivor::Survivor(const EngineOptions& options, std::unique_ptr<cuda::Device> device,
                   std::size_t length)
    : device_(std::move(device)),
      parameters_(device_->Allocate(length)),
      losses_(device_->AllocateSums(1)),
      added_(device_->AllocateSums(1)),
      member_(std::in_place, options, *device_,
              cuda::SegmentTable{
                  {.name = "x", .length = length, .shape = {static_cast<std::int64_t>(length)}}},
              parameters_.span()) {}

std::optional<Outcome> Survivor::TrainIn(collective::Transport& transport,
                                         const policies::Plan& plan,
                                         const std::vector<std::uint64_t>& rounds,
                                         const BeforeStep& before_step,
                                         const AfterStep& after_step) {
  const auto size = static_cast<std::size_t>(transport.size());
  cuda::Buffer gradients = device_->Allocate(parameters_.size() + LaneCount(size));
  RoundEngine engine(*member_, {.gradients = gradients.span(), .loss_sum = losses_.span()},
                     transport, plan);
  if (rounds.empty()) {
    engine.Begin(SurvivorTime());
  } else {
    engine.Begin(SurvivorTime(), {.rounds = rounds});
  }
  NoteUsedBefore(engine);
  while (const std::optional<Batch> batch = engine.NextBatch()) {
    StepResult result{.started = SurvivorTime()};
    Compute(*batch, gradients.span().first(parameters_.size()));
    result.finished = SurvivorTime();
    auto& samples = open_[batch->round];
    samples.insert(samples.end(), batch->indices.begin(), batch->indices.end());
    if (!before_step(engine, transport)) return std::nullopt;
    engine.Step(result);
    after_step(engine);
    while (const auto report = engine.TakeReport()) {
      NoteUsed(report->round, open_[report->round]);
      open_.erase(report->round);
      reports_.push_back(*report);
    }
  }
  reason_ = engine.reason();
  return engine.outcome();
}

// Of rounds that the former group lost: others may have applied one with this member's samples; in
// one that goes on some count; what else there was counts for nothing.
void Survivor::NoteUsedBefore(const RoundEngine& engine) {
  if (engine.outcome() == Outcome::kGroupLost) return;
  for (const auto& [round, samples] : std::exchange(open_, {})) {
    if (round < engine.rounds()) NoteUsed(round, samples);
  }
  for (const Batch& batch : engine.UsedBefore()) {
    auto& samples = open_[batch.round];
    samples.insert(samples.end(), batch.indices.begin(), batch.indices.end());
  }
}

void Survivor::NoteUsed(std::uint64_t round, const std::vector<std::uint64_t>& samples) {
  used_.insert(used_.end(), samples.begin(), samples.end());
  used_in_.resize(used_.size(), round);
}

void Survivor::ForgetFrom(std::uint64_t round) {
  const auto kept = std::ranges::lower_bound(used_in_, round) - used_in_.begin();
  used_.resize(static_cast<std::size_t>(kept));
  used_in_.resize(used_.size());
}

void Survivor::Compute(const Batch& batch, std::span<float> gradients) {
  const std::vector<float> x = parameters();
  std::vector<float> sum = Read(*device_, gradients);
  double loss = 0;
  for (const std::uint64_t index : batch.indices) loss += AddSlope(index, x, sum);
  device_->Copy(sum, gradients);
  AddLoss(loss);
}

void Survivor::AddLoss(double loss) {
  const std::vector<double> added = {loss};
  device_->Copy(added, added_.span());
  device_->AddRows(losses_.span(), added_.span(), losses_.span());
}

std::vector<float> Survivor::parameters() const { return Read(*device_, parameters_.span()); }

HashedParameters Survivor::Hash() const {
  HashedParameters own;
  for (const float value : parameters()) {
    own.hash = own.hash * 1099511628211u + std::bit_cast<std::uint32_t>(value);
    own.finite = own.finite && std::isfinite(value);
  }
  return own;
}

EngineState Survivor::State() {
  EngineState state;
  member_->CopyState(state);
  state.train_time = {};
  state.residuals.clear();
  return state;
}

std::vector<std::uint64_t> TimesUsed(const std::vector<Survivor*>& members, std::size_t samples) {
  std::vector<std::uint64_t> times(samples);
  for (const Survivor* const each : members) {
    for (const std::uint64_t sample : each->used()) ++times[sample];
  }
  return times;
}

}  // namespace tactus::engine
