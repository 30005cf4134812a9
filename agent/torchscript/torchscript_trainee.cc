#include "agent/torchscript/torchscript_trainee.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iostream>
#include <limits>
#include <numeric>
#include <utility>

#include "agent/data/field_error.h"
#include "agent/subset/random_subset.h"
#include "agent/torchscript/own_speed.h"
#include "agent/worker/clock.h"
#include "protocol/result_names.h"

namespace tactus::torchscript {
namespace {

constexpr std::uint64_t kTryOutSamples = 2;
constexpr Duration kMemoryInterval = std::chrono::seconds(1);

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
  leaves_ = home.leaves;
  const worker::WorkerJob& job = start_->job;
  model::ModelOptions options = job.model;
  options.device = device_->Name();
  options.stream = device_->stream();
  {
    const std::unique_ptr<threads::MutexLock> held = HoldOpening();
    if (leaves_()) return worker::Left();  // others may have taken long
    if (absl::Status s = OpenModel(options); !s.ok()) return s;
  }
  if (fusion_ != nullptr && !split_) model_ = fusion_->Join(std::move(model_), options, *device_);
  device_->OnMemoryShort([model = model_.get()] { model->ReleaseCachedMemory(); });

  if (leaves_()) return worker::Left();
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
  weights_ = std::make_unique<SampleWeights>(data_samples());
  passes_ = MakePasses({.model = *model_,
                        .reader = *reader_,
                        .device = *device_,
                        .sums = *sums_,
                        .intake = *intake_,
                        .weights = *weights_});
  micro_batches_ = std::make_unique<MicroBatches>(
      *passes_, FirstCeiling(), [this](std::uint32_t ceiling) { TellCeiling(ceiling); });
  return absl::OkStatus();
}

absl::Status TorchscriptTrainee::OpenModel(const model::ModelOptions& options) {
  if (!options.recompute && options.mesh.kind == model::MeshKind::kNone) {
    absl::StatusOr<std::unique_ptr<model::Model>> opened = model::Model::Open(options);
    if (!opened.ok()) return opened.status();
    model_ = *std::move(opened);
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<model::PartitionedModel>> opened =
      model::PartitionedModel::OpenApart(options);
  if (!opened.ok()) return opened.status();
  if ((*opened)->shape().devices() > 1) {
    partitioned_ = opened->get();
    split_.emplace(*partitioned_);
  }
  model_ = *std::move(opened);
  return absl::OkStatus();
}

std::uint64_t TorchscriptTrainee::train_samples() const {
  const engine::SubsetOptions& subset = start_->job.engine.subset;
  if (subset.kind == engine::SubsetKind::kNone) return data_samples();
  return subset::SizeOf(data_samples(), subset.fraction);
}

std::uint64_t TorchscriptTrainee::validation_samples() const {
  return SamplesOf(data_.validation.get());
}

void TorchscriptTrainee::Complete(engine::EngineOptions& options) {
  options.train_samples = train_samples();
  if (split_) {
    // What a pass may have is for all members of a mesh to keep together: SplitModel::Run.
    options.micro_batch = std::numeric_limits<std::uint32_t>::max();
    options.elastic = false;  // auto's; its devices take as many steps each
    options.replica_members = static_cast<std::uint32_t>(split_->shape().devices());
  }
  options.subset.samples = data_samples();
  options.validation.samples =
      std::min(validation_samples(), start_->job.data.validation_samples_max);
}

void TorchscriptTrainee::Bind(std::span<float> parameters) {
  parameters_ = parameters;
  model_->Bind(parameters, sums_->losses.span());
}

std::unique_ptr<threads::MutexLock> TorchscriptTrainee::HoldOpening() {
  return fusion_ == nullptr ? nullptr : std::make_unique<threads::MutexLock>(fusion_->opening());
}

// A pass over a few samples; then the speed, from which the first round's shares are made.
absl::StatusOr<double> TorchscriptTrainee::TryOut() {
  const std::unique_ptr<threads::MutexLock> held = HoldOpening();
  if (leaves_()) return worker::Left();
  std::vector<std::uint64_t> indices(std::min(kTryOutSamples, train_samples()));
  std::iota(indices.begin(), indices.end(), 0);
  // The others, without whom there is no pass, are not known yet.
  if (split_) {
    const absl::Status fits = partitioned_->Check(reader_->Read(indices));
    return fits.ok() ? absl::StatusOr<double>(0) : fits;
  }
  // With weights where there will be some, which not every loss can take.
  const bool weighted = start_->job.engine.subset.kind == engine::SubsetKind::kCraig;
  if (weighted) weights_->Take(indices, std::vector<float>(indices.size(), 1.0f));
  if (absl::Status s = micro_batches_->TryOut(indices); !s.ok()) return s;
  weights_->Take({}, {});
  const worker::WorkerJob& job = start_->job;
  const std::uint64_t samples = std::min(job.per_worker, job.engine.micro_batch);
  return MeasureOwnSpeed(*micro_batches_, *device_,
                         {.samples = std::min(samples, train_samples()),
                          .optimizer = job.engine.optimizer,
                          .segments = model_->segments(),
                          .parameters = parameters_,
                          .gradients = sums_->gradients.span(),
                          .emulated_speed = start_->emulated_speed,
                          .emulated_cpu_factor = start_->emulated_cpu_factor,
                          .leaves = leaves_});
}

std::uint32_t TorchscriptTrainee::FirstCeiling() const {
  const std::uint32_t wanted = start_->job.engine.micro_batch;
  const std::uint32_t known = start_->pass_samples_max;
  // Members of a mesh make equal passes.
  if (split_ || known == 0 || known >= wanted) return wanted;
  std::cerr << "at most " << known << " samples in a pass, not " << wanted
            << ": of more, a worker of this kind of job ran out of memory on such a device\n";
  return known;
}

// The most that the process has had of the host's, as the system counts it. It changes little, and
// to ask a device costs some of its time.
std::uint64_t TorchscriptTrainee::TakeMemoryUsed() {
  const Instant now = worker::Now();
  if (fusion_ == nullptr || now < memory_due_) return 0;
  memory_due_ = now + kMemoryInterval;
  if (device_->cuda_index()) return device_->MemoryUsed();
  rusage usage{};
  constexpr std::uint64_t kUnit = 1024;  // of ru_maxrss on Linux
  const bool known = ::getrusage(RUSAGE_SELF, &usage) == 0;
  return known ? static_cast<std::uint64_t>(usage.ru_maxrss) * kUnit : 0;
}

void TorchscriptTrainee::TellCeiling(std::uint32_t ceiling) {
  ++out_of_memory_.passes;
  out_of_memory_.pass_samples_max = ceiling;
  std::cerr << "out of memory: at most " + std::to_string(ceiling) +
                   " samples in a pass from here on\n";
}

absl::Status TorchscriptTrainee::Compute(const engine::Batch& batch, engine::RoundEngine& engine) {
  BatchContext context;
  if (batch.last_of_round) {
    context.ready = [&engine](std::size_t segment) { engine.SegmentReady(segment); };
  }
  weights_->Take(batch.indices, batch.weights);
  reader_->SetEpoch(batch.epoch);
  if (reader_->reads_ahead()) context.likely_next = engine.LikelyNext();
  if (split_) {
    return split_->Run(*passes_, batch.indices, start_->job.engine.micro_batch,
                       context.likely_next);
  }
  return micro_batches_->Run(batch, context);
}

absl::StatusOr<model::EvaluationSums> TorchscriptTrainee::Evaluate(
    std::span<const std::uint64_t> indices) {
  if (validation_ == nullptr) {
    validation_ = std::make_unique<ExampleReader>(*data_.validation, *device_);
  }
  return model_->Evaluate(validation_->Read(indices));
}

// As they are: what a sample's augmentation happens to be is no property of the sample.
absl::StatusOr<model::GradientProxies> TorchscriptTrainee::Proxies(
    std::span<const std::uint64_t> indices, bool by_inputs) {
  if (plain_ == nullptr) plain_ = std::make_unique<ExampleReader>(*data_.train, *device_);
  const model::Examples examples = plain_->Read(indices);
  absl::StatusOr<model::GradientProxies> proxies = model_->Proxies(examples);
  if (!proxies.ok() || !by_inputs) return proxies;
  const data::TensorSpec& input = examples.input_specs.front();
  if (examples.input_specs.size() > 1 || input.type != data::ElementType::kFloat32) {
    return data::AtField(
        "data.subset.craig.proxy",
        absl::InvalidArgumentError("found inputs, of a model that takes other than one of float32; "
                                   "allowed is gradients"));
  }
  proxies->width = input.ElementsPerSample();
  proxies->values.resize(examples.count * proxies->width);
  std::memcpy(proxies->values.data(), examples.inputs.data(),
              proxies->values.size() * sizeof(float));
  return proxies;
}

absl::StatusOr<std::vector<std::string>> TorchscriptTrainee::WriteModel(
    const std::string& directory) {
  const auto path = [&](const char* name) { return directory + "/" + name; };
  if (absl::Status s = model_->SaveTorchScript(path(protocol::kModelFile)); !s.ok()) return s;
  if (absl::Status s = model_->SaveSafetensors(path(protocol::kWeightsFile)); !s.ok()) return s;
  return std::vector<std::string>{protocol::kModelFile, protocol::kWeightsFile};
}

}  // namespace tactus::torchscript
