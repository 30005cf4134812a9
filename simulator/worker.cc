#include "simulator/worker.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <utility>
#include <variant>

#include "agent/life/life.h"
#include "agent/life/standing.h"
#include "agent/subset/random_subset.h"
#include "base/check.h"
#include "base/rng.h"
#include "cuda/ops/vector.h"

namespace tactus::simulator {
namespace {

constexpr int kEvaluationBatches = 10;  // of each member

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

bool LiesIn(std::span<const float> whole, std::span<const float> part) {
  const std::less_equal<const float*> precedes;
  return precedes(whole.data(), part.data()) &&
         precedes(part.data() + part.size(), whole.data() + whole.size());
}

// What a world answers that is over; nobody hears it.
life::Failure Killed() { return {.message = "killed"}; }

}  // namespace

// One in memory at a time, which is written when its time has come and somebody asks.
class Worker::Checkpoints : public life::CheckpointStore {
 public:
  explicit Checkpoints(Worker& worker) : worker_(worker) {}

  bool idle() override { return !writing_ && !worker_.process_.killed(); }
  void Write(job::CheckpointedMessage facts) override;
  std::optional<job::CheckpointedMessage> Poll() override;
  std::optional<job::CheckpointedMessage> Abandon() override;
  void Discard() override { writing_.reset(); }

 private:
  struct Writing {
    job::CheckpointedMessage message{};
    std::shared_ptr<const Checkpoint> checkpoint{};
    Instant end{};
  };

  Worker& worker_;
  std::optional<Writing> writing_;
};

void Worker::Checkpoints::Write(job::CheckpointedMessage facts) {
  const WorkerSurroundings& around = worker_.around_;
  const CheckpointModel& model = around.job.checkpoints;
  std::shared_ptr<Checkpoint> checkpoint = worker_.CopyCheckpoint();
  // Parameters may be what they were some rounds ago.
  checkpoint->id =
      CheckpointId(worker_.key_, Mix64(HashOf(worker_.parameters_.span()) ^ Mix64(facts.rounds)));
  const bool of_end = worker_.engine_->outcome() != engine::Outcome::kTraining;
  around.checkers.OnCheckpoint(worker_.key_,
                               {.id = checkpoint->id, .rounds = facts.rounds, .of_end = of_end},
                               around.scheduler.now());
  facts.file = protocol::CheckpointFileOf(facts);
  facts.still_seconds += model.still_seconds;
  facts.write_seconds = model.write_seconds;
  const Instant copied = around.scheduler.now() + Seconds(model.still_seconds);
  writing_ = {.message = std::move(facts),
              .checkpoint = std::move(checkpoint),
              .end = copied + Seconds(model.write_seconds)};
  if (copied > around.scheduler.now()) worker_.process_.SleepUntil(copied, WaitReason::kComputing);
}

std::optional<job::CheckpointedMessage> Worker::Checkpoints::Poll() {
  const WorkerSurroundings& around = worker_.around_;
  if (!writing_ || worker_.process_.killed() || writing_->end > around.scheduler.now()) {
    return std::nullopt;
  }
  const Writing written = *std::exchange(writing_, std::nullopt);
  around.keep(written.message.file, written.checkpoint);
  return written.message;
}

std::optional<job::CheckpointedMessage> Worker::Checkpoints::Abandon() {
  std::optional<job::CheckpointedMessage> written = Poll();
  writing_.reset();
  return written;
}

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

void Worker::FlipBit(std::size_t element, unsigned bit) {
  float& value = parameters_.span()[element];
  value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ (1u << bit));
}

job::StandingMessage Worker::Standing() const {
  const Instant now = around_.scheduler.now();
  job::StandingMessage standing = life::StandingOf(key_.generation, batches_, transport_.get());
  standing.stopped = paused();
  standing.processor_seconds = ToSeconds(computed_);
  if (paused()) standing.silent_seconds = ToSeconds(now - *paused_since_);
  if (computes_ && !paused()) standing.processor_seconds += ToSeconds(now - *computes_);
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
  const bool failed = life::Life(*this, *this).Run().has_value();
  engine_.reset();
  EndPause();
  if (process_.killed()) return;  // what it leaves behind, Kill sees to
  transport_.reset();
  around_.exited(failed ? 1 : 0);
}

life::OrFailure<job::ToWorker> Worker::Await() {
  while (inbox_.empty() && !process_.killed()) process_.SleepUntilWoken(WaitReason::kMessage);
  if (process_.killed()) return Killed();
  return *Poll();
}

std::optional<job::ToWorker> Worker::Poll() {
  if (inbox_.empty()) return std::nullopt;
  job::ToWorker message = std::move(inbox_.front());
  inbox_.pop_front();
  return message;
}

void Worker::Send(const job::FromWorker& message) {
  if (process_.killed()) return;
  if (std::holds_alternative<job::FailedMessage>(message) ||
      std::holds_alternative<protocol::GroupLostMessage>(message) ||
      std::holds_alternative<protocol::FinishedMessage>(message)) {
    around_.checkers.Excuse(key_, Instant::max());
  }
  if (std::holds_alternative<protocol::DifferedMessage>(message)) around_.checkers.OnRepaired(key_);
  around_.say(message);
}

life::OrFailure<life::Loaded> Worker::Load(const std::function<bool()>& /*leaves*/) {
  const Instant begun = around_.scheduler.now();
  const Instant loaded = begun + Seconds(around_.job.load_seconds);
  if (!process_.SleepUntil(loaded, WaitReason::kStarting)) return Killed();
  around_.recorder.OnSpan(order_.track, TraceSpan::Kind::kLoad, begun, around_.scheduler.now());
  if (order_.checkpoint != nullptr && order_.checkpoint->damaged) {
    return life::Failure{.field = protocol::kCheckpointField,
                         .message = "it is damaged: its content is not what was written",
                         .transient = true};
  }
  validates_ = AsksForValidation() && FirstLoss().has_value();
  const engine::StopOptions& stop = around_.job.engine.stop;
  if ((stop.validation_loss || stop.patience) && !validates_) {
    return life::Failure{.field = "stop", .message = "the learner has no validation samples"};
  }
  MakeMember();
  const std::uint64_t carried = around_.job.parameters;
  return life::Loaded{
      .ready = {.parameters = carried > 0 ? carried : parameters_.size(),
                .train_samples = TrainSamples(around_.job),
                .samples_per_second = TriedOut(),
                .encodings = {policies::kEncodingNames.begin(), policies::kEncodingNames.end()}},
      .checkpoints_every = around_.job.checkpoints.every,
      .rounds = member_->rounds};
}

// Else nobody validates here while a job trains, which would take time that learners do not have.
bool Worker::AsksForValidation() const {
  const engine::ValidationOptions& validation = around_.job.engine.validation;
  if (validation.policy == engine::ValidationPolicy::kNone) return false;
  const engine::StopOptions& stop = around_.job.engine.stop;
  return validation.every || validation.epochs || validation.rounds || stop.validation_loss ||
         stop.patience;
}

// Of the parameters that a job begins with; nothing: there is nothing to validate with.
std::optional<double> Worker::FirstLoss() const {
  Learner& learner = *around_.job.learner;
  std::vector<float> parameters(cuda::FlatLength(learner.segments()));
  learner.Initialise(around_.job.engine.seed, parameters);
  return learner.Validate(parameters);
}

// The device's speed as its model has it: what noise does to a measurement of a second is little.
double Worker::TriedOut() const {
  if (!around_.job.tries_out) return 0;
  const DeviceModel& model = around_.device.model();
  const double samples =
      std::min(around_.job.settings.adapt.batch.per_worker, around_.job.engine.micro_batch);
  return samples / (model.batch_seconds + samples * model.sample_seconds);
}

// The others may still meet at the endpoints, one of which is closed now.
void Worker::LeaveUnmet(const job::GroupMessage& group) {
  // In a group that is over before it began it does not matter where the members are.
  const std::vector<std::string> endpoints(group.size, order_.endpoint);
  around_.meet({.job = order_.job, .generation = group.generation}, endpoints)
      .Fail("a member ended before the group had met");
}

life::OrFailure<life::Met> Worker::Meet(const job::GroupMessage& group,
                                        const life::Meeting& meeting) {
  const std::vector<std::string> endpoints = meeting.exchange(order_.endpoint);
  if (endpoints.empty()) {
    LeaveUnmet(group);
    return life::Failure{.message = "no endpoints came", .of_group = true};
  }
  key_ = {.job = order_.job, .generation = group.generation};
  rank_ = group.rank;
  rounds_ = group.rounds;
  group_ = &around_.meet(key_, endpoints);
  transport_ = group_->Join(static_cast<int>(rank_), process_);
  around_.recorder.OnRank(order_.track, rank_);
  MakeEngine(group);
  const std::string from = order_.checkpoint == nullptr ? "" : order_.checkpoint->id;
  around_.checkers.OnBegun(key_, from, around_.scheduler.now());
  plan_version_ = group.plan.version;
  around_.checkers.OnPlan(key_, group.plan, around_.scheduler.now());
  return life::Met{.engine = *engine_, .transport = *transport_, .parameters = parameters_.span()};
}

void Worker::MakeMember() {
  SimulatedJob& job = around_.job;
  host_ = cuda::MakeHostDevice(around_.device.model().name);
  parameters_ = host_->Allocate(cuda::FlatLength(job.learner->segments()));
  engine::EngineOptions options = job.engine;
  options.train_samples = TrainSamples(job);
  options.subset.samples = job.learner->train_samples();
  if (options.shards.by == engine::ShardBy::kMemory) {
    const double speed = 1 / around_.device.model().sample_seconds;
    options.shards.weight = static_cast<std::uint64_t>(std::max(1.0, std::round(speed)));
  }
  options.validation.samples = validates_ ? 1 : 0;
  member_ = std::make_unique<engine::Member>(options, *host_, job.learner->segments(),
                                             parameters_.span());
  const Checkpoint* from = order_.checkpoint.get();
  if (from == nullptr) {
    job.learner->Initialise(job.engine.seed, parameters_.span());
  } else {
    std::ranges::copy(from->parameters, parameters_.span().begin());
    member_->Restore(from->state);
    member_->ledger.PassOver(order_.skip_samples);
  }
}

void Worker::MakeEngine(const job::GroupMessage& group) {
  const std::size_t length = parameters_.size();
  gradients_ = host_->Allocate(length + engine::LaneCount(group.size));
  losses_ = host_->AllocateSums(1);
  group_->SetParameters(static_cast<int>(rank_), parameters_.span());
  group_->SetOfParameters(static_cast<int>(rank_), [this](std::span<const float> buffer) {
    return LiesIn(gradients_.span(), buffer) ||
           (engine_ != nullptr && LiesIn(engine_->combined(), buffer));
  });
  member_->options.nodes = group.nodes;
  // As many buckets as the model would have that the learner stands for.
  const double weight = group_->Weight(static_cast<double>(length)) / sizeof(float);
  const auto bucket_bytes = static_cast<double>(around_.job.engine.bucket_bytes);
  member_->options.bucket_bytes = std::max(
      static_cast<std::size_t>(bucket_bytes * static_cast<double>(length) / weight), sizeof(float));
  engine_ = std::make_unique<engine::RoundEngine>(
      *member_, engine::EngineBuffers{.gradients = gradients_.span(), .loss_sum = losses_.span()},
      *transport_, group.plan);
}

void Worker::LeaveGroup() {
  if (process_.killed()) return;  // what it leaves behind, Kill sees to
  engine_.reset();
  transport_.reset();
}

void Worker::BeginTraining() {
  if (rounds_.empty()) {
    if (order_.checkpoint != nullptr) {
      const std::vector<engine::Residuals>& residuals = order_.checkpoint->residuals;
      const engine::ResidualParts parts = {.members = residuals.size(),
                                           .of = [&](std::size_t rank) { return residuals[rank]; }};
      member_->encodings.Restore(engine::ShareOf(parts, rank_, group_->size()));
    }
    engine_->Begin(around_.scheduler.now(), HashParameters());
  } else {
    engine::Rejoining rejoining{.rounds = rounds_};
    if (engine::AreLevel(rounds_)) rejoining.own = HashParameters();
    engine_->Begin(around_.scheduler.now(), rejoining);
  }
  // What was used of a window that goes on, counts in this group.
  for (const engine::Batch& batch : engine_->UsedBefore()) {
    around_.checkers.OnSamples(
        key_, {.round = batch.round, .epoch = batch.epoch, .indices = batch.indices});
  }
  Observe(engine_->rounds());
}

// Of parameters that are common to all; where members differ, of the mean of what they hold at this
// moment. Nobody trains on what is learned here.
void Worker::Observe(std::uint64_t rounds) {
  const std::optional<Duration>& every = around_.job.validate_every;
  const Instant now = around_.scheduler.now();
  if (rank_ != 0 || !every || now < observes_from_ || process_.killed()) return;
  observes_from_ = now + *every;
  std::vector<float> mean;
  if (engine_->differ()) mean = group_->MeanOfParameters();
  const std::optional<double> loss = around_.job.learner->Validate(
      mean.empty() ? std::span<const float>(parameters_.span()) : mean);
  if (loss) around_.recorder.OnValidated(order_.track, rounds, *loss);
}

std::unique_ptr<life::CheckpointStore> Worker::OpenCheckpoints() {
  const CheckpointModel& model = around_.job.checkpoints;
  if (model.every && !process_.killed()) {
    const Duration to_arrive = Seconds(2 * (model.write_seconds + model.upload_seconds));
    around_.checkers.OnCheckpointsDue(key_,
                                      *model.every + Seconds(model.still_seconds) + to_arrive);
  }
  return std::make_unique<Checkpoints>(*this);
}

life::OrFailure<engine::StepResult> Worker::Compute(const engine::Batch& batch) {
  if (process_.killed()) return Killed();
  const Instant started = around_.scheduler.now();
  engine::StepResult result{.started = started, .finished = started};
  if (batch.indices.empty()) return result;
  const std::uint32_t samples_max = around_.device.model().samples_max;
  if (samples_max > 0 && batch.indices.size() > samples_max) {
    return life::Failure{.message = "out of memory: a micro-batch of " +
                                    std::to_string(batch.indices.size()) + " samples, " +
                                    std::to_string(samples_max) + " fit"};
  }
  const Duration time = around_.device.BatchTime(batch.indices.size(), started);
  computes_ = started;
  losses_.span().front() += around_.job.learner->ForwardBackward(
      batch, parameters_.span(), gradients_.span().first(parameters_.size()));
  const Duration done = batch.last_of_round ? MakeSegmentsReady(time) : Duration{};
  const Instant end = around_.scheduler.now() + (time - done);
  if (!process_.SleepUntil(end, WaitReason::kComputing)) return Killed();
  result.finished = around_.scheduler.now();
  computes_.reset();
  computed_ += result.finished - started;
  ++batches_;
  around_.checkers.OnSamples(
      key_, {.round = batch.round, .epoch = batch.epoch, .indices = batch.indices});
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

// What a round's reduction weighs is the model's, for which the learner stands.
void Worker::Complete(job::ReportMessage& message, bool newest) {
  if (process_.killed()) return;
  const Instant now = around_.scheduler.now();
  policies::Report& report = message.report;
  const bool alike = newest && !engine_->differ();
  const auto parameters_hash = alike ? std::optional(HashOf(parameters_.span())) : std::nullopt;
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
                            .losses = policies::LossesOf(report),
                            .samples = report.samples,
                            .compute_seconds = report.compute_seconds,
                            .wait_seconds = report.blocked_seconds - transfer,
                            .transfer_seconds = transfer},
                           now);
  if (newest) Observe(report.round + 1);
  if (engine_->plan().version != plan_version_) {
    plan_version_ = engine_->plan().version;
    around_.checkers.OnPlan(key_, engine_->plan(), now);
    around_.recorder.OnAdopted(order_.track, plan_version_, report.round + 1, now);
  }
  const double elements = static_cast<double>(report.bytes_sent / sizeof(float));
  report.bytes_sent = static_cast<std::uint64_t>(std::llround(group_->Weight(elements)));
}

engine::HashedParameters Worker::HashParameters() {
  return {.hash = HashOf(parameters_.span()),
          .finite = std::isfinite(cuda::host::SquaredNorm(parameters_.span()))};
}

// Learners have no buffers.
std::optional<life::Failure> Worker::AgreeOnBuffers(double /*own_samples*/) {
  around_.checkers.Excuse(key_, Instant::max());  // no round will come
  return std::nullopt;
}

// The members' shares are summed. Nothing: it is done.
std::optional<life::Failure> Worker::Evaluate(const std::function<void()>& beside) {
  Duration left = Seconds(around_.job.conclude_seconds);
  for (int batches = kEvaluationBatches; batches > 0; --batches) {
    beside();
    const Duration batch = left / batches;
    left -= batch;
    if (!process_.SleepUntil(around_.scheduler.now() + batch, WaitReason::kComputing)) {
      return Killed();
    }
  }
  std::vector<float> sums(2);
  const collective::Completion summed = transport_->StartAllReduceSum(sums)->Wait();
  if (process_.killed()) return Killed();
  if (summed.progress != collective::Progress::kFailed) return std::nullopt;
  return life::Failure{.message = summed.reason, .of_group = true};
}

life::OrFailure<engine::Validation> Worker::Validate(const std::function<void()>& beside) {
  if (auto failure = Evaluate(beside)) return *failure;
  if (rank_ != 0) return engine::Validation{};
  const std::optional<double> loss = around_.job.learner->Validate(parameters_.span());
  if (!loss) return engine::Validation{};
  return engine::Validation{.loss = *loss, .samples = 1, .end = around_.scheduler.now()};
}

// All know the loss, as all of them decide by it.
life::OrFailure<engine::Validation> Worker::ValidateAtEdge() {
  around_.checkers.Excuse(key_,
                          around_.scheduler.now() + Seconds(2 * around_.job.conclude_seconds));
  if (auto failure = Evaluate([] {})) return *failure;
  const std::optional<double> loss = around_.job.learner->Validate(parameters_.span());
  return engine::Validation{.loss = loss.value_or(0), .samples = 1, .end = around_.scheduler.now()};
}

// Learners have no gradients of samples: who asks for a simulation is told so.
life::OrFailure<life::SubsetChoice> Worker::ChooseSubset() {
  if (process_.killed()) return Killed();
  const engine::EngineOptions& options = member_->options;
  TACTUS_CHECK(options.subset.kind == engine::SubsetKind::kRandom);
  return life::SubsetChoice{
      .subset = subset::DrawSubset(options.subset.samples, options.train_samples, options.seed,
                                   engine_->ledger().subset().number + 1),
      .end = around_.scheduler.now(),
      .facts = std::to_string(options.train_samples) + " of " +
               std::to_string(options.subset.samples) + " samples, drawn"};
}

// No parameters become a file.
Instant Worker::KeepBest() { return around_.scheduler.now(); }

life::OrFailure<std::vector<std::string>> Worker::KeepResult(
    const job::FinishedMessage& /*finished*/, const protocol::EvaluatedMessage& /*evaluated*/) {
  return std::vector<std::string>{"model.pt", "model.safetensors", "summary.json"};
}

std::optional<life::Failure> Worker::KeepCheckpoint() {
  const Instant end = around_.scheduler.now() + Seconds(around_.job.checkpoints.write_seconds);
  const std::shared_ptr<const Checkpoint> checkpoint = CopyCheckpoint();
  around_.checkers.OnCheckpoint(key_, {.id = checkpoint->id, .rounds = engine_->rounds()},
                                around_.scheduler.now());
  if (!process_.SleepUntil(end, WaitReason::kComputing)) return Killed();
  around_.keep(kCheckpointFile, checkpoint);
  return std::nullopt;
}

// What a group would go on from, and its name.
std::shared_ptr<Checkpoint> Worker::CopyCheckpoint() {
  const std::span<const float> parameters = parameters_.span();
  auto checkpoint = std::make_shared<Checkpoint>();
  checkpoint->id = CheckpointId(key_, HashOf(parameters_.span()));
  checkpoint->state = engine_->State();
  checkpoint->parameters.assign(parameters.begin(), parameters.end());
  checkpoint->residuals = engine_->TakeResiduals();
  return checkpoint;
}

}  // namespace tactus::simulator
