// A program as what a worker trains: its passes and its optimizer's steps are asked of it.

#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agent/engine/foreign_optimizer.h"
#include "agent/worker/trainee.h"
#include "sdk/program.h"
#include "sdk/program_memory.h"
#include "sdk/stream_order.h"
#include "sdk/turns.h"

namespace tactus::sdk {

// Within the life, but for SegmentReady.
class ProgramTrainee final : public worker::Trainee, private engine::ForeignOptimizer {
 public:
  // `turns` outlives it.
  ProgramTrainee(Program program, Turns& turns)
      : program_(std::move(program)), turns_(turns), memory_(turns) {}

  // Of its streams; null: it is on the host, or not open yet.
  StreamOrder* order() { return order_.get(); }

  // By the program, while it computes a batch: as RoundEngine::SegmentReady, of those that may
  // leave before the loss is known. Any thread, one at a time. Errors: FailedPrecondition, it is
  // none of these, or was ready before.
  absl::Status SegmentReady(std::size_t segment);

  // Asks `edge` of the program, and lets it tell the others of the group what it wants, until
  // nobody has anything more to tell. Errors: Unavailable, the group was lost; the program's own.
  absl::Status StandAtEdge(collective::Transport& transport, Request edge);

  absl::Status Open(const worker::TraineeHome& home) override;
  const cuda::SegmentTable& segments() const override { return program_.segments; }
  std::uint64_t train_samples() const override { return program_.train_samples; }
  std::uint64_t validation_samples() const override { return 0; }  // it validates by itself
  void Complete(engine::EngineOptions& options) override;
  std::optional<protocol::ProgramFacts> facts() const override;
  void Bind(std::span<float> parameters) override;
  absl::StatusOr<double> TryOut() override { return 0; }  // its first batches tell
  absl::Status Compute(const engine::Batch& batch, engine::RoundEngine& engine) override;
  engine::BringStretch Bringing() override { return {}; }
  Duration waited_for_data() const override { return {}; }
  absl::StatusOr<model::EvaluationSums> Evaluate(std::span<const std::uint64_t>) override;
  void EndEvaluation() override {}
  std::uint32_t evaluation_batch() const override { return program_.micro_batch; }
  std::vector<float> ReadBuffers() const override;
  void WriteBuffers(std::span<const float> values) override;
  absl::Status StandBetweenEpochs(collective::Transport& transport,
                                  const engine::RoundEngine& engine) override;
  void ReleaseMemory() override;
  std::string WhyGiveUp() override { return turns_.WhyGiveUp(); }
  absl::Status LoadWeights(const std::string& path) override;
  absl::Status CopyTensors(tensors::TensorsCopy& copy) const override;
  absl::StatusOr<std::vector<std::string>> WriteModel(const std::string& directory) override;

 private:
  // A batch's sum of losses on its way to a device.
  struct LossOnItsWay {
    cuda::Array<double> on_host{};  // pinned
    std::unique_ptr<cuda::Mark> taken{};
  };

  absl::Status RequirePlace() const;
  absl::Status OpenOnGpu(int index);
  void AddLoss(double sum);

  void Step(std::span<float> gradients, double gain) override;
  std::vector<std::span<float>> State() override;
  void TakeState(std::uint64_t steps) override;

  // Remembers why the program could not: the next batch says so.
  void Note(const Answer& answer) const;
  std::vector<tensors::NamedTensor> Tensors(std::span<const float> parameters) const;
  // Into the memory given where they are a device's. Waits for it.
  std::span<const float> ParametersOnHost(std::vector<float>& memory) const;

  const Program program_;
  Turns& turns_;
  ProgramMemory memory_;
  cuda::Device* device_ = nullptr;
  std::unique_ptr<StreamOrder> order_;
  worker::PassSums* sums_ = nullptr;
  std::span<float> parameters_;
  std::vector<cuda::Buffer> states_;
  std::array<LossOnItsWay, 2> losses_{};  // of a device's, in turns
  std::size_t next_loss_ = 0;
  cuda::Sums loss_;                     // on the device
  mutable std::vector<float> buffers_;  // the program's, when it was asked last
  std::vector<std::uint64_t> ahead_;
  mutable absl::Status failure_;
  engine::RoundEngine* engine_ = nullptr;  // while a batch is computed
  std::vector<bool> missing_;              // of it: early segments that are not ready
};

}  // namespace tactus::sdk
