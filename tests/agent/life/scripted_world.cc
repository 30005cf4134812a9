#include "tests/agent/life/scripted_world.h"

#include <limits>
#include <utility>
#include <variant>

#include "agent/collective/in_process.h"

namespace tactus::life {
namespace {

constexpr std::size_t kLength = 16;

struct Words {
  std::string operator()(const protocol::ReadyMessage&) const { return "ready"; }
  std::string operator()(const protocol::EndpointMessage& said) const {
    return "endpoint " + said.endpoint + " of " + std::to_string(said.generation);
  }
  std::string operator()(const protocol::ReportMessage& said) const {
    return "report " + std::to_string(said.report.round);
  }
  std::string operator()(const protocol::EvaluatedMessage&) const { return "evaluated"; }
  std::string operator()(const protocol::FinishedMessage& said) const {
    std::string text = said.suspended ? "suspended" : "finished";
    for (const std::string& file : said.files) text += " " + file;
    return text + " (" + said.reason + ")";
  }
  std::string operator()(const protocol::FailedMessage& said) const {
    return "failed " + (said.field.empty() ? "" : said.field + ": ") + said.message +
           (said.transient ? ", transient" : "") +
           (said.lost_generation > 0 ? ", lost " + std::to_string(said.lost_generation) : "");
  }
  std::string operator()(const protocol::GroupLostMessage& said) const {
    std::string text = (said.planned ? "left " : "lost ") + std::to_string(said.generation) +
                       " after " + std::to_string(said.rounds) + ": " + said.reason;
    for (const std::uint32_t rank : said.blames) text += ", by " + std::to_string(rank);
    return text;
  }
  std::string operator()(const protocol::DifferedMessage& said) const {
    std::string text = "differed after " + std::to_string(said.rounds) + ":";
    for (const std::uint32_t rank : said.wrong) text += " " + std::to_string(rank);
    return text;
  }
  std::string operator()(const protocol::SelectedMessage& said) const {
    return "selected " + std::to_string(said.number) + " after " + std::to_string(said.rounds) +
           (said.seconds > 0 ? ", stood" : "") + ": " + said.facts;
  }
  std::string operator()(const protocol::CheckpointedMessage& said) const {
    return "checkpoint " + said.file;
  }
  std::string operator()(const protocol::StandingMessage&) const { return "standing"; }
  std::string operator()(const protocol::ValidatedMessage& said) const {
    return "validated after " + std::to_string(said.rounds) + ", best after " +
           std::to_string(said.best_rounds);
  }
};

}  // namespace

class ScriptedWorld::Store : public CheckpointStore {
 public:
  explicit Store(ScriptedWorld& world) : world_(world) {}

  bool idle() override { return !writing_; }
  void Write(protocol::CheckpointedMessage facts) override {
    world_.log.push_back("copy " + std::to_string(facts.rounds));
    facts.file = protocol::CheckpointFileOf(facts);
    writing_ = std::move(facts);
  }
  std::optional<protocol::CheckpointedMessage> Poll() override {
    if (world_.disk == Disk::kSlow) return std::nullopt;
    auto written = std::exchange(writing_, std::nullopt);
    return world_.disk == Disk::kQuick ? written : std::nullopt;
  }
  std::optional<protocol::CheckpointedMessage> Abandon() override {
    world_.log.emplace_back("abandon");
    return Poll();
  }
  void Discard() override { world_.log.emplace_back("discard"); }

 private:
  ScriptedWorld& world_;
  std::optional<protocol::CheckpointedMessage> writing_;
};

ScriptedWorld::ScriptedWorld()
    : device_(cuda::MakeHostDevice("cpu:0")),
      segments_{{.name = "weight", .length = kLength, .shape = {kLength}}},
      parameters_(device_->Allocate(kLength)),
      gradients_(device_->Allocate(kLength + engine::LaneCount(1))),
      losses_(device_->AllocateSums(1)),
      transport_(NewTransport()) {
  mail = {Group(), Peers()};
  options.train_samples = 100;
  options.nonfinite_rounds_max = 1;
  options.stop.rounds = 2;
}

class ScriptedWorld::WatchedTransport : public collective::Transport {
 public:
  WatchedTransport(ScriptedWorld& world, std::unique_ptr<collective::Transport> inner)
      : world_(world), inner_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::unique_ptr<collective::Collective> Start(const collective::Operation& operation) override {
    return inner_->Start(operation);
  }
  std::vector<int> failed() override { return world_.gone; }
  void Abort(const std::string& reason) override { inner_->Abort(reason); }

 private:
  ScriptedWorld& world_;
  const std::unique_ptr<collective::Transport> inner_;
};

std::unique_ptr<collective::Transport> ScriptedWorld::NewTransport() {
  gone.clear();
  return std::make_unique<WatchedTransport>(
      *this, std::move(collective::MakeInProcessGroup(1, [this] { return now_; })[0]));
}

protocol::GroupMessage ScriptedWorld::Group(std::uint32_t rank, std::uint64_t generation) {
  return {.generation = generation,
          .rank = rank,
          .size = 2,
          .plan = {.version = 1, .batch_sizes = {4, 4}, .reason = "the test"},
          .loss_seconds = 1e9};
}

protocol::GroupMessage ScriptedWorld::NextGroup(std::uint64_t generation, std::uint64_t rounds) {
  protocol::GroupMessage group = Group(0, generation);
  group.rounds = {rounds, rounds};
  return group;
}

protocol::PeersMessage ScriptedWorld::Peers(std::uint64_t generation) {
  return {.generation = generation, .endpoints = {"here", "there"}};
}

void ScriptedWorld::SpoilGradients() {
  gradients_.span().front() = std::numeric_limits<float>::quiet_NaN();
}

OrFailure<protocol::ToWorker> ScriptedWorld::Await() {
  if (mail.empty()) return Failure{.message = "the agent is gone", .transient = true};
  protocol::ToWorker message = std::move(mail.front());
  mail.pop_front();
  return message;
}

std::optional<protocol::ToWorker> ScriptedWorld::Poll() {
  std::deque<protocol::ToWorker>& in_group = engine_ == nullptr ? in_meeting : in_training;
  std::deque<protocol::ToWorker>& messages = in_loading.empty() ? in_group : in_loading;
  if (messages.empty()) return std::nullopt;
  protocol::ToWorker message = std::move(messages.front());
  messages.pop_front();
  return message;
}

void ScriptedWorld::Send(const protocol::FromWorker& message) {
  log.push_back("says " + std::visit(Words{}, message));
}

OrFailure<Loaded> ScriptedWorld::Load(const std::function<bool()>& leaves) {
  log.emplace_back("load");
  if (!in_loading.empty() && leaves()) return Failure{.message = "was asked to leave"};
  if (loading) return *loading;
  member_ = std::make_unique<engine::Member>(options, *device_, segments_, parameters_.span());
  return Loaded{
      .checkpoints_every = checkpoints_every, .keeps_best = keeps_best, .rounds = rounds_before};
}

OrFailure<Met> ScriptedWorld::Meet(const protocol::GroupMessage& group, const Meeting& way) {
  log.emplace_back("meet");
  if (way.exchange("here").empty()) return Failure{.message = "nobody came", .of_group = true};
  if (const std::string why = way.give_up(); !why.empty())
    return Failure{.message = why, .of_group = true};
  if (meeting) return *meeting;
  rounds_.assign(group.rounds.begin(), group.rounds.begin() + (group.rounds.empty() ? 0 : 1));
  engine_ = std::make_unique<engine::RoundEngine>(
      *member_, engine::EngineBuffers{.gradients = gradients_.span(), .loss_sum = losses_.span()},
      *transport_, policies::Plan{.version = 1, .batch_sizes = {4}, .reason = "the test"});
  return Met{.engine = *engine_, .transport = *transport_, .parameters = parameters_.span()};
}

void ScriptedWorld::LeaveGroup() {
  log.emplace_back("leave");
  engine_.reset();
  transport_ = NewTransport();
}

void ScriptedWorld::BeginTraining() {
  log.emplace_back(rounds_.empty() ? "begin" : "go on");
  if (rounds_.empty()) {
    engine_->Begin(Tick());
  } else {
    engine_->Begin(Tick(), {.rounds = rounds_});
  }
}

std::unique_ptr<CheckpointStore> ScriptedWorld::OpenCheckpoints() {
  return std::make_unique<Store>(*this);
}

OrFailure<engine::StepResult> ScriptedWorld::Compute(const engine::Batch& batch) {
  if (computing) return *computing;
  on_compute(batch);
  const Instant started = now_;
  return engine::StepResult{.started = started, .finished = Tick()};
}

void ScriptedWorld::OnStep(const engine::Batch& batch) {
  log.push_back("step " + std::to_string(batch.round));
}

void ScriptedWorld::Complete(protocol::ReportMessage& message, bool newest) {
  log.push_back("complete " + std::to_string(message.report.round) + (newest ? "" : " of two"));
}

void ScriptedWorld::OnReported(const policies::Report& report) {
  log.push_back("reported " + std::to_string(report.round));
  on_report(report);
}

std::optional<Failure> ScriptedWorld::AgreeOnBuffers(double own_samples) {
  log.push_back("agree over " + std::to_string(static_cast<int>(own_samples)));
  return agreeing;
}

OrFailure<SubsetChoice> ScriptedWorld::ChooseSubset() {
  log.emplace_back("choose");
  if (choosing) return *choosing;
  SubsetChoice choice{.end = Tick(), .facts = "as the test says"};
  if (subsets.empty()) return choice;
  choice.subset = engine::Subset{.number = engine_->ledger().subset().number + 1,
                                 .samples = std::move(subsets.front())};
  subsets.pop_front();
  return choice;
}

double ScriptedWorld::NextLoss() {
  const double loss = validation_losses.front();
  if (validation_losses.size() > 1) validation_losses.pop_front();
  return loss;
}

OrFailure<engine::Validation> ScriptedWorld::Validate(const std::function<void()>& beside) {
  log.emplace_back("validate");
  on_validate();
  beside();
  if (validating) return *validating;
  return engine::Validation{.loss = NextLoss(), .samples = validation_samples, .end = now_};
}

OrFailure<engine::Validation> ScriptedWorld::ValidateAtEdge() {
  log.emplace_back("validate at an edge");
  if (validating) return *validating;
  return engine::Validation{.loss = NextLoss(), .samples = validation_samples, .end = Tick()};
}

void ScriptedWorld::OnValidated(const protocol::ValidatedMessage& message) {
  validation_seconds.push_back(message.seconds);
  log.push_back("draw validation " + std::to_string(message.rounds));
}

OrFailure<std::vector<std::string>> ScriptedWorld::KeepResult(const protocol::FinishedMessage&,
                                                              const protocol::EvaluatedMessage&) {
  log.emplace_back("keep result");
  if (writing) return *writing;
  return std::vector<std::string>{"model.pt"};
}

std::optional<Failure> ScriptedWorld::KeepCheckpoint() {
  log.emplace_back("keep checkpoint");
  return writing;
}

}  // namespace tactus::life
