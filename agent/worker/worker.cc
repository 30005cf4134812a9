#include "agent/worker/worker.h"

#include <algorithm>
#include <iostream>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "agent/collective/device_group.h"
#include "agent/collective/registration.h"
#include "agent/collective/rehearsal.h"
#include "agent/collective/staged_transport.h"
#include "agent/collective/tcp_transport.h"
#include "agent/data/field_error.h"
#include "agent/life/life.h"
#include "agent/worker/checkpoint_copies.h"
#include "agent/worker/checkpoint_file.h"
#include "agent/worker/clock.h"
#include "agent/worker/end_at_once.h"
#include "agent/worker/evaluation.h"
#include "agent/worker/failures.h"
#include "agent/worker/parameter_hash.h"
#include "agent/worker/result_files.h"
#include "agent/worker/subset_choice.h"
#include "base/check.h"
#include "cuda/nccl.h"
#include "cuda/nccl_capabilities.h"
#include "policies/encodings.h"

namespace tactus::worker {
namespace {

constexpr Duration kFlushLimit = std::chrono::seconds(30);

// Nothing: it is a start.
std::optional<protocol::ToWorker> AfterStart(const ToWorker& message) {
  return std::visit(
      [](const auto& one) -> std::optional<protocol::ToWorker> {
        if constexpr (std::is_same_v<decltype(one), const StartMessage&>) {
          return std::nullopt;
        } else {
          return one;
        }
      },
      message);
}

// To the job's log.
// Whole lines, as others of the process may write to it, too.
void Tell(const std::string& line) { std::cerr << line + '\n'; }

}  // namespace

std::optional<FailedMessage> Worker::Run() {
  life::Life life(*this, *this);
  std::optional<FailedMessage> failed = life.Run();
  agent_.Flush(kFlushLimit);
  return failed;
}

// A second start is none that it waits for.
life::OrFailure<protocol::ToWorker> Worker::Await() {
  while (true) {
    const absl::StatusOr<ToWorker> message = agent_.Receive();
    if (!message.ok()) return FailureOf(message.status());
    if (const auto later = AfterStart(*message)) return *later;
  }
}

std::optional<protocol::ToWorker> Worker::Poll() {
  while (const std::optional<ToWorker> message = agent_.Poll()) {
    if (auto later = AfterStart(*message)) return later;
  }
  return std::nullopt;
}

life::OrFailure<life::Loaded> Worker::Load(const std::function<bool()>& leaves) {
  absl::Status status = AwaitStart();
  if (status.ok()) status = Prepare(leaves);
  if (!status.ok()) return FailureOf(status);
  return life::Loaded{
      .ready = {.parameters = cuda::FlatLength(FileSegments()),
                .train_samples = trainee_.train_samples(),
                .validation_samples = trainee_.validation_samples(),
                .samples_per_second = samples_per_second_,
                .nccl_version =
                    device_->cuda_index() ? cuda::nccl::VersionText(cuda::nccl::Version()) : "",
                .encodings = {policies::kEncodingNames.begin(), policies::kEncodingNames.end()},
                .program = trainee_.facts(),
                .mesh_version = collective::kMeshVersion},
      .checkpoints_every = start_.job.checkpoints_every,
      .keeps_best = KeepsBest(),
      .rounds = member_->rounds};
}

absl::Status Worker::AwaitStart() {
  absl::StatusOr<ToWorker> message = agent_.Receive();
  if (!message.ok()) return message.status();
  if (auto* start = std::get_if<StartMessage>(&*message)) {
    start_ = std::move(*start);
    if (start_.wants_standing) agent_.BeginStandings();
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("the first message of the agent is not a start");
}

absl::Status Worker::Prepare(const std::function<bool()>& leaves) {
  cuda::OpenedDevice opened = cuda::OpenDevice(start_.device);
  if (opened.device == nullptr) {
    return data::AtField("workers.device", OfTheNode(absl::NotFoundError(opened.reason)));
  }
  device_ = std::move(opened.device);

  const TraineeHome home{.start = start_, .device = *device_, .sums = sums_, .leaves = leaves};
  if (absl::Status s = trainee_.Open(home); !s.ok()) return s;
  if (leaves()) return Left();
  if (ModelParts* const parts = trainee_.parts()) mesh_.emplace(*parts);
  // Lanes need the group's size, so the gradients' final buffer comes with the group.
  parameters_ = device_->Allocate(cuda::FlatLength(trainee_.segments()));
  sums_ = {.gradients = device_->Allocate(parameters_.size()), .losses = device_->AllocateSums(1)};
  trainee_.Bind(parameters_.span());
  const absl::StatusOr<double> speed = trainee_.TryOut();
  if (!speed.ok()) return speed.status();
  samples_per_second_ = *speed;
  if (leaves()) return Left();
  MakeMember();
  return LoadGiven();
}

absl::Status Worker::LoadGiven() {
  if (!start_.checkpoint.empty()) return LoadCheckpoint();
  if (start_.job.weights.empty()) return absl::OkStatus();
  const absl::Status loaded = trainee_.LoadWeights(start_.job.weights);
  return loaded.ok() ? loaded : data::AtField("model.weights", loaded);
}

void Worker::MakeMember() {
  engine::EngineOptions options = start_.job.engine;
  if (options.shards.by == engine::ShardBy::kMemory) options.shards.weight = start_.memory_bytes;
  trainee_.Complete(options);
  member_ =
      std::make_unique<engine::Member>(options, *device_, trainee_.segments(), parameters_.span());
}

// After the pass that tries the model out, which is to see the buffers as they began.
absl::Status Worker::LoadCheckpoint() {
  const absl::StatusOr<bool> whole = IsCheckpoint(start_.checkpoint);
  if (!whole.ok()) return Unreadable(whole.status());
  if (!*whole) {
    const absl::Status loaded = trainee_.LoadWeights(start_.checkpoint);
    return loaded.ok() ? loaded : data::AtField("from", loaded);
  }
  absl::StatusOr<Checkpoint> checkpoint = ReadCheckpoint(
      start_.checkpoint,
      {.segments = FileSegments(),
       .buffers = trainee_.ReadBuffers().size(),
       .optimizer_buffers = engine::StateBuffers(member_->options.optimizer),
       .lamb = std::holds_alternative<engine::LambOptions>(member_->options.optimizer),
       .train_samples = trainee_.train_samples(),
       .data_samples = trainee_.data_samples()});
  if (absl::IsDataLoss(checkpoint.status())) return Unreadable(checkpoint.status());
  if (!checkpoint.ok()) return checkpoint.status();
  if (mesh_) mesh_->Cut(*checkpoint);
  TakeUp(*std::move(checkpoint));
  absl::StatusOr<CheckpointedResiduals> residuals =
      CheckpointedResiduals::Open(start_.checkpoint, FileSegments());
  if (!residuals.ok()) return Unreadable(residuals.status());
  residuals_ = *std::move(residuals);
  return absl::OkStatus();
}

void Worker::TakeUp(Checkpoint checkpoint) {
  device_->Copy(checkpoint.parameters, parameters_.span());
  trainee_.WriteBuffers(checkpoint.buffers);
  if (KeepsBest()) {
    best_ = std::move(checkpoint.best);
    // Else the checkpoint is of a job that kept nothing of it but the loss.
    if (best_ == nullptr) engine::ForgetBest(checkpoint.state.validation);
  }
  member_->Restore(checkpoint.state);
  member_->ledger.PassOver(start_.skip_samples);
}

bool Worker::ByNccl(const GroupMessage& group) const {
  if (group.transport != TransportKind::kByDevice) return group.transport == TransportKind::kNccl;
  return device_->cuda_index().has_value();
}

// Without NCCL buffers travel by TCP, those of a GPU by way of the host's memory.
collective::ConnectedTransport Worker::Connect(const GroupMessage& group,
                                               const life::Meeting& meeting) {
  const std::optional<int> gpu = device_->cuda_index();
  const std::span<const float> vector = sums_.gradients.span().first(parameters_.size());
  if (ByNccl(group)) {
    if (group.encrypted && group.size > 1) {
      return {.reason = "NCCL cannot encrypt, and the group is to be encrypted", .own = true};
    }
    if (!gpu) {
      return {.reason = "NCCL joins GPUs alone, and this worker is on " + start_.device,
              .own = true};
    }
    const collective::DeviceMeeting devices{.rank = static_cast<int>(group.rank),
                                            .size = static_cast<int>(group.size),
                                            .generation = group.generation,
                                            .address = start_.address,
                                            .device = *gpu,
                                            .compute_stream = device_->stream(),
                                            .exchange = meeting.exchange,
                                            .now = Now,
                                            .give_up = meeting.give_up,
                                            .secret = group.secret,
                                            .tell = Tell,
                                            .must_end = EndAtOnce};
    return mesh_ ? mesh_->Connect(devices, vector) : collective::ConnectDevices(devices);
  }
  const collective::TcpMeeting hosts = TcpMeetingOf(group, meeting);
  if (mesh_) {
    Staging staging{.any = group.transport == TransportKind::kStaged};
    if (gpu) staging.own = {.device = *gpu, .compute_stream = device_->stream(), .now = Now};
    return mesh_->Connect(hosts, staging, vector);
  }
  collective::ConnectedTransport tcp = collective::ConnectTcp(hosts);
  if (!gpu || tcp.transport == nullptr) return tcp;
  return collective::MakeStagedTransport({.device = *gpu,
                                          .compute_stream = device_->stream(),
                                          .host = std::move(tcp.transport),
                                          .now = Now});
}

collective::TcpMeeting Worker::TcpMeetingOf(const GroupMessage& group,
                                            const life::Meeting& meeting) {
  return {.rank = static_cast<int>(group.rank),
          .size = static_cast<int>(group.size),
          .address = start_.address,
          .exchange = meeting.exchange,
          .now = Now,
          .give_up = meeting.give_up,
          .give_up_collective = [this] { return trainee_.WhyGiveUp(); },
          .generation = group.generation,
          .secret = group.secret,
          .encrypted = group.encrypted,
          .tell = Tell};
}

life::OrFailure<life::Met> Worker::Meet(const GroupMessage& group, const life::Meeting& meeting) {
  group_ = group;
  if (mesh_) {
    std::string reason = mesh_->ReasonAgainst(group.size);
    if (!reason.empty()) return life::Failure{.field = "workers", .message = std::move(reason)};
    MakeSums(group);  // of which its transport is told
  }
  // NCCL needs memory, of which libtorch has kept what the trial used.
  if (ByNccl(group)) trainee_.ReleaseMemory();
  collective::ConnectedTransport connected = Connect(group, meeting);
  if (connected.transport == nullptr) {
    return life::Failure{
        .message = connected.reason, .transient = true, .of_group = !connected.own};
  }
  transport_ = std::move(connected.transport);
  agent_.standpoint().Enter(group.generation, *transport_);
  const bool fit = mesh_ || MakeSums(group);
  if (std::optional<life::Failure> failure = JoinMesh()) return *std::move(failure);
  bool registered = false;
  if (ByNccl(group)) {
    life::OrFailure<bool> prepared = Register(fit);
    if (auto* failure = std::get_if<life::Failure>(&prepared)) return std::move(*failure);
    registered = std::get<bool>(prepared);
  }
  MakeEngine(group, registered);
  return life::Met{.engine = *engine_, .transport = *transport_, .parameters = parameters_.span()};
}

std::optional<life::Failure> Worker::JoinMesh() {
  if (!mesh_) return std::nullopt;
  const absl::StatusOr<bool> moved = mesh_->Join();
  if (!moved.ok()) return FailureOf(moved.status());
  const absl::Status loaded = *moved ? LoadGiven() : absl::OkStatus();
  return loaded.ok() ? std::nullopt : std::optional(FailureOf(loaded));
}

// The engine first, which refers to the rest. Gradients stay until the next group's take their
// place.
void Worker::LeaveGroup() {
  agent_.standpoint().Leave();
  engine_.reset();
  transport_.reset();
  if (mesh_) mesh_->Leave();
}

bool Worker::MakeSums(const GroupMessage& group) {
  const std::size_t length = parameters_.size() + engine::LaneCount(group.size);
  sums_.gradients = {};  // the trial's: nobody holds both
  PassSums sums{.losses = device_->AllocateSums(1)};
  if (ByNccl(group) && group.size > 1) sums.gradients = cuda::nccl::Allocate(*device_, length);
  const bool fit = sums.gradients.size() > 0;
  if (!fit) sums.gradients = device_->Allocate(length);
  sums_ = std::move(sums);
  trainee_.Bind(parameters_.span());
  return fit;
}

// As memory like any other, which parameters stay, and as what is registered: needs differ.
life::OrFailure<bool> Worker::Register(bool fit) {
  const std::span<float> gradients = sums_.gradients.span();
  const std::size_t bucket = std::min(gradients.size(), kDeviceBucketBytes / sizeof(float));
  std::string failure = collective::Rehearse(*transport_, gradients.first(bucket));
  if (failure.empty() && mesh_) failure = mesh_->Rehearse(*device_);
  if (!failure.empty()) return life::Failure{.message = std::move(failure), .of_group = true};
  const bool registered = collective::RegisterTogether(*transport_, gradients, fit);
  if (!registered) return false;
  failure = collective::Rehearse(*transport_, gradients.first(bucket));
  if (!failure.empty()) return life::Failure{.message = std::move(failure), .of_group = true};
  return true;
}

void Worker::MakeEngine(const GroupMessage& group, bool registered) {
  member_->options.nodes = group.nodes;
  member_->options.comparison.on = group.transport != protocol::TransportKind::kStaged;
  member_->options.bucket_bytes =
      ByNccl(group) ? kDeviceBucketBytes : start_.job.engine.bucket_bytes;
  engine::EngineBuffers buffers{.gradients = sums_.gradients.span(),
                                .loss_sum = sums_.losses.span(),
                                .bring = trainee_.Bringing(),
                                .registered = registered};
  if (mesh_) {
    buffers.gather_parts = [this] {
      return mesh_->Gather(*device_, {.parameters = parameters_.span(),
                                      .optimizer = member_->optimizer.State(),
                                      .block_momentum = member_->local_steps.Momentum()});
    };
    buffers.replica_sums = {
        .counts = mesh_->parts().counts(),
        .copies = mesh_->parts().copies(),
        .add = [this](std::span<double> sums) { return mesh_->AddOverReplica(sums); }};
  }
  engine_ =
      std::make_unique<engine::RoundEngine>(*member_, std::move(buffers), *transport_, group.plan);
}

void Worker::BeginTraining() {
  KeepSigterm();  // there is something to keep now
  if (group_.rank != 0) best_.reset();
  emulation_.emplace(start_.emulated_speed, start_.emulated_cpu_factor);
  OpenSnapshots();
  // A new first member begins a file of its own.
  if (group_.rank == 0 && KeepsFiles()) {
    curves_.Open(start_.output_directory, start_.job_text);
  } else {
    curves_.Close();
  }
  if (group_.rounds.empty()) {
    TakeUpResiduals();
    engine_->Begin(Now(), HashParameters());
  } else {
    const bool keeps_best = group_.rank == 0 && KeepsBest();
    std::vector<float> buffers = trainee_.ReadBuffers();
    engine::Rejoining rejoining{
        .rounds = group_.rounds, .lacks_best = keeps_best && best_ == nullptr, .buffers = buffers};
    if (engine::AreLevel(group_.rounds)) rejoining.own = HashParameters();
    const bool begun = engine_->Begin(Now(), rejoining);
    if (begun) trainee_.WriteBuffers(buffers);
  }
  update_seconds_.emplace(engine_->edge());
}

// Where this member stands in the group is known only now. One that goes on where another group was
// lost keeps its own.
void Worker::TakeUpResiduals() {
  if (!residuals_) return;
  const engine::ResidualParts parts = residuals_->parts();
  if (mesh_) {
    const auto devices = static_cast<std::size_t>(mesh_->parts().shape().devices());
    engine::Residuals whole = engine::ShareOf(parts, group_.rank / devices, group_.size / devices);
    member_->encodings.Restore(mesh_->Cut(std::move(whole), trainee_.segments()));
  } else {
    member_->encodings.Restore(engine::ShareOf(parts, group_.rank, group_.size));
  }
  const bool leaves_out =
      policies::RowOf(group_.plan.encoding).deviation == policies::Deviation::kResidual;
  if (leaves_out && parts.members == 0 && group_.rank == 0) {
    std::cerr << "the checkpoint has nothing of what encodings had left out: "
              << policies::NameOf(group_.plan.encoding) << " begins with none\n";
  }
  residuals_.reset();
}

// Who was the first member before, too, goes on with its own.
void Worker::OpenSnapshots() {
  const bool makes = group_.rank == 0;
  if (snapshots_ && snapshots_made_ == makes) return;
  snapshots_made_ = makes;
  snapshots_.emplace(Snapshots::Options{.directory = start_.output_directory,
                                        .every = makes ? start_.job.snapshots_every : std::nullopt,
                                        .taken =
                                            [this](const std::string& name) {
                                              agent_.Send(SnapshottedMessage{.file = name});
                                            }},
                     writer_);
}

life::OrFailure<engine::StepResult> Worker::Compute(const engine::Batch& batch) {
  emulation_->Begin();
  const Duration waited = trainee_.waited_for_data();
  engine::StepResult result{.started = Now()};
  if (absl::Status s = Pass(batch); !s.ok()) return mesh_ ? InGroup(s) : FailureOf(s);
  data_seconds_.Add(batch.round, ToSeconds(trainee_.waited_for_data() - waited));
  const Instant end = emulation_->AwaitEnd();
  result.finished = batch.indices.empty() && !mesh_ ? result.started : end;
  agent_.standpoint().CountBatch();
  return result;
}

absl::Status Worker::Pass(const engine::Batch& batch) {
  if (batch.indices.empty() && !mesh_) {
    if (batch.first_of_sum) device_->Fill(0, sums_.gradients.span().first(parameters_.size()));
    return absl::OkStatus();
  }
  if (absl::Status s = trainee_.Compute(batch, *engine_); !s.ok()) return s;
  if (batch.awaited) device_->Synchronize();
  return absl::OkStatus();
}

void Worker::OnStep(const engine::Batch& batch) {
  update_seconds_->Note(batch.round, engine_->edge(), Now());
}

void Worker::Complete(ReportMessage& message, bool /*newest*/) {
  message.report.update_seconds = update_seconds_->Take(message.report.round);
  message.report.data_seconds = data_seconds_.Take(message.report.round);
  const OutOfMemory short_of = trainee_.TakeOutOfMemory();
  message.out_of_memory = short_of.passes;
  message.pass_samples_max = short_of.pass_samples_max;
  message.memory_used_bytes = trainee_.TakeMemoryUsed();
}

void Worker::AtEdge() {
  snapshots_->AtEdge([this](auto& copy) { return trainee_.CopyTensors(copy); },
                     engine_->train_time());
}

void Worker::EndTraining() {
  const engine::Outcome outcome = engine_->outcome();
  const bool goes_on = outcome == engine::Outcome::kGroupLost ||
                       outcome == engine::Outcome::kRegrouped ||
                       outcome == engine::Outcome::kTraining;
  if (!goes_on && outcome != engine::Outcome::kFinished) snapshots_.reset();
}

std::unique_ptr<life::CheckpointStore> Worker::OpenCheckpoints() {
  return std::make_unique<CheckpointCopies>(
      CheckpointCopies::Source{.engine = *engine_,
                               .trainee = trainee_,
                               .device = *device_,
                               .parameters = parameters_.span(),
                               .best = best_,
                               .mesh = mesh_ ? &*mesh_ : nullptr},
      start_.output_directory, writer_);
}

engine::HashedParameters Worker::HashParameters() {
  const engine::HashedParameters own = HashOf(ParametersOnHost());
  return mesh_ ? mesh_->HashOfReplica(own) : own;
}

std::vector<float> Worker::ParametersOnHost() const {
  std::vector<float> values(parameters_.size());
  device_->Copy(parameters_.span(), values);
  device_->Synchronize();
  return values;
}

std::optional<life::Failure> Worker::AgreeOnBuffers(double own_samples) {
  const absl::Status averaged = AverageBuffers(trainee_, *transport_, own_samples);
  return averaged.ok() ? std::nullopt : std::optional(InGroup(averaged));
}

life::OrFailure<engine::Validation> Worker::Validate(const std::function<void()>& beside) {
  if (trainee_.validation_samples() == 0) return engine::Validation{};
  validated_buffers_ = trainee_.ReadBuffers();
  absl::StatusOr<engine::Validation> evaluated =
      Evaluate(trainee_, *transport_,
               {.samples_max = start_.job.data.validation_samples_max,
                .shares = engine_->plan().batch_sizes,
                .beside = [this, &beside] {
                  agent_.standpoint().CountBatch();
                  beside();
                }});
  trainee_.EndEvaluation();
  if (!evaluated.ok()) return InGroup(evaluated.status());
  evaluated->end = Now();
  return *evaluated;
}

life::OrFailure<engine::Validation> Worker::ValidateAtEdge() {
  const std::vector<float> own = trainee_.ReadBuffers();
  if (auto failure = AgreeOnBuffers(static_cast<double>(engine_->samples()))) return *failure;
  const bool validates = trainee_.validation_samples() > 0;
  life::OrFailure<engine::Validation> found = validates ? Validate([] {}) : StandBetweenEpochs();
  trainee_.WriteBuffers(own);
  return found;
}

life::OrFailure<engine::Validation> Worker::StandBetweenEpochs() {
  const absl::Status stood = trainee_.StandBetweenEpochs(*transport_, *engine_);
  if (!stood.ok()) return InGroup(stood);
  return engine::Validation{.loss = std::numeric_limits<double>::quiet_NaN(), .end = Now()};
}

// With the buffers that all agree on, from which training does not go on.
life::OrFailure<life::SubsetChoice> Worker::ChooseSubset() {
  const std::vector<float> own = trainee_.ReadBuffers();
  if (auto failure = AgreeOnBuffers(static_cast<double>(engine_->samples()))) return *failure;
  absl::StatusOr<life::SubsetChoice> chosen =
      worker::ChooseSubset(trainee_, *transport_,
                           {.subset = member_->options.subset,
                            .seed = member_->options.seed,
                            .former = engine_->ledger().subset().number,
                            .shares = engine_->plan().batch_sizes,
                            .beside = [this] { agent_.standpoint().CountBatch(); }});
  trainee_.WriteBuffers(own);
  if (!chosen.ok()) return InGroup(chosen.status());
  if (group_.rank == 0) Tell("subset: " + chosen->facts);
  return *std::move(chosen);
}

Instant Worker::KeepBest() {
  best_ = std::make_shared<const BestCopy>(
      BestCopy{.parameters = ParametersOnHost(), .buffers = validated_buffers_});
  return Now();
}

void Worker::TakeBest() {
  TACTUS_CHECK(best_ != nullptr);
  device_->Copy(best_->parameters, parameters_.span());
  device_->Synchronize();
  trainee_.WriteBuffers(best_->buffers);
}

life::OrFailure<std::vector<std::string>> Worker::KeepResult(const FinishedMessage& finished,
                                                             const EvaluatedMessage& evaluated) {
  if (!KeepsFiles()) return std::vector<std::string>();
  const auto write = [this](const std::string& directory) {
    return mesh_ ? mesh_->parts().WriteDense(mesh_->dense().parameters, directory)
                 : trainee_.WriteModel(directory);
  };
  absl::StatusOr<std::vector<std::string>> files = WriteResult(write,
                                                               {.job_id = start_.job_id,
                                                                .workers = group_.size,
                                                                .finished = finished,
                                                                .evaluated = evaluated},
                                                               start_.output_directory);
  if (!files.ok()) return FailureOf(OfTheNode(files.status()));
  const std::vector<std::string> snapshots = snapshots_->Finish();
  files->insert(files->end(), snapshots.begin(), snapshots.end());
  if (const auto curves = curves_.name()) files->push_back(*curves);
  return *std::move(files);
}

std::optional<life::Failure> Worker::KeepCheckpoint() {
  if (!KeepsFiles()) return std::nullopt;
  Checkpoint checkpoint{.state = engine_->State(),
                        .parameters = ParametersOnHost(),
                        .buffers = trainee_.ReadBuffers(),
                        .residuals = engine_->TakeResiduals(),
                        .best = best_};
  if (mesh_) mesh_->MakeWhole(checkpoint);
  const absl::Status written =
      WriteCheckpoint(checkpoint, FileSegments(), start_.output_directory + "/" + kCheckpointFile);
  return written.ok() ? std::nullopt : std::optional(FailureOf(OfTheNode(written)));
}

}  // namespace tactus::worker
