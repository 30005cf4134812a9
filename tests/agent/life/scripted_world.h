// A world for a worker's life in which a test says what happens, and reads what was done and said.

#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/engine/member.h"
#include "agent/engine/round_engine.h"
#include "agent/life/mail.h"
#include "agent/life/world.h"
#include "cuda/device.h"

namespace tactus::life {

// A group of one around the shipped engine, whatever rank the group's message gives it. One thread.
class ScriptedWorld : public Mail, public World {
 public:
  static constexpr std::uint64_t kGeneration = 3;

  // What becomes of a checkpoint that is being written.
  enum class Disk { kQuick, kSlow, kFull };

  ScriptedWorld();

  // In their order, what the world was asked for and what was said: "load", "says ready", ...
  std::vector<std::string> log;
  // How often it was told of each.
  int edges = 0;
  int endings = 0;
  std::vector<double> validation_seconds{};  // that each took, as it was told of

  // The script. Messages that Await finds; behind the last one the agent is gone.
  std::deque<protocol::ToWorker> mail;
  // Messages that Poll finds, while the members connect and behind the next batch.
  std::deque<protocol::ToWorker> in_loading, in_meeting, in_training;
  engine::EngineOptions options;
  std::function<void(const engine::Batch& batch)> on_compute = [](const auto&) {};
  std::function<void(const policies::Report& report)> on_report = [](const auto&) {};
  std::function<void()> on_validate = [] {};
  std::optional<Failure> loading{}, meeting{}, computing{}, agreeing{}, validating{}, writing{};
  std::optional<Duration> checkpoints_every{};
  std::uint64_t rounds_before = 0;  // of what it goes on from
  std::uint64_t validation_samples = 10;
  // What validations find, in their order, and then again the last one.
  std::deque<double> validation_losses = {0.5};
  bool keeps_best = false;
  // What is chosen of the samples, in its order; nothing: what was chosen before stays.
  std::deque<std::vector<std::uint64_t>> subsets{};
  std::optional<Failure> choosing{};
  Disk disk = Disk::kQuick;
  bool asked_to_end = false;
  std::vector<int> gone{};  // whose connections the group's transport finds closed

  static protocol::GroupMessage Group(std::uint32_t rank = 0,
                                      std::uint64_t generation = kGeneration);
  // Where another was lost, after so many rounds of each member.
  static protocol::GroupMessage NextGroup(std::uint64_t generation, std::uint64_t rounds);
  static protocol::PeersMessage Peers(std::uint64_t generation = kGeneration);
  collective::Transport& transport() { return *transport_; }
  void SpoilGradients();

  OrFailure<protocol::ToWorker> Await() override;
  std::optional<protocol::ToWorker> Poll() override;
  void Send(const protocol::FromWorker& message) override;

  OrFailure<Loaded> Load(const std::function<bool()>& leaves) override;
  OrFailure<Met> Meet(const protocol::GroupMessage& group, const Meeting& way) override;
  void LeaveGroup() override;
  void BeginTraining() override;
  std::unique_ptr<CheckpointStore> OpenCheckpoints() override;
  OrFailure<engine::StepResult> Compute(const engine::Batch& batch) override;
  void OnStep(const engine::Batch& batch) override;
  void Complete(protocol::ReportMessage& message, bool newest) override;
  void OnReported(const policies::Report& report) override;
  void AtEdge() override { ++edges; }
  void EndTraining() override { ++endings; }
  bool AskedToEnd() override { return asked_to_end; }
  engine::HashedParameters HashParameters() override { return {.hash = 77}; }
  std::optional<Failure> AgreeOnBuffers(double own_samples) override;
  OrFailure<engine::Validation> Validate(const std::function<void()>& beside) override;
  OrFailure<engine::Validation> ValidateAtEdge() override;
  OrFailure<SubsetChoice> ChooseSubset() override;
  Instant KeepBest() override {
    log.emplace_back("keep best");
    return Tick();
  }
  void OnValidated(const protocol::ValidatedMessage& message) override;
  void TakeBest() override { log.emplace_back("take best"); }
  OrFailure<std::vector<std::string>> KeepResult(
      const protocol::FinishedMessage& finished,
      const protocol::EvaluatedMessage& evaluated) override;
  std::optional<Failure> KeepCheckpoint() override;

 private:
  class Store;
  class WatchedTransport;

  std::unique_ptr<collective::Transport> NewTransport();
  double NextLoss();
  Instant Tick() { return now_ += Seconds(1); }

  Instant now_{};
  const std::unique_ptr<cuda::Device> device_;
  const cuda::SegmentTable segments_;
  cuda::Buffer parameters_;
  cuda::Buffer gradients_;
  cuda::Sums losses_;
  std::unique_ptr<engine::Member> member_;  // null until it has loaded
  std::unique_ptr<collective::Transport> transport_;
  std::unique_ptr<engine::RoundEngine> engine_;
  std::vector<std::uint64_t> rounds_;  // as the group was told
};

}  // namespace tactus::life
