// A member for the engine's tests that lives through several groups, with its memory.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/collective/transport.h"
#include "agent/engine/comparison.h"
#include "agent/engine/round_engine.h"
#include "cuda/device.h"

namespace tactus::engine {

// It solves least squares in kLength unknowns, or as many as it is told, in which each sample is
// one random equation.
class Survivor {
 public:
  static constexpr std::size_t kLength = 32;

  // Called before each step; false: it is dead from here on.
  using BeforeStep = std::function<bool(RoundEngine& engine, collective::Transport& transport)>;
  // Called after it.
  using AfterStep = std::function<void(RoundEngine& engine)>;

  explicit Survivor(const EngineOptions& options,
                    std::unique_ptr<cuda::Device> device = cuda::MakeHostDevice("cpu:0"),
                    std::size_t length = kLength);

  // Trains to the end, until the group is lost, or until it is dead: then nothing comes back.
  // rounds: as the group was told; empty: it begins. Who is at the end before the others leaves
  // with them.
  std::optional<Outcome> TrainIn(
      collective::Transport& transport, const policies::Plan& plan,
      const std::vector<std::uint64_t>& rounds, const BeforeStep& before_step,
      const AfterStep& after_step = [](RoundEngine&) {});
  // Why it ended.
  const std::string& reason() const { return reason_; }

  Member& member() { return *member_; }
  cuda::Device& device() { return *device_; }
  std::vector<float> parameters() const;
  HashedParameters Hash() const;
  void SetParameters(float value) { device_->Fill(value, parameters_.span()); }
  // To those of the running round.
  void AddLoss(double loss);

  // What groups have to agree on: neither times nor what is its own.
  EngineState State();

  // Samples of applied rounds, in their order, and the reports of these.
  const std::vector<std::uint64_t>& used() const { return used_; }
  const std::vector<policies::Report>& reports() const { return reports_; }
  // It is dead, and of the rounds from this one on nobody knows who lives.
  void ForgetFrom(std::uint64_t round);

 private:
  void Compute(const Batch& batch, std::span<float> gradients);
  void NoteUsedBefore(const RoundEngine& engine);
  void NoteUsed(std::uint64_t round, const std::vector<std::uint64_t>& samples);

  const std::unique_ptr<cuda::Device> device_;
  cuda::Buffer parameters_;
  cuda::Sums losses_;
  cuda::Sums added_;
  std::optional<Member> member_;
  std::map<std::uint64_t, std::vector<std::uint64_t>> open_;  // samples, by round
  std::vector<std::uint64_t> used_;
  std::vector<std::uint64_t> used_in_;  // the round of each
  std::vector<policies::Report> reports_;
  std::string reason_;
};

// How often each sample of the data was used in rounds that were applied.
std::vector<std::uint64_t> TimesUsed(const std::vector<Survivor*>& members, std::size_t samples);

// The clock of the member whose thread this is; each call takes it a millisecond on.
Instant SurvivorTime();

}  // namespace tactus::engine
