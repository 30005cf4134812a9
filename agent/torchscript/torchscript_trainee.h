// A job file's model, run by libtorch, and its data set.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/data/dataset.h"
#include "agent/model/model.h"
#include "agent/torchscript/fusion.h"
#include "agent/torchscript/gradient_intake.h"
#include "agent/torchscript/micro_batches.h"
#include "agent/torchscript/passes.h"
#include "agent/torchscript/reader.h"
#include "agent/torchscript/sample_weights.h"
#include "agent/torchscript/split_model.h"
#include "agent/worker/trainee.h"

namespace tactus::torchscript {

class TorchscriptTrainee final : public worker::Trainee {
 public:
  // Of a process with others, whose passes go with theirs. Null: by itself. Outlives it.
  explicit TorchscriptTrainee(Fusion* fusion = nullptr) : fusion_(fusion) {}

  absl::Status Open(const worker::TraineeHome& home) override;

  const cuda::SegmentTable& segments() const override { return model_->segments(); }
  std::uint64_t train_samples() const override;
  std::uint64_t data_samples() const override { return data_.train->size(); }
  std::uint64_t validation_samples() const override;
  void Complete(engine::EngineOptions& options) override;
  void Bind(std::span<float> parameters) override;
  absl::StatusOr<double> TryOut() override;
  absl::Status Compute(const engine::Batch& batch, engine::RoundEngine& engine) override;
  engine::BringStretch Bringing() override {
    return [this](auto stretch, auto norm2) { return intake_->Bring(stretch, norm2); };
  }
  Duration waited_for_data() const override { return reader_->waited(); }
  worker::OutOfMemory TakeOutOfMemory() override { return std::exchange(out_of_memory_, {}); }
  std::uint64_t TakeMemoryUsed() override;
  absl::StatusOr<model::EvaluationSums> Evaluate(std::span<const std::uint64_t> indices) override;
  absl::StatusOr<model::GradientProxies> Proxies(std::span<const std::uint64_t> indices,
                                                 bool by_inputs) override;
  void EndEvaluation() override { validation_.reset(); }
  std::uint32_t evaluation_batch() const override { return micro_batches_->ceiling(); }
  std::vector<float> ReadBuffers() const override { return model_->ReadBuffers(); }
  void WriteBuffers(std::span<const float> values) override { model_->WriteBuffers(values); }
  worker::ModelParts* parts() override { return split_ ? &*split_ : nullptr; }
  void ReleaseMemory() override { model_->ReleaseCachedMemory(); }
  absl::Status LoadWeights(const std::string& path) override {
    return model_->LoadSafetensors(path);
  }
  absl::Status CopyTensors(tensors::TensorsCopy& copy) const override {
    return model_->CopyTensors(copy);
  }
  absl::StatusOr<std::vector<std::string>> WriteModel(const std::string& directory) override;

 private:
  absl::Status OpenModel(const model::ModelOptions& options);
  // Samples of a pass to begin with.
  std::uint32_t FirstCeiling() const;
  // Tells the log, and the next report, that passes have become smaller.
  void TellCeiling(std::uint32_t ceiling);

  // While others open models, waits. Null: there are none.
  std::unique_ptr<threads::MutexLock> HoldOpening();

  Fusion* const fusion_;
  const worker::StartMessage* start_ = nullptr;
  cuda::Device* device_ = nullptr;
  worker::PassSums* sums_ = nullptr;
  std::function<bool()> leaves_;
  std::span<float> parameters_;
  data::Split data_;
  std::unique_ptr<GradientIntake> intake_;
  std::unique_ptr<model::Model> model_;
  // Of two devices and more: the model is this, too.
  model::PartitionedModel* partitioned_ = nullptr;
  std::optional<SplitModel> split_;
  std::unique_ptr<ExampleReader> reader_;
  std::unique_ptr<ExampleReader> validation_;  // while it evaluates
  std::unique_ptr<ExampleReader> plain_;       // of training samples, without augmentation
  std::unique_ptr<SampleWeights> weights_;
  std::unique_ptr<Passes> passes_;
  std::unique_ptr<MicroBatches> micro_batches_;
  worker::OutOfMemory out_of_memory_{};
  Instant memory_due_{};  // when it says again what is in use
};

}  // namespace tactus::torchscript
