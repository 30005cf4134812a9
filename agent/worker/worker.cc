#include "agent/worker/worker.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "agent/collective/device_group.h"
#include "agent/collective/registration.h"
#include "agent/collective/rehearsal.h"
#include "agent/collective/staged_transport.h"
#include "agent/collective/tcp_transport.h"
#include "agent/data/field_error.h"
#include "agent/worker/checkpoint_file.h"
#include "agent/worker/clock.h"
#include "agent/worker/evaluation.h"
#include "agent/worker/own_speed.h"
#include "agent/worker/result_files.h"
#include "agent/worker/sigterm.h"
#include "agent/worker/speed_emulation.h"
#include "agent/worker/update_times.h"
#include "cuda/nccl.h"
#include "cuda/nccl_capabilities.h"

namespace tactus::worker {
namespace {

constexpr Duration kFlushLimit = std::chrono::seconds(30);
constexpr int kExitHung = 70;  // EX_SOFTWARE of sysexits.h
constexpr std::uint64_t kTryOutSamples = 2;
// Each reduction on a device costs some launches and a turn of two threads, and links between
// devices are fast. Source: PyTorch's DistributedDataParallel, bucket_cap_mb = 25.
constexpr std::size_t kDeviceBucketBytes = 25u << 20;

std::uint64_t Fnv1a(std::span<const float> values) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const std::byte byte : std::as_bytes(values)) {
    hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3ULL;
  }
  return hash;
}

// The error of a device, a file or a connection: another try, perhaps elsewhere, may not meet it.
absl::Status OfTheNode(const absl::Status& status) {
  return absl::UnavailableError(std::string(status.message()));
}

// Of a checkpoint's file. One that is damaged is of no use to anybody, and that is said.
absl::Status Unreadable(const absl::Status& status) {
  const absl::Status error = OfTheNode(status);
  return absl::IsDataLoss(status) ? data::AtField(protocol::kCheckpointField, error) : error;
}

bool IsTransient(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDataLoss(status) || absl::IsAborted(status);
}

FailedMessage ToFailed(const absl::Status& status, std::uint64_t lost_generation) {
  data::FieldError error = data::FieldErrorOf(status);
  return {.field = std::move(error.field),
          .message = std::move(error.message),
          .lost_generation = lost_generation,
          .transient = IsTransient(status)};
}

// For when a device may still write to memory that is about to be freed. The agent sees the process
// end and reports the group lost.
void EndAtOnce(const std::string& reason) {
  std::cerr << "tactus-worker: " << reason << std::endl;
  std::_Exit(kExitHung);
}

// As Ready has it.
std::string NcclVersionOf(const cuda::Device& device) {
  return device.cuda_index() ? cuda::nccl::VersionText(cuda::nccl::Version()) : "";
}

engine::StopKind KindOf(const StopMessage& stop) {
  if (stop.discard) return engine::StopKind::kDiscard;
  return stop.suspend ? engine::StopKind::kSuspend : engine::StopKind::kFinish;
}

}  // namespace

absl::Status Worker::Run() {
  const absl::Status status = RunToEnd();
  if (!status.ok()) link_.Send(ToFailed(status, lost_generation_));
  link_.Flush(kFlushLimit);
  return status;
}

absl::Status Worker::RunToEnd() {
  if (absl::Status s = AwaitStart(); !s.ok()) return s;
  if (absl::Status s = Load(); !s.ok()) return s;
  link_.Send(
      ReadyMessage{.parameters = parameters_.size(),
                   .train_samples = data_.train->size(),
                   .validation_samples = data_.validation == nullptr ? 0 : data_.validation->size(),
                   .samples_per_second = samples_per_second_,
                   .nccl_version = NcclVersionOf(*device_)});
  const absl::StatusOr<GroupMessage> group = AwaitGroup();
  if (!group.ok()) return group.status();
  if (left_) return absl::OkStatus();
  if (absl::Status s = Meet(*group); !s.ok()) return s;
  if (left_) return absl::OkStatus();
  if (absl::Status s = Train(); !s.ok()) return s;
  return Conclude();
}

absl::Status Worker::AwaitStart() {
  absl::StatusOr<ToWorker> message = link_.Receive();
  if (!message.ok()) return message.status();
  if (auto* start = std::get_if<StartMessage>(&*message)) {
    start_ = std::move(*start);
    if (start_.wants_standing) link_.BeginStandings();
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("the first message of the agent is not a start");
}

absl::Status Worker::Load() {
  cuda::OpenedDevice opened = cuda::OpenDevice(start_.device);
  if (opened.device == nullptr) {
    return data::AtField("workers.device", OfTheNode(absl::NotFoundError(opened.reason)));
  }
  device_ = std::move(opened.device);

  start_.job.model.device = device_->Name();
  start_.job.model.stream = device_->stream();
  absl::StatusOr<std::unique_ptr<model::Model>> opened_model = model::Model::Open(start_.job.model);
  if (!opened_model.ok()) return opened_model.status();
  model_ = *std::move(opened_model);
  device_->OnMemoryShort([model = model_.get()] { model->ReleaseCachedMemory(); });
  if (model_->context()) start_.job.data.context = *model_->context();

  absl::StatusOr<data::Split> split = data::OpenData(start_.job.data);
  if (!split.ok()) return split.status();
  data_ = *std::move(split);
  reader_ = std::make_unique<ExampleReader>(*data_.train, *device_);
  intake_ = std::make_unique<GradientIntake>(
      *device_, model_->segments(), sums_,
      device_->cuda_index() ? kDeviceBucketBytes : start_.job.engine.bucket_bytes);
  passes_ = MakePasses({.model = *model_,
                        .reader = *reader_,
                        .device = *device_,
                        .sums = sums_,
                        .intake = *intake_});
  micro_batches_ =
      std::make_unique<MicroBatches>(*passes_, start_.job.engine.micro_batch,
                                     [this](std::uint32_t ceiling) { TellCeiling(ceiling); });

  // Lanes need the group's size, so the gradients' final buffer comes with the group.
  const std::size_t length = cuda::FlatLength(model_->segments());
  parameters_ = device_->Allocate(length);
  if (absl::Status s = TryOut(); !s.ok()) return s;
  return start_.checkpoint.empty() ? absl::OkStatus() : LoadCheckpoint();
}

// After the pass that tries the model out, which is to see the buffers as they began.
absl::Status Worker::LoadCheckpoint() {
  const absl::StatusOr<bool> whole = IsCheckpoint(start_.checkpoint);
  if (!whole.ok()) return Unreadable(whole.status());
  if (!*whole) {
    const absl::Status loaded = model_->LoadSafetensors(start_.checkpoint);
    return loaded.ok() ? loaded : data::AtField("from", loaded);
  }
  absl::StatusOr<Checkpoint> checkpoint = ReadCheckpoint(
      start_.checkpoint, {.segments = model_->segments(),
                          .buffers = model_->ReadBuffers().size(),
                          .optimizer_buffers = engine::StateBuffers(start_.job.engine.optimizer),
                          .train_samples = data_.train->size()});
  if (absl::IsDataLoss(checkpoint.status())) return Unreadable(checkpoint.status());
  if (!checkpoint.ok()) return checkpoint.status();
  device_->Copy(checkpoint->parameters, parameters_.span());
  model_->WriteBuffers(checkpoint->buffers);
  restored_ = std::move(checkpoint->state);
  return absl::OkStatus();
}

// A pass over a few samples before anybody waits for this worker; then its speed, from which the
// first round's shares are made.
absl::Status Worker::TryOut() {
  sums_ = {.gradients = device_->Allocate(parameters_.size()), .losses = device_->AllocateSums(1)};
  model_->Bind(parameters_.span(), sums_.losses.span());
  std::vector<std::uint64_t> indices(std::min(kTryOutSamples, data_.train->size()));
  std::iota(indices.begin(), indices.end(), 0);
  if (absl::Status s = micro_batches_->TryOut(indices); !s.ok()) return s;
  const WorkerJob& job = start_.job;
  const std::uint64_t samples = std::min(job.per_worker, job.engine.micro_batch);
  const absl::StatusOr<double> speed =
      MeasureOwnSpeed(*micro_batches_, *device_,
                      {.samples = std::min(samples, data_.train->size()),
                       .optimizer = job.engine.optimizer,
                       .segments = model_->segments(),
                       .parameters = parameters_.span(),
                       .gradients = sums_.gradients.span(),
                       .emulated_speed = start_.emulated_speed,
                       .emulated_cpu_factor = start_.emulated_cpu_factor});
  if (speed.ok()) samples_per_second_ = *speed;
  return speed.status();
}

void Worker::TellCeiling(std::uint32_t ceiling) {
  ++out_of_memory_;
  std::cerr << "out of memory: at most " << ceiling << " samples in a pass from here on\n";
}

absl::StatusOr<GroupMessage> Worker::AwaitGroup() {
  while (true) {
    absl::StatusOr<ToWorker> message = link_.Receive();
    if (!message.ok()) return message.status();
    if (auto* group = std::get_if<GroupMessage>(&*message)) {
      if (group->rank >= group->size || !policies::Fits(group->plan, group->size)) {
        return absl::InvalidArgumentError("the group's plan does not fit its size");
      }
      return std::move(*group);
    }
    if (std::holds_alternative<StopMessage>(*message)) {
      left_ = true;
      return GroupMessage{};
    }
  }
}

std::vector<std::string> Worker::ExchangeEndpoints(std::uint64_t generation, std::string own) {
  link_.Send(EndpointMessage{.generation = generation, .endpoint = std::move(own)});
  while (true) {
    absl::StatusOr<ToWorker> message = link_.Receive();
    if (!message.ok()) return {};
    if (auto* peers = std::get_if<PeersMessage>(&*message)) {
      if (peers->generation == generation) return std::move(peers->endpoints);
    }
    if (std::holds_alternative<StopMessage>(*message)) {
      left_ = true;
      return {};
    }
  }
}

bool Worker::ByNccl(const GroupMessage& group) const {
  if (group.transport != TransportKind::kByDevice) return group.transport == TransportKind::kNccl;
  return device_->cuda_index().has_value();
}

// Without NCCL buffers travel by TCP, those of a GPU by way of the host's memory.
collective::ConnectedTransport Worker::Connect(const GroupMessage& group) {
  const int rank = static_cast<int>(group.rank);
  const int size = static_cast<int>(group.size);
  const auto exchange = [this, &group](std::string own) {
    return ExchangeEndpoints(group.generation, std::move(own));
  };
  const std::optional<int> gpu = device_->cuda_index();
  if (ByNccl(group)) {
    if (!gpu) return {.reason = "NCCL joins GPUs alone, and this worker is on " + start_.device};
    return collective::ConnectDevices({.rank = rank,
                                       .size = size,
                                       .generation = group.generation,
                                       .address = start_.address,
                                       .device = *gpu,
                                       .compute_stream = device_->stream(),
                                       .exchange = exchange,
                                       .now = Now,
                                       .give_up = [this] { return WhyGiveUp(); },
                                       .must_end = EndAtOnce});
  }
  collective::ConnectedTransport tcp = collective::ConnectTcp(
      {.rank = rank, .size = size, .address = start_.address, .exchange = exchange, .now = Now});
  if (!gpu || tcp.transport == nullptr) return tcp;
  return collective::MakeStagedTransport({.device = *gpu,
                                          .compute_stream = device_->stream(),
                                          .host = std::move(tcp.transport),
                                          .now = Now});
}

// Why to stop waiting for the others; empty: wait on.
std::string Worker::WhyGiveUp() {
  while (const std::optional<ToWorker> message = link_.Poll()) {
    left_ = left_ || std::holds_alternative<StopMessage>(*message);
  }
  return left_ ? "the worker was asked to stop" : "";
}

absl::Status Worker::Meet(const GroupMessage& group) {
  group_ = group;
  // NCCL needs memory, of which libtorch has kept what the trial used.
  if (ByNccl(group)) model_->ReleaseCachedMemory();
  collective::ConnectedTransport connected = Connect(group);
  if (left_) return absl::OkStatus();
  if (connected.transport == nullptr) return LoseBeforeTraining(connected.reason);
  transport_ = std::move(connected.transport);
  link_.standpoint().Enter(group.generation, *transport_);

  const std::size_t length = parameters_.size() + engine::LaneCount(group.size);
  sums_.gradients = {};  // the trial's: nobody holds both
  PassSums sums{.losses = device_->AllocateSums(1)};
  if (ByNccl(group) && group.size > 1) sums.gradients = cuda::nccl::Allocate(*device_, length);
  const bool fit = sums.gradients.size() > 0;
  if (!fit) sums.gradients = device_->Allocate(length);
  model_->Bind(parameters_.span(), sums.losses.span());
  sums_ = std::move(sums);
  bool registered = false;
  if (ByNccl(group)) {
    const std::span<float> gradients = sums_.gradients.span();
    const std::size_t bucket = std::min(gradients.size(), kDeviceBucketBytes / sizeof(float));
    // As memory like any other, which parameters stay, and as what is registered: needs differ.
    std::string failure = collective::Rehearse(*transport_, gradients.first(bucket));
    if (!failure.empty()) return LoseBeforeTraining(failure);
    registered = collective::RegisterTogether(*transport_, gradients, fit);
    if (registered) failure = collective::Rehearse(*transport_, gradients.first(bucket));
    if (!failure.empty()) return LoseBeforeTraining(failure);
  }
  engine::EngineOptions options = start_.job.engine;
  options.train_samples = data_.train->size();
  options.nodes = group.nodes;
  if (ByNccl(group)) options.bucket_bytes = kDeviceBucketBytes;
  engine_ = std::make_unique<engine::RoundEngine>(
      options, *device_, model_->segments(),
      engine::EngineBuffers{
          .parameters = parameters_.span(),
          .gradients = sums_.gradients.span(),
          .loss_sum = sums_.losses.span(),
          .bring = [intake = intake_.get()](auto stretch,
                                            auto norm2) { return intake->Bring(stretch, norm2); },
          .registered = registered},
      *transport_, group.plan);
  if (restored_) engine_->Restore(*std::exchange(restored_, {}));
  return absl::OkStatus();
}

absl::Status Worker::LoseBeforeTraining(const std::string& reason) {
  lost_generation_ = group_.generation;
  return absl::UnavailableError("the group could not be formed: " + reason);
}

absl::Status Worker::Train() {
  KeepSigterm();  // there is something to keep now
  SpeedEmulation emulation(start_.emulated_speed, start_.emulated_cpu_factor);
  snapshots_.emplace(
      Snapshots::Options{.directory = start_.output_directory,
                         .every = group_.rank == 0 ? start_.job.snapshots_every : std::nullopt},
      writer_);
  OpenCurves();
  engine_->Begin(Now());
  checkpoints_ = MakeCheckpoints();
  UpdateTimes updates(engine_->edge());
  SecondsByRound data;
  while (std::optional<engine::Batch> batch = engine_->NextBatch()) {
    emulation.Begin();
    const Duration waited = reader_->waited();
    absl::StatusOr<engine::StepResult> result = Compute(*batch);
    if (!result.ok()) return result.status();
    data.Add(batch->round, ToSeconds(reader_->waited() - waited));
    const Instant end = emulation.AwaitEnd();
    result->finished = batch->indices.empty() ? result->started : end;
    link_.standpoint().CountBatch();
    engine_->Step(*result);
    updates.Note(batch->round, engine_->edge(), Now());
    while (std::optional<policies::Report> report = engine_->TakeReport()) {
      report->update_seconds = updates.Take(report->round);
      report->data_seconds = data.Take(report->round);
      link_.Send(ReportMessage{.generation = group_.generation,
                               .report = *report,
                               .out_of_memory = std::exchange(out_of_memory_, 0)});
      Draw(*report);
    }
    if (checkpoints_ != nullptr) checkpoints_->AtEdge();
    if (engine_->at_edge()) snapshots_->AtEdge(*model_, engine_->train_time());
    TakeMessages();
  }
  if (checkpoints_ != nullptr && !EndsByItself()) checkpoints_->Finish();
  // Its copy is as large as what a suspension copies.
  if (!EndsByItself()) checkpoints_.reset();
  if (engine_->outcome() != engine::Outcome::kFinished) snapshots_.reset();
  if (engine_->outcome() == engine::Outcome::kGroupLost) {
    lost_generation_ = group_.generation;
    return absl::UnavailableError("the group was lost: " + engine_->reason());
  }
  if (engine_->outcome() == engine::Outcome::kDiverged) {
    return absl::OutOfRangeError("training diverged: " + engine_->reason());
  }
  return absl::OkStatus();
}

// A stop condition holds: who asked for the end, or has lost it, would not begin it anew.
bool Worker::EndsByItself() const {
  return engine_->outcome() == engine::Outcome::kFinished && !engine_->asked_to_stop();
}

// Only the stop condition's end is worth one.
void Worker::KeepEnd() {
  if (checkpoints_ != nullptr && EndsByItself()) checkpoints_->AtEnd();
}

absl::StatusOr<engine::StepResult> Worker::Compute(const engine::Batch& batch) {
  engine::StepResult result{.started = Now()};
  if (batch.indices.empty()) {
    if (batch.first_of_sum) device_->Fill(0, sums_.gradients.span().first(parameters_.size()));
    return result;
  }
  BatchContext context;
  if (batch.last_of_round) {
    context.ready = [this](std::size_t segment) { engine_->SegmentReady(segment); };
  }
  if (reader_->reads_ahead()) context.likely_next = engine_->LikelyNext();
  if (absl::Status s = micro_batches_->Run(batch, context); !s.ok()) return s;
  if (batch.awaited) device_->Synchronize();
  return result;
}

std::unique_ptr<RunningCheckpoints> Worker::MakeCheckpoints() {
  if (group_.rank != 0 || !(group_.loss_seconds > 0)) return nullptr;
  return std::make_unique<RunningCheckpoints>(
      RunningCheckpoints::Source{.engine = *engine_,
                                 .model = *model_,
                                 .device = *device_,
                                 .parameters = parameters_.span()},
      RunningCheckpoints::Options{.directory = start_.output_directory,
                                  .generation = group_.generation,
                                  .every = start_.job.checkpoints_every,
                                  .mean = group_.loss_seconds},
      writer_, link_);
}

// Training goes on where curves cannot be written.
void Worker::OpenCurves() {
  if (group_.rank != 0) return;
  absl::StatusOr<TrainingCurves> curves =
      TrainingCurves::Open(start_.output_directory, start_.job_text, WallSeconds());
  if (curves.ok()) {
    curves_.emplace(*std::move(curves));
  } else {
    std::cerr << "no TensorBoard curves: " << curves.status().message() << '\n';
  }
}

void Worker::Draw(const policies::Report& report) {
  if (!curves_) return;
  const absl::Status status =
      curves_->Add(report, engine_->plan(), engine_->train_time(), WallSeconds());
  if (status.ok()) return;
  std::cerr << "no further TensorBoard curves: " << status.message() << '\n';
  curves_.reset();
}

void Worker::TakeMessages() {
  if (SigtermKept()) engine_->RequestStop("SIGTERM to a worker", engine::StopKind::kSuspend);
  while (std::optional<ToWorker> message = link_.Poll()) {
    if (auto* plan = std::get_if<policies::Plan>(&*message)) {
      // A plan that does not follow is one of an older coordinator; the next one will.
      [[maybe_unused]] const bool taken = engine_->OfferPlan(std::move(*plan));
    } else if (auto* stop = std::get_if<StopMessage>(&*message)) {
      engine_->RequestStop(stop->reason, KindOf(*stop));
    }
  }
}

FinishedMessage Worker::Facts() const {
  return {.reason = engine_->reason(),
          .rounds = engine_->rounds(),
          .samples = engine_->samples(),
          .samples_global = engine_->samples_global(),
          .epochs = engine_->ledger().epoch(),
          .train_loss = engine_->train_loss(),
          .train_seconds = ToSeconds(engine_->train_time()),
          .parameters_hash = Fnv1a(ParametersOnHost())};
}

std::vector<float> Worker::ParametersOnHost() const {
  std::vector<float> values(parameters_.size());
  device_->Copy(parameters_.span(), values);
  device_->Synchronize();
  return values;
}

// What depends on norms, as clipping does, can differ in a last bit between a GPU and a processor,
// which add up squares in another order. It does not grow: the same combined vector is added to
// both.
absl::Status Worker::AgreeOnParameters() {
  if (group_.transport != TransportKind::kStaged) return absl::OkStatus();
  const collective::Completion completion =
      transport_->StartBroadcast(parameters_.span(), 0)->Wait();
  if (completion.progress == collective::Progress::kDone) return absl::OkStatus();
  lost_generation_ = group_.generation;
  return absl::UnavailableError("the group was lost: " + completion.reason);
}

absl::Status Worker::Conclude() {
  if (absl::Status s = AgreeOnParameters(); !s.ok()) return s;
  FinishedMessage finished = Facts();
  if (engine_->outcome() == engine::Outcome::kDiscarded) {
    link_.Send(finished);
    return absl::OkStatus();
  }
  const double samples = static_cast<double>(finished.samples);
  // Of a suspended job as well: the checkpoint has the buffers, and rank 0 alone writes it.
  if (absl::Status s = AverageBuffers(*model_, *transport_, samples); !s.ok()) {
    return OfTheGroup(s);
  }
  if (engine_->outcome() == engine::Outcome::kSuspended) return ConcludeSuspended(finished);
  KeepEnd();
  EvaluatedMessage evaluated;
  if (data_.validation != nullptr) {
    ExampleReader validation(*data_.validation, *device_);
    const absl::StatusOr<EvaluatedMessage> result =
        Evaluate(*model_, validation, *transport_,
                 {.samples_max = start_.job.data.validation_samples_max,
                  .batch = micro_batches_->ceiling(),
                  .beside = [this] {
                    link_.standpoint().CountBatch();
                    KeepEnd();
                  }});
    if (!result.ok()) return OfTheGroup(result.status());
    evaluated = *result;
  }
  if (group_.rank == 0) {
    KeepEnd();
    absl::StatusOr<std::vector<std::string>> files = WriteResult(*model_,
                                                                 {.job_id = start_.job_id,
                                                                  .workers = group_.size,
                                                                  .finished = finished,
                                                                  .evaluated = evaluated},
                                                                 start_.output_directory);
    if (!files.ok()) return OfTheNode(files.status());
    finished.files = *std::move(files);
    const std::vector<std::string> snapshots = snapshots_->Finish();
    finished.files.insert(finished.files.end(), snapshots.begin(), snapshots.end());
    if (curves_) finished.files.push_back(curves_->name());
    if (engine_->asked_to_stop()) {
      if (absl::Status s = SaveCheckpoint(); !s.ok()) return s;
      finished.files.emplace_back(kCheckpointFile);
    }
    if (checkpoints_ != nullptr) checkpoints_->GiveUp();
    // Before the last word, with which the job may be over.
    link_.Send(evaluated);
  }
  link_.Send(finished);
  return absl::OkStatus();
}

absl::Status Worker::OfTheGroup(const absl::Status& status) {
  if (absl::IsUnavailable(status)) lost_generation_ = group_.generation;
  return status;
}

absl::Status Worker::ConcludeSuspended(FinishedMessage finished) {
  finished.suspended = true;
  if (group_.rank == 0) {
    if (absl::Status s = SaveCheckpoint(); !s.ok()) return s;
    finished.files = {kCheckpointFile};
  }
  link_.Send(finished);
  return absl::OkStatus();
}

absl::Status Worker::SaveCheckpoint() {
  const absl::Status written =
      WriteCheckpoint({.state = engine_->State(),
                       .parameters = ParametersOnHost(),
                       .buffers = model_->ReadBuffers()},
                      model_->segments(), start_.output_directory + "/" + kCheckpointFile);
  return written.ok() ? written : OfTheNode(written);
}

}  // namespace tactus::worker
