#include "sdk/program_trainee.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "agent/data/field_error.h"
#include "policies/memory.h"
#include "protocol/result_names.h"

namespace tactus::sdk {

absl::Status ProgramTrainee::Open(const worker::TraineeHome& home) {
  device_ = &home.device;
  sums_ = &home.sums;
  if (absl::Status s = RequirePlace(); !s.ok()) return data::AtField("device", s);
  const engine::StopOptions& stop = home.start.job.engine.stop;
  if (program_.joins && stop == engine::StopOptions{} && program_.stop == engine::StopOptions{}) {
    return data::AtField("stop", absl::InvalidArgumentError(
                                     "is missing; members end together: give epochs=, steps=, "
                                     "seconds= or train_loss= to run.attach(), or stop in the job "
                                     "file"));
  }
  if (const std::optional<int> index = device_->cuda_index()) {
    if (absl::Status s = OpenOnGpu(*index); !s.ok()) return data::AtField("device", s);
  }
  const std::size_t length = cuda::FlatLength(program_.segments);
  for (std::size_t i = 0; i < program_.optimizer.state_buffers; ++i) {
    states_.push_back(device_->Allocate(length));
  }
  buffers_.resize(program_.buffers);
  return absl::OkStatus();
}

// An agent has chosen one, which the program may not have followed. On the host all are one.
absl::Status ProgramTrainee::RequirePlace() const {
  const auto is_gpu = [](const std::string& name) { return name.starts_with("cuda:"); };
  const std::string here = device_->Name();
  if (here == program_.device || (!is_gpu(here) && !is_gpu(program_.device))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("the model is on " + program_.device +
                                    ", and this worker's device is " + here +
                                    ": model.to(run.device), before the optimizer is made");
}

absl::Status ProgramTrainee::OpenOnGpu(int index) {
  absl::StatusOr<std::unique_ptr<StreamOrder>> order = StreamOrder::Open(index, device_->stream());
  if (!order.ok()) return order.status();
  order_ = *std::move(order);
  if (program_.lends_memory) {
    device_->BorrowFrom(memory_);
    device_->OnMemoryShort([this] { memory_.Shrink(); });
  }
  for (LossOnItsWay& loss : losses_) {
    loss = {.on_host = device_->AllocateOnHost<double>(1), .taken = device_->MakeMark()};
  }
  loss_ = device_->AllocateSums(1);
  return absl::OkStatus();
}

// Of two limits of one kind the lower one ends training.
void ProgramTrainee::Complete(engine::EngineOptions& options) {
  options.seed = program_.seed;
  options.train_samples = program_.train_samples;
  options.micro_batch = program_.micro_batch;
  options.learning_rate.base_batch = program_.batch;
  options.clip_norm = program_.clip_norm;
  options.mean_gradients = true;
  options.nonfinite_rounds_max =
      program_.nonfinite_rounds_max.value_or(options.nonfinite_rounds_max);
  // All know alike when: where training stands still for what the program does by itself.
  if (program_.joins) {
    options.validation = {
        .policy = engine::ValidationPolicy::kAuto, .epochs = 1, .samples = program_.train_samples};
  }
  const auto lower = [](auto& limit, const auto& other) {
    if (other) limit = limit ? std::min(*limit, *other) : *other;
  };
  lower(options.stop.epochs, program_.stop.epochs);
  lower(options.stop.steps, program_.stop.steps);
  lower(options.stop.time, program_.stop.time);
  // Of two losses the one that is reached first.
  std::optional<double>& loss = options.stop.train_loss;
  if (program_.stop.train_loss) loss = std::max(loss.value_or(0), *program_.stop.train_loss);
  engine::ForeignOptions optimizer = program_.optimizer;
  optimizer.steps = this;
  options.optimizer = optimizer;
}

std::optional<protocol::ProgramFacts> ProgramTrainee::facts() const {
  const engine::StopOptions& stop = program_.stop;
  const auto number = [](const auto& value) { return value ? std::to_string(*value) : "-"; };
  std::string words = program_.optimizer.kind;
  for (const std::uint64_t each :
       {program_.optimizer.state_buffers, program_.seed, std::uint64_t{program_.batch},
        std::uint64_t{program_.micro_batch}, program_.buffers}) {
    words += ' ' + std::to_string(each);
  }
  words += ' ' + number(program_.clip_norm) + ' ' + number(stop.epochs) + ' ' + number(stop.steps) +
           ' ' + number(stop.train_loss) + ' ' +
           (stop.time ? std::to_string(ToSeconds(*stop.time)) : "-") + ' ' +
           number(program_.nonfinite_rounds_max);
  for (const cuda::Segment& segment : program_.segments) {
    words += '\n' + segment.name;
    for (const std::int64_t size : segment.shape) words += ' ' + std::to_string(size);
  }
  policies::TextSum sum;
  sum.Add(words);
  return protocol::ProgramFacts{.batch = program_.batch,
                                .optimizer = program_.adapt.optimizer,
                                .momentum = program_.adapt.momentum,
                                .clip_norm = program_.clip_norm,
                                .hash = sum.value()};
}

void ProgramTrainee::Bind(std::span<float> parameters) {
  parameters_ = parameters;
  Note(turns_.Ask({.kind = Request::Kind::kBind,
                   .parameters = parameters,
                   .gradients = sums_->gradients.span().first(parameters.size()),
                   .states = State(),
                   .buffers = buffers_,
                   .returned = memory_.TakeReturned()}));
}

absl::Status ProgramTrainee::Compute(const engine::Batch& batch, engine::RoundEngine& engine) {
  if (!failure_.ok()) return failure_;
  engine_ = &engine;
  if (program_.reads_ahead) ahead_ = engine.LikelyNext();
  missing_.assign(batch.last_of_round ? engine.early_segments() : 0, true);
  const Answer answer = turns_.Ask({.kind = Request::Kind::kCompute,
                                    .indices = batch.indices,
                                    .unit = batch.unit,
                                    .epoch = batch.epoch,
                                    .first_of_sum = batch.first_of_sum,
                                    .last_of_round = batch.last_of_round,
                                    .early_segments = missing_.size(),
                                    .ahead = ahead_,
                                    .rounds = engine.rounds(),
                                    .epochs = engine.ledger().epoch(),
                                    .consumed = engine.ledger().consumed(),
                                    .base_steps = engine.base_steps()});
  engine_ = nullptr;
  AddLoss(answer.loss_sum);
  return answer.status;
}

// A device is not waited for: it takes the sum from memory of which the next but one batch asks
// whether it has.
void ProgramTrainee::AddLoss(double sum) {
  if (!device_->cuda_index()) {
    sums_->losses.span()[0] += sum;
    return;
  }
  LossOnItsWay& way = losses_[next_loss_];
  next_loss_ = (next_loss_ + 1) % losses_.size();
  way.taken->Wait();
  way.on_host.span()[0] = sum;
  device_->Copy(std::span<const double>(way.on_host.span()), loss_.span());
  way.taken->Record();
  device_->AddRows(sums_->losses.span(), loss_.span(), sums_->losses.span());
}

absl::Status ProgramTrainee::SegmentReady(std::size_t segment) {
  if (segment >= missing_.size()) {
    return absl::FailedPreconditionError("no such segment can be ready now");
  }
  if (!missing_[segment]) {
    return absl::FailedPreconditionError("segment " + program_.segments[segment].name +
                                         " was ready before in this batch");
  }
  missing_[segment] = false;
  engine_->SegmentReady(segment);
  return absl::OkStatus();
}

absl::StatusOr<model::EvaluationSums> ProgramTrainee::Evaluate(std::span<const std::uint64_t>) {
  return absl::UnimplementedError("a program validates by itself");
}

absl::Status ProgramTrainee::StandBetweenEpochs(collective::Transport& transport,
                                                const engine::RoundEngine& engine) {
  if (!failure_.ok()) return failure_;
  return StandAtEdge(transport, {.kind = Request::Kind::kEdge,
                                 .rounds = engine.rounds(),
                                 .epochs = engine.ledger().epoch(),
                                 .consumed = engine.ledger().consumed(),
                                 .base_steps = engine.base_steps()});
}

// Who has nothing more to tell is not asked again: it waits for the others, as it would in the next
// round.
absl::Status ProgramTrainee::StandAtEdge(collective::Transport& transport, Request edge) {
  Gathered gathered;
  std::optional<Offer> own;
  while (true) {
    if (!own) {
      Answer answer = turns_.Ask(edge);
      if (!answer.status.ok()) return answer.status;
      own = std::move(answer.offer);
    }
    const absl::StatusOr<Turn> turn = TakeTurn(transport, *own, gathered);
    if (!turn.ok()) return turn.status();
    if (*turn == Turn::kOver) return absl::OkStatus();
    if (*turn == Turn::kOthers) continue;
    edge.gathered = gathered.values;
    edge.members = gathered.members;
    edge.place = gathered.place;
    own.reset();
  }
}

std::vector<float> ProgramTrainee::ReadBuffers() const {
  if (!buffers_.empty()) {
    Note(turns_.Ask({.kind = Request::Kind::kReadBuffers, .buffers = buffers_}));
  }
  return buffers_;
}

void ProgramTrainee::WriteBuffers(std::span<const float> values) {
  std::ranges::copy(values, buffers_.begin());
  if (buffers_.empty()) return;
  Note(turns_.Ask({.kind = Request::Kind::kWriteBuffers, .buffers = buffers_}));
}

void ProgramTrainee::ReleaseMemory() {
  if (device_->cuda_index() && program_.lends_memory) memory_.Shrink();
}

absl::Status ProgramTrainee::LoadWeights(const std::string&) {
  return absl::UnimplementedError("a program loads its weights by itself");
}

// Without the buffers, whose names are the program's.
std::vector<tensors::NamedTensor> ProgramTrainee::Tensors(std::span<const float> parameters) const {
  std::vector<tensors::NamedTensor> tensors;
  for (const cuda::Segment& segment : program_.segments) {
    tensors.push_back({.name = segment.name,
                       .type = "F32",
                       .element_bytes = sizeof(float),
                       .shape = segment.shape,
                       .bytes = std::as_bytes(parameters.subspan(segment.offset, segment.length))});
  }
  return tensors;
}

std::span<const float> ProgramTrainee::ParametersOnHost(std::vector<float>& memory) const {
  if (!device_->cuda_index()) return parameters_;
  memory.resize(parameters_.size());
  device_->Copy(parameters_, memory);
  device_->Synchronize();
  return memory;
}

absl::Status ProgramTrainee::CopyTensors(tensors::TensorsCopy& copy) const {
  std::vector<float> on_host;
  copy.tensors = Tensors(ParametersOnHost(on_host));
  copy.memory.resize(copy.tensors.size());
  for (std::size_t i = 0; i < copy.tensors.size(); ++i) {
    copy.memory[i].assign(copy.tensors[i].bytes.begin(), copy.tensors[i].bytes.end());
    copy.tensors[i].bytes = copy.memory[i];
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ProgramTrainee::WriteModel(const std::string& directory) {
  const std::string path = directory + "/" + protocol::kWeightsFile;
  std::vector<float> on_host;
  absl::Status written = tensors::WriteSafetensors(path, Tensors(ParametersOnHost(on_host)));
  if (!written.ok()) return written;
  return std::vector<std::string>{protocol::kWeightsFile};
}

void ProgramTrainee::Step(std::span<float> gradients, double gain) {
  Note(turns_.Ask({.kind = Request::Kind::kStep, .gradients = gradients, .gain = gain}));
}

std::vector<std::span<float>> ProgramTrainee::State() {
  std::vector<std::span<float>> spans;
  for (cuda::Buffer& state : states_) spans.push_back(state.span());
  return spans;
}

void ProgramTrainee::TakeState(std::uint64_t steps) {
  Note(turns_.Ask({.kind = Request::Kind::kTakeState, .steps = steps}));
}

void ProgramTrainee::Note(const Answer& answer) const {
  if (failure_.ok()) failure_ = answer.status;
}

}  // namespace tactus::sdk
