#include "simulator/worker.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>
#include <variant>

#include "base/rng.h"

namespace tactus::simulator {
namespace {

// Of all bits, so that members with equal hashes hold equal parameters.
std::uint64_t HashOf(std::span<const float> values) {
  std::uint64_t hash = values.size();
  std::size_t at = 0;
  for (; at + 1 < values.size(); at += 2) {
    std::uint64_t pair = 0;
    std::memcpy(&pair, values.data() + at, sizeof(pair));
    hash = Mix64(hash ^ pair) + 0x9e3779b97f4a7c15ULL;
  }
  if (at < values.size()) hash = Mix64(hash ^ std::bit_cast<std::uint32_t>(values[at]));
  return hash;
}

engine::StopKind KindOf(const job::StopMessage& stop) {
  if (stop.discard) return engine::StopKind::kDiscard;
  return stop.suspend ? engine::StopKind::kSuspend : engine::StopKind::kFinish;
}

// As unlike others as a hash of the content would be.
std::string CheckpointId(const GroupKey& key, std::uint64_t parameters_hash) {
  std::string id;
  std::uint64_t hash = Mix64(key.job.value) ^ Mix64(key.generation ^ (parameters_hash << 1));
  for (int part = 0; part < 4; ++part) {
    hash = Mix64(hash + 0x9e3779b97f4a7c15ULL);
    std::array<char, 17> digits{};
    std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(hash));
    id += digits.data();
  }
  return id;
}

}  // namespace

Worker::Worker(WorkerOrder order, WorkerSurroundings around)
    : order_(std::move(order)),
      around_(std::move(around)),
      process_(around_.scheduler, [this] { Run(); }) {}

void Worker::Receive(const job::ToWorker& message) {
  inbox_.push_back(message);
  around_.checkers.OnQueue("a worker's inbox", inbox_.size(), kInboxMax, around_.scheduler.now());
  if (process_.waiting_for() == WaitReason::kMessage) process_.Wake();
}

void Worker::Kill() {
  process_.Kill();
  if (group_ != nullptr && transport_ != nullptr) {
    around_.checkers.Excuse(key_, Instant::max());
    group_->Fail("a member's process ended");
  }
  transport_.reset();
}

void Worker::PauseUntil(Instant until) {
  process_.PauseUntil(until);
  if (!paused()) return;
  if (!paused_since_) paused_since_ = around_.scheduler.now();
  if (until == Instant::max()) return;
  around_.scheduler.At(until, [this] {
    if (!paused()) EndPause();
  });
}

job::StandingMessage Worker::Standing() const {
  const Instant now = around_.scheduler.now();
  job::StandingMessage standing{.generation = key_.generation,
                                .batches = batches_,
                                .stopped = paused(),
                                .processor_seconds = ToSeconds(computed_)};
  if (paused()) standing.silent_seconds = ToSeconds(now - *paused_since_);
  if (computes_ && !paused()) standing.processor_seconds += ToSeconds(now - *computes_);
  if (transport_ == nullptr) return standing;
  const collective::Awaiting awaiting = transport_->awaiting();
  standing.bytes = awaiting.bytes_moved;
  standing.waits = awaiting.collective;
  standing.awaits.assign(awaiting.peers.begin(), awaiting.peers.end());
  return standing;
}

void Worker::EndPause() {
  if (!paused_since_) return;
  around_.recorder.OnSpan(order_.track, TraceSpan::Kind::kPause, *paused_since_,
                          around_.scheduler.now());
  paused_since_.reset();
}

std::optional<GroupKey> Worker::training() const {
  return engine_ == nullptr ? std::nullopt : std::optional(key_);
}

void Worker::Run() {
  const int exit_code = RunToEnd();
  engine_.reset();
  EndPause();
  if (process_.killed()) return;  // what it leaves behind, Kill sees to
  transport_.reset();
  around_.exited(exit_code);
}

int Worker::RunToEnd() {
  Scheduler& scheduler = around_.scheduler;
  const Instant begun = scheduler.now();
  const Instant loaded = begun + Seconds(around_.job.load_seconds);
  if (!process_.SleepUntil(loaded, WaitReason::kStarting)) return 0;
  around_.recorder.OnSpan(order_.track, TraceSpan::Kind::kLoad, begun, scheduler.now());
  if (order_.checkpoint != nullptr && order_.checkpoint->damaged) {
    around_.say(job::FailedMessage{.field = protocol::kCheckpointField,
                                   .message = "it is damaged: its content is not what was written",
                                   .transient = true});
    return 1;
  }
  const Learner& learner = *around_.job.learner;
  around_.say(job::ReadyMessage{.parameters = cuda::FlatLength(learner.segments()),
                                .train_samples = learner.train_samples(),
                                .samples_per_second = TriedOut()});
  const std::optional<job::GroupMessage> group = AwaitGroup();
  if (!group) return 0;
  around_.say(job::EndpointMessage{.generation = group->generation, .endpoint = order_.endpoint});
  const std::optional<job::PeersMessage> peers = AwaitPeers(group->generation);
  if (!peers) {
    LeaveUnmet(*group);
    return 0;
  }
  Meet(*group, *peers);
  if (const int exit_code = Train(); exit_code != 0 || process_.killed()) return exit_code;
  return Conclude();
}

// The device's speed as its model has it: what noise does to a measurement of a second is little.
double Worker::TriedOut() const {
  if (!around_.job.tries_out) return 0;
  const DeviceModel& model = around_.device.model();
  const double samples =
      std::min(around_.job.settings.adapt.batch.per_worker, around_.job.engine.micro_batch);
  return samples / (model.batch_seconds + samples * model.sample_seconds);
}

std::optional<job::GroupMessage> Worker::AwaitGroup() {
  while (std::optional<job::ToWorker> message = AwaitMessage()) {
    if (auto* group = std::get_if<job::GroupMessage>(&*message)) return std::move(*group);
  }
  return std::nullopt;
}

std::optional<job::PeersMessage> Worker::AwaitPeers(std::uint64_t generation) {
  while (std::optional<job::ToWorker> message = AwaitMessage()) {
    auto* peers = std::get_if<job::PeersMessage>(&*message);
    if (peers != nullptr && peers->generation == generation) return std::move(*peers);
  }
  return std::nullopt;
}

// The next message but a stop; nothing when it is to leave.
std::optional<job::ToWorker> Worker::AwaitMessage() {
  while (inbox_.empty()) {
    if (!process_.SleepUntilWoken(WaitReason::kMessage)) return std::nullopt;
  }
  job::ToWorker message = std::move(inbox_.front());
  inbox_.pop_front();
  if (std::holds_alternative<job::StopMessage>(message)) return std::nullopt;
  return message;
}

// The others may still meet at the endpoints, one of which is closed now.
void Worker::LeaveUnmet(const job::GroupMessage& group) {
  // In a group that is over before it began it does not matter where the members are.
  const std::vector<std::string> endpoints(group.size, order_.endpoint);
  around_.meet({.job = order_.job, .generation = group.generation}, endpoints)
      .Fail("a member ended before the group had met");
}

void Worker::Meet(const job::GroupMessage& group, const job::PeersMessage& peers) {
  key_ = {.job = order_.job, .generation = group.generation};
  rank_ = group.rank;
  group_ = &around_.meet(key_, peers.endpoints);
  transport_ = group_->Join(static_cast<int>(rank_), process_);

  SimulatedJob& job = around_.job;
  around_.recorder.OnRank(order_.track, rank_);
  const std::size_t length = cuda::FlatLength(job.learner->segments());
  host_ = cuda::MakeHostDevice(around_.device.model().name);
  parameters_ = host_->Allocate(length);
  gradients_ = host_->Allocate(length + engine::LaneCount(group.size));
  losses_ = host_->AllocateSums(1);
  const Checkpoint* from = order_.checkpoint.get();
  if (from == nullptr) {
    job.learner->Initialise(job.engine.seed, parameters_.span());
  } else {
    std::ranges::copy(from->parameters, parameters_.span().begin());
  }
  engine::EngineOptions options = job.engine;
  options.train_samples = job.learner->train_samples();
  options.nodes = group.nodes;
  // As many buckets as the model would have that the learner stands for.
  const double weight = group_->Weight(static_cast<double>(length)) / sizeof(float);
  options.bucket_bytes =
      std::max(static_cast<std::size_t>(static_cast<double>(options.bucket_bytes) *
                                        static_cast<double>(length) / weight),
               sizeof(float));
  engine_ =
      std::make_unique<engine::RoundEngine>(options, *host_, job.learner->segments(),
                                            engine::EngineBuffers{.parameters = parameters_.span(),
                                                                  .gradients = gradients_.span(),
                                                                  .loss_sum = losses_.span()},
                                            *transport_, group.plan);
  if (from != nullptr) engine_->Restore(from->state);
  around_.checkers.OnBegun(key_, from == nullptr ? "" : from->id, around_.scheduler.now());
  plan_version_ = group.plan.version;
  around_.checkers.OnPlan(key_, group.plan, around_.scheduler.now());
  if (rank_ != 0 || !(group.loss_seconds > 0)) return;
  const CheckpointModel& model = job.checkpoints;
  schedule_.emplace(model.every, group.loss_seconds, engine_->mark());
  if (!model.every) return;
  const Duration to_arrive = Seconds(2 * (model.write_seconds + model.upload_seconds));
  around_.checkers.OnCheckpointsDue(key_, *model.every + Seconds(model.still_seconds) + to_arrive);
}

int Worker::Train() {
  engine_->Begin(around_.scheduler.now());
  while (std::optional<engine::Batch> batch = engine_->NextBatch()) {
    const engine::StepResult result = Compute(*batch);
    if (process_.killed()) return 0;
    if (!out_of_memory_.empty()) return Fail(out_of_memory_, 0);
    if (!batch->indices.empty()) {
      around_.checkers.OnSamples(
          key_, {.round = batch->round, .epoch = batch->epoch, .indices = batch->indices});
    }
    engine_->Step(result);
    OnRounds();
    AtEdge();
    TakeMessages();
  }
  if (!EndsByItself()) written_at_.reset();  // given up
  if (process_.killed()) return 0;
  if (engine_->outcome() == engine::Outcome::kGroupLost) {
    return Fail("the group was lost: " + engine_->reason(), key_.generation);
  }
  if (engine_->outcome() == engine::Outcome::kDiverged) {
    return Fail("training diverged: " + engine_->reason(), 0);
  }
  return 0;
}

engine::StepResult Worker::Compute(const engine::Batch& batch) {
  const Instant started = around_.scheduler.now();
  engine::StepResult result{.started = started, .finished = started};
  if (batch.indices.empty()) return result;
  const std::uint32_t samples_max = around_.device.model().samples_max;
  if (samples_max > 0 && batch.indices.size() > samples_max) {
    out_of_memory_ = "out of memory: a micro-batch of " + std::to_string(batch.indices.size()) +
                     " samples, " + std::to_string(samples_max) + " fit";
    return result;
  }
  const Duration time = around_.device.BatchTime(batch.indices.size(), started);
  computes_ = started;
  losses_.span().front() += around_.job.learner->ForwardBackward(
      batch, parameters_.span(), gradients_.span().first(parameters_.size()));
  const Duration done = batch.last_of_round ? MakeSegmentsReady(time) : Duration{};
  process_.SleepUntil(around_.scheduler.now() + (time - done), WaitReason::kComputing);
  result.finished = around_.scheduler.now();
  computes_.reset();
  computed_ += result.finished - started;
  ++batches_;
  return result;
}

// Tells the engine of each segment at its moment in the backward pass. Returns which part of the
// micro-batch's `whole` time is over when it returns.
Duration Worker::MakeSegmentsReady(Duration whole) {
  const double share = around_.job.backward_share;
  const std::size_t segments = around_.job.learner->segments().size();
  Duration done{};
  if (share <= 0 || segments < 2) return done;
  const double seconds = ToSeconds(whole);
  for (std::size_t segment = 0; segment + 1 < segments; ++segment) {
    const double part = static_cast<double>(segment + 1) / static_cast<double>(segments);
    const Duration ready = Seconds(seconds * (1 - share + share * part));
    const Instant due = around_.scheduler.now() + (ready - done);
    if (!process_.SleepUntil(due, WaitReason::kComputing)) return done;
    done = ready;
    engine_->SegmentReady(segment);
  }
  return done;
}

// Of two that were applied one after the other, the parameters are those after the last.
void Worker::OnRounds() {
  std::optional<policies::Report> report = engine_->TakeReport();
  while (report) {
    const policies::Report closed = *report;
    report = engine_->TakeReport();
    OnRound(closed, report ? std::nullopt : std::optional(HashOf(parameters_.span())));
  }
}

void Worker::OnRound(const policies::Report& report, std::optional<std::uint64_t> parameters_hash) {
  const Instant now = around_.scheduler.now();
  if (process_.killed()) return;
  around_.checkers.OnRoundClosed(key_,
                                 {.round = report.round,
                                  .epoch = report.epoch,
                                  .plan_version = report.plan_version,
                                  .parameters_hash = parameters_hash},
                                 now);
  const double transfer =
      std::clamp(ToSeconds(now - group_->last_arrival()), 0.0, report.blocked_seconds);
  around_.recorder.OnLived(order_.track,
                           {.round = report.round,
                            .plan_version = report.plan_version,
                            .samples_global = report.samples_global,
                            .loss = report.loss_mean_global,
                            .samples = report.samples,
                            .compute_seconds = report.compute_seconds,
                            .wait_seconds = report.blocked_seconds - transfer,
                            .transfer_seconds = transfer},
                           now);
  if (engine_->plan().version != plan_version_) {
    plan_version_ = engine_->plan().version;
    around_.checkers.OnPlan(key_, engine_->plan(), now);
    around_.recorder.OnAdopted(order_.track, plan_version_, report.round + 1, now);
  }
  job::ReportMessage message{.generation = key_.generation, .report = report};
  const double elements = static_cast<double>(report.bytes_sent / sizeof(float));
  message.report.bytes_sent = static_cast<std::uint64_t>(std::llround(group_->Weight(elements)));
  around_.say(message);
}

void Worker::TakeMessages() {
  while (!inbox_.empty()) {
    const job::ToWorker message = std::move(inbox_.front());
    inbox_.pop_front();
    if (const auto* plan = std::get_if<policies::Plan>(&message)) {
      // A plan that does not follow is one of an older coordinator; the next one will.
      [[maybe_unused]] const bool taken = engine_->OfferPlan(*plan);
    } else if (const auto* stop = std::get_if<job::StopMessage>(&message)) {
      engine_->RequestStop(stop->reason, KindOf(*stop));
    }
  }
}

int Worker::Conclude() {
  around_.checkers.Excuse(key_, Instant::max());
  job::FinishedMessage finished{.reason = engine_->reason(),
                                .rounds = engine_->rounds(),
                                .samples = engine_->samples(),
                                .samples_global = engine_->samples_global(),
                                .epochs = engine_->ledger().epoch(),
                                .train_loss = engine_->train_loss(),
                                .train_seconds = ToSeconds(engine_->train_time()),
                                .parameters_hash = HashOf(parameters_.span())};
  if (engine_->outcome() == engine::Outcome::kDiscarded) {
    around_.say(finished);
    return 0;
  }
  const Instant end = around_.scheduler.now() + Seconds(around_.job.conclude_seconds);
  concluding_ = true;
  KeepEnd();
  if (!process_.SleepUntil(end, WaitReason::kComputing)) return 0;
  // The members' shares of the evaluation are summed.
  std::vector<float> sums(2);
  const collective::Completion summed = transport_->StartAllReduceSum(sums)->Wait();
  if (process_.killed()) return 0;
  if (summed.progress == collective::Progress::kFailed) {
    return Fail("the group was lost: " + summed.reason, key_.generation);
  }
  finished.suspended = engine_->outcome() == engine::Outcome::kSuspended;
  written_at_.reset();  // given up: the result takes its place
  if (rank_ == 0) WriteFiles(finished);
  around_.say(finished);
  return 0;
}

void Worker::WriteFiles(job::FinishedMessage& finished) {
  if (!finished.suspended) {
    finished.files = {"model.pt", "model.safetensors", "summary.json"};
    if (const std::optional<double> loss = around_.job.learner->Validate(parameters_.span())) {
      around_.say(job::EvaluatedMessage{.loss = *loss, .samples = 1});
    }
  }
  if (!finished.suspended && !engine_->asked_to_stop()) return;
  const std::shared_ptr<const Checkpoint> checkpoint = CopyCheckpoint();
  around_.checkers.OnCheckpoint(key_, {.id = checkpoint->id, .rounds = engine_->rounds()},
                                around_.scheduler.now());
  around_.keep(kCheckpointFile, checkpoint);
  finished.files.emplace_back(kCheckpointFile);
}

// What a group would go on from, and its name.
std::shared_ptr<Checkpoint> Worker::CopyCheckpoint() {
  const std::span<const float> parameters = parameters_.span();
  auto checkpoint = std::make_shared<Checkpoint>();
  checkpoint->id = CheckpointId(key_, HashOf(parameters));
  checkpoint->state = engine_->State();
  checkpoint->parameters.assign(parameters.begin(), parameters.end());
  return checkpoint;
}

// As worker::RunningCheckpoints.
void Worker::AtEdge() {
  const engine::RoundEngine& engine = *engine_;
  const bool trains = engine.outcome() == engine::Outcome::kTraining && engine.at_edge();
  if (!schedule_ || written_at_ || process_.killed() || !trains) return;
  if (!schedule_->Due(engine.mark())) return;
  Take();
  const Duration still = Seconds(around_.job.checkpoints.still_seconds);
  if (still > Duration{})
    process_.SleepUntil(around_.scheduler.now() + still, WaitReason::kComputing);
}

bool Worker::EndsByItself() const {
  return engine_->outcome() == engine::Outcome::kFinished && !engine_->asked_to_stop();
}

// Of the end, beside what is left to do, when the former one is written.
void Worker::KeepEnd() {
  if (!concluding_ || !schedule_ || written_at_ || process_.killed() || !EndsByItself()) return;
  if (!schedule_->HasNew(engine_->mark())) return;
  Take();
}

void Worker::Take() {
  const engine::RoundEngine& engine = *engine_;
  std::shared_ptr<Checkpoint> checkpoint = CopyCheckpoint();
  // Parameters may be what they were some rounds ago.
  checkpoint->id = CheckpointId(key_, Mix64(HashOf(parameters_.span()) ^ Mix64(engine.rounds())));
  around_.checkers.OnCheckpoint(
      key_, {.id = checkpoint->id, .rounds = engine.rounds(), .of_end = EndsByItself()},
      around_.scheduler.now());
  const CheckpointModel& model = around_.job.checkpoints;
  job::CheckpointedMessage message{.generation = key_.generation,
                                   .rounds = engine.rounds(),
                                   .samples_global = engine.samples_global(),
                                   .epochs = engine.ledger().epoch(),
                                   .epoch_consumed = engine.ledger().consumed(),
                                   .train_loss = engine.train_loss(),
                                   .train_seconds = ToSeconds(engine.train_time()),
                                   .still_seconds = model.still_seconds,
                                   .write_seconds = model.write_seconds};
  message.file = protocol::CheckpointFileOf(message);
  schedule_->Taken(engine.mark());
  const Instant copied = around_.scheduler.now() + Seconds(model.still_seconds);
  written_at_ = copied + Seconds(model.write_seconds);
  around_.scheduler.At(*written_at_,
                       [this, message, checkpoint] { OnWritten(message, checkpoint); });
}

// Who stands still writes nothing either.
void Worker::OnWritten(const job::CheckpointedMessage& message,
                       const std::shared_ptr<const Checkpoint>& checkpoint) {
  if (process_.ended() || process_.killed() || !written_at_) return;
  if (paused()) {
    const Instant until = process_.paused_until();
    if (until == Instant::max()) return;
    written_at_ = until;
    around_.scheduler.At(until, [this, message, checkpoint] { OnWritten(message, checkpoint); });
    return;
  }
  written_at_.reset();
  schedule_->Observe(
      {.still_seconds = message.still_seconds, .beside_seconds = message.write_seconds});
  around_.keep(message.file, checkpoint);
  around_.say(message);
  KeepEnd();
}

int Worker::Fail(std::string message, std::uint64_t lost_generation) {
  around_.checkers.Excuse(key_, Instant::max());
  around_.say(job::FailedMessage{
      .field = "", .message = std::move(message), .lost_generation = lost_generation});
  return 1;
}

}  // namespace tactus::simulator
