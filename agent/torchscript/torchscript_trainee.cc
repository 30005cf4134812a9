#include "agent/torchscript/torchscript_trainee.h"

#include <algorithm>
#include <iostream>
#include <numeric>
#include <utility>

#include "agent/data/field_error.h"
#include "agent/torchscript/own_speed.h"
#include "protocol/result_names.h"

namespace tactus::torchscript {
namespace {

constexpr std::uint64_t kTryOutSamples = 2;

std::uint64_t SamplesOf(const data::Dataset* dataset) {
  return dataset == nullptr ? 0 : dataset->size();
}

// What the coordinator cannot see, as it does not open the data.
absl::Status CheckValidation(const worker::WorkerJob& job, const data::Split& data) {
  const std::string asking = AskingForValidation(job);
  if (asking.empty() || SamplesOf(data.validation.get()) > 0) return absl::OkStatus();
  return data::AtField(asking, absl::InvalidArgumentError(
                                   "needs validation data, and found no validation sample; allowed "
                                   "is a data.validation_fraction that leaves one, or cifar with "
                                   "a test batch"));
}

}  // namespace

absl::Status TorchscriptTrainee::Open(const worker::TraineeHome& home) {
  start_ = &home.start;
  device_ = &home.device;
  sums_ = &home.sums;
  const worker::WorkerJob& job = start_->job;
  model::ModelOptions options = job.model;
  options.device = device_->Name();
  options.stream = device_->stream();
  absl::StatusOr<std::unique_ptr<model::Model>> opened = model::Model::Open(options);
  if (!opened.ok()) return opened.status();
  model_ = *std::move(opened);
  device_->OnMemoryShort([model = model_.get()] { model->ReleaseCachedMemory(); });

  data::DataOptions data = job.data;
  if (model_->context()) data.context = *model_->context();
  absl::StatusOr<data::Split> split = data::OpenData(data);
  if (!split.ok()) return split.status();
  data_ = *std::move(split);
  if (absl::Status s = CheckValidation(job, data_); !s.ok()) return s;
  reader_ = std::make_unique<ExampleReader>(
      *data_.train, *device_,
      ExampleReader::For(*device_, data::Augmentation::Of(data.images, data_, job.engine.seed)));
  intake_ = std::make_unique<GradientIntake>(
      *device_, model_->segments(), *sums_,
      device_->cuda_index() ? worker::kDeviceBucketBytes : job.engine.bucket_bytes);
  passes_ = MakePasses({.model = *model_,
                        .reader = *reader_,
                        .device = *device_,
                        .sums = *sums_,
                        .intake = *intake_});
  micro_batches_ = std::make_unique<MicroBatches>(
      *passes_, job.engine.micro_batch, [this](std::uint32_t ceiling) { TellCeiling(ceiling); });
  return absl::OkStatus();
}

std::uint64_t TorchscriptTrainee::validation_samples() const {
  return SamplesOf(data_.validation.get());
}

void TorchscriptTrainee::Complete(engine::EngineOptions& options) {
  options.train_samples = train_samples();
  options.validation.samples =
      std::min(validation_samples(), start_->job.data.validation_samples_max);
}

void TorchscriptTrainee::Bind(std::span<float> parameters) {
  parameters_ = parameters;
  model_->Bind(parameters, sums_->losses.span());
}

// A pass over a few samples; then the speed, from which the first round's shares are made.
absl::StatusOr<double> TorchscriptTrainee::TryOut() {
  std::vector<std::uint64_t> indices(std::min(kTryOutSamples, train_samples()));
  std::iota(indices.begin(), indices.end(), 0);
  if (absl::Status s = micro_batches_->TryOut(indices); !s.ok()) return s;
  const worker::WorkerJob& job = start_->job;
  const std::uint64_t samples = std::min(job.per_worker, job.engine.micro_batch);
  return MeasureOwnSpeed(*micro_batches_, *device_,
                         {.samples = std::min(samples, train_samples()),
                          .optimizer = job.engine.optimizer,
                          .segments = model_->segments(),
                          .parameters = parameters_,
                          .gradients = sums_->gradients.span(),
                          .emulated_speed = start_->emulated_speed,
                          .emulated_cpu_factor = start_->emulated_cpu_factor});
}

void TorchscriptTrainee::TellCeiling(std::uint32_t ceiling) {
  ++out_of_memory_;
  std::cerr << "out of memory: at most " << ceiling << " samples in a pass from here on\n";
}

absl::Status TorchscriptTrainee::Compute(const engine::Batch& batch, engine::RoundEngine& engine) {
  BatchContext context;
  if (batch.last_of_round) {
    context.ready = [&engine](std::size_t segment) { engine.SegmentReady(segment); };
  }
  reader_->SetEpoch(batch.epoch);
  if (reader_->reads_ahead()) context.likely_next = engine.LikelyNext();
  return micro_batches_->Run(batch, context);
}

absl::StatusOr<model::EvaluationSums> TorchscriptTrainee::Evaluate(
    std::span<const std::uint64_t> indices) {
  if (validation_ == nullptr) {
    validation_ = std::make_unique<ExampleReader>(*data_.validation, *device_);
  }
  return model_->Evaluate(validation_->Read(indices));
}

absl::StatusOr<std::vector<std::string>> TorchscriptTrainee::WriteModel(
    const std::string& directory) {
  const auto path = [&](const char* name) { return directory + "/" + name; };
  if (absl::Status s = model_->SaveTorchScript(path(protocol::kModelFile)); !s.ok()) return s;
  if (absl::Status s = model_->SaveSafetensors(path(protocol::kWeightsFile)); !s.ok()) return s;
  return std::vector<std::string>{protocol::kModelFile, protocol::kWeightsFile};
}

}  // namespace tactus::torchscript
