#include "agent/life/life.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tactus::life {
namespace {

using engine::Outcome;
using protocol::FinishedMessage;
using protocol::GroupMessage;
using protocol::StopMessage;
using protocol::ToWorker;
using protocol::ValidatedMessage;

constexpr const char* kOvertaken = "another group was formed";

Failure LostGroup(const std::string& reason) {
  return {.message = "the group was lost: " + reason, .of_group = true};
}

// Of what needed the group, and may have failed for its own reasons.
Failure SaidOfGroup(const Failure& failure) {
  return failure.of_group ? LostGroup(failure.message) : failure;
}

engine::StopKind KindOf(const StopMessage& stop) {
  if (stop.discard) return engine::StopKind::kDiscard;
  if (stop.suspend && stop.regroup) return engine::StopKind::kRegroup;
  return stop.suspend ? engine::StopKind::kSuspend : engine::StopKind::kFinish;
}

}  // namespace

std::optional<protocol::FailedMessage> Life::Run() {
  const std::optional<Failure> failure = RunToEnd();
  if (!failure) return std::nullopt;
  protocol::FailedMessage failed{
      .field = failure->field, .message = failure->message, .transient = failure->transient};
  mail_.Send(failed);
  return failed;
}

std::optional<Failure> Life::RunToEnd() {
  if (auto failure = Load(); failure || left_) return failure;
  while (true) {
    if (auto failure = AwaitGroup(); failure || left_) return failure;
    auto failure = LiveInGroup();
    if (!failure || !failure->of_group) return failure;
    LeaveGroup(*failure);
  }
}

std::optional<Failure> Life::LiveInGroup() {
  if (auto failure = Meet(); failure || left_) return failure;
  if (auto failure = Train()) return failure;
  return Conclude();
}

std::optional<Failure> Life::Load() {
  const OrFailure<Loaded> loaded = world_.Load([this] { return IsToLeave(); });
  // Asked to go meanwhile, it has nothing to say of what came of it.
  if (left_) return std::nullopt;
  if (const auto* failure = std::get_if<Failure>(&loaded)) return *failure;
  loaded_ = std::get<Loaded>(loaded);
  rounds_ = loaded_.rounds;
  mail_.Send(loaded_.ready);
  return std::nullopt;
}

std::optional<Failure> Life::AwaitGroup() {
  while (!next_group_) {
    const OrFailure<ToWorker> next = mail_.Await();
    if (const auto* failure = std::get_if<Failure>(&next)) return *failure;
    Note(std::get<ToWorker>(next));
    if (left_) return std::nullopt;
  }
  group_ = *std::exchange(next_group_, {});
  const bool fits = group_.rank < group_.size && policies::Fits(group_.plan, group_.size) &&
                    (group_.rounds.empty() || group_.rounds.size() == group_.size);
  if (fits) return std::nullopt;
  return Failure{.message = "the group's plan does not fit its size"};
}

// Who is asked to regroup awaits the next group already. Who has lost its group holds what a
// checkpoint or a result would be of: a stop that was sent before that was heard of is of a group
// that is no more, and the next one is asked anew.
void Life::Note(const ToWorker& message) {
  const auto* stop = std::get_if<StopMessage>(&message);
  const bool leaves = stop != nullptr && KindOf(*stop) != engine::StopKind::kRegroup;
  left_ = left_ || (leaves && (stop->discard || !has_lost_));
  if (const auto* group = std::get_if<GroupMessage>(&message)) NoteGroup(*group);
}

// One that is told of again, or late, is no other one.
void Life::NoteGroup(const GroupMessage& group) {
  const std::uint64_t known = next_group_ ? next_group_->generation : group_.generation;
  if (group.generation > known) next_group_ = group;
}

std::optional<Failure> Life::Meet() {
  const OrFailure<Met> met = world_.Meet(
      group_, {.exchange = [this](std::string own) { return ExchangeEndpoints(std::move(own)); },
               .give_up = [this] { return WhyGiveUp(); }});
  if (left_) return std::nullopt;
  if (const auto* failure = std::get_if<Failure>(&met)) {
    Failure told = *failure;
    told.message = "the group could not be formed: " + failure->message;
    return told;
  }
  met_.emplace(std::get<Met>(met));
  return std::nullopt;
}

std::vector<std::string> Life::ExchangeEndpoints(std::string own) {
  mail_.Send(
      protocol::EndpointMessage{.generation = group_.generation, .endpoint = std::move(own)});
  while (true) {
    OrFailure<ToWorker> next = mail_.Await();
    if (std::holds_alternative<Failure>(next)) return {};
    auto& message = std::get<ToWorker>(next);
    auto* peers = std::get_if<protocol::PeersMessage>(&message);
    if (peers != nullptr && peers->generation == group_.generation) {
      return std::move(peers->endpoints);
    }
    Note(message);
    if (left_ || next_group_) return {};
  }
}

bool Life::IsToLeave() {
  while (const std::optional<ToWorker> message = mail_.Poll()) Note(*message);
  return left_;
}

std::string Life::WhyGiveUp() {
  if (IsToLeave()) return "the worker was asked to stop";
  return next_group_ ? kOvertaken : "";
}

// It is left before it is said, so that the others learn of it as soon as can be.
void Life::LeaveGroup(const Failure& failure) {
  protocol::GroupLostMessage lost{.generation = group_.generation, .reason = failure.message};
  if (checkpoints_ != nullptr) checkpoints_->Finish();
  checkpoints_.reset();
  if (met_) {
    lost.planned = engine().outcome() == Outcome::kRegrouped;
    // What fell apart beside the engine's own collectives, as in a validation.
    if (engine().outcome() != Outcome::kGroupLost) engine().LoseGroup(failure.message);
    rounds_ = engine().rounds();
    // Of those who leave together, one has closed its connections first.
    const std::vector<int> failed = lost.planned ? std::vector<int>() : met_->transport.failed();
    for (const int rank : failed) lost.blames.push_back(static_cast<std::uint32_t>(rank));
  }
  lost.rounds = rounds_;
  has_lost_ = true;
  met_.reset();
  world_.LeaveGroup();
  mail_.Send(lost);
}

std::optional<Failure> Life::Train() {
  world_.BeginTraining();
  OpenCheckpoints();
  if (auto failure = StandWhereDue()) return failure;  // a former group did not come to it
  while (const std::optional<engine::Batch> batch = engine().NextBatch()) {
    const OrFailure<engine::StepResult> result = world_.Compute(*batch);
    if (const auto* failure = std::get_if<Failure>(&result)) {
      if (!failure->of_group) return *failure;
      GiveUpGroup(failure->message);
      return EndTraining();
    }
    TakeMessages();  // so that what came meanwhile is voted for in this round
    engine().Step(std::get<engine::StepResult>(result));
    world_.OnStep(*batch);
    Report();
    if (engine().comparison_due()) Compare();
    if (auto failure = StandWhereDue()) return failure;
    // Behind it, so that a checkpoint of this edge has what it came to.
    if (checkpoints_ != nullptr) checkpoints_->AtEdge();
    // What the last round leaves is the result's and the end's checkpoint's. Where members differ
    // nobody's parameters stand for all but at the edges at which the mean is in their place.
    const bool common = !engine().differ() || engine().residuals_at_hand();
    if (common && engine().at_edge() && engine().outcome() == Outcome::kTraining) world_.AtEdge();
    TakeMessages();
    if (next_group_) GiveUpGroup(kOvertaken);
    LookForLoss();
  }
  return EndTraining();
}

void Life::Compare() {
  engine().Compare(world_.HashParameters());
  std::optional<engine::Comparison> comparison = engine().TakeComparison();
  if (!comparison || comparison->right != group_.rank) return;
  mail_.Send(protocol::DifferedMessage{.generation = group_.generation,
                                       .rounds = engine().rounds(),
                                       .wrong = std::move(comparison->wrong),
                                       .majority = comparison->majority});
}

std::optional<Failure> Life::StandWhereDue() {
  if (auto failure = ValidateWhereDue()) return failure;
  return ChooseWhereDue();
}

// Behind a validation, which may be what training ends with.
std::optional<Failure> Life::ChooseWhereDue() {
  if (!engine().selection_due()) return std::nullopt;
  OrFailure<SubsetChoice> chosen = world_.ChooseSubset();
  if (const auto* failure = std::get_if<Failure>(&chosen)) {
    EndTraining();
    return SaidOfGroup(*failure);
  }
  auto& choice = std::get<SubsetChoice>(chosen);
  const Duration stood = std::max(Duration{}, choice.end - engine().edge());
  engine().TakeSubset(std::move(choice.subset), choice.end);
  if (group_.rank != 0) return std::nullopt;
  mail_.Send(protocol::SelectedMessage{.generation = group_.generation,
                                       .rounds = engine().rounds(),
                                       .epoch = engine().ledger().epoch(),
                                       .number = engine().ledger().subset().number,
                                       .facts = std::move(choice.facts),
                                       .seconds = ToSeconds(stood)});
  return std::nullopt;
}

std::optional<Failure> Life::ValidateWhereDue() {
  if (!engine().validation_due()) return std::nullopt;
  const OrFailure<engine::Validation> validated = world_.ValidateAtEdge();
  if (const auto* failure = std::get_if<Failure>(&validated)) {
    EndTraining();
    return SaidOfGroup(*failure);
  }
  const auto& found = std::get<engine::Validation>(validated);
  if (found.samples > 0) {
    TakeValidation(found);
  } else {
    engine().TakeValidation(found);
  }
  return std::nullopt;
}

// Kept first: no checkpoint has the count that names it the best and not its parameters, and the
// time that the copy takes is the validation's.
void Life::TakeValidation(engine::Validation validation) {
  const bool best = engine().validations().IsBest(validation.loss);
  if (best && loaded_.keeps_best && group_.rank == 0) validation.end = world_.KeepBest();
  engine().TakeValidation(validation);
  if (group_.rank != 0) return;
  const engine::ValidationState& state = engine().validations().state();
  const ValidatedMessage message{.generation = group_.generation,
                                 .rounds = state.last.rounds,
                                 .epoch = state.last.epochs,
                                 .trained_samples = state.last.samples,
                                 .train_seconds = ToSeconds(state.last.trained),
                                 .loss = validation.loss,
                                 .accuracy = validation.accuracy,
                                 .samples = validation.samples,
                                 .seconds = ToSeconds(state.cost),
                                 .best_loss = state.best_loss,
                                 .best_accuracy = state.best_accuracy,
                                 .best_samples = state.best_samples,
                                 .best_rounds = state.best_rounds,
                                 .since_best = state.since_best};
  mail_.Send(message);
  world_.OnValidated(message);
}

void Life::OpenCheckpoints() {
  if (group_.rank != 0 || !(group_.loss_seconds > 0)) return;
  checkpoints_ = std::make_unique<RunningCheckpoints>(
      engine(), mail_, world_.OpenCheckpoints(),
      RunningCheckpoints::Options{.generation = group_.generation,
                                  .every = loaded_.checkpoints_every,
                                  .mean = group_.loss_seconds});
}

void Life::Report() {
  std::optional<policies::Report> report = engine().TakeReport();
  while (report) {
    protocol::ReportMessage message{.generation = group_.generation, .report = *report};
    report = engine().TakeReport();
    world_.Complete(message, !report);
    mail_.Send(message);
    world_.OnReported(message.report);
  }
}

void Life::TakeMessages() {
  if (world_.AskedToEnd()) {
    engine().RequestStop("SIGTERM to a worker", engine::StopKind::kSuspend);
  }
  while (std::optional<ToWorker> message = mail_.Poll()) {
    if (auto* plan = std::get_if<policies::Plan>(&*message)) {
      // A plan that does not follow is one of an older coordinator; the next one will.
      [[maybe_unused]] const bool taken = engine().OfferPlan(std::move(*plan));
    } else if (auto* stop = std::get_if<StopMessage>(&*message)) {
      if (stop->regroup) engine().NoteLeaving(stop->leaving);
      engine().RequestStop(stop->reason, KindOf(*stop));
    } else if (const auto* group = std::get_if<GroupMessage>(&*message)) {
      NoteGroup(*group);
    }
  }
}

// Who waits for the others finds out by itself; who computes would do so for nothing.
void Life::LookForLoss() {
  const std::vector<int> failed = met_->transport.failed();
  if (!failed.empty()) {
    GiveUpGroup("rank " + std::to_string(failed.front()) + ": closed the connection");
  }
}

void Life::GiveUpGroup(const std::string& reason) {
  if (engine().outcome() != Outcome::kTraining) return;
  met_->transport.Abort(reason);
  engine().LoseGroup(reason);
}

std::optional<Failure> Life::EndTraining() {
  if (checkpoints_ != nullptr && !EndsByItself()) {
    checkpoints_->Finish();
    checkpoints_.reset();  // its copy is as large as what a suspension copies
  }
  world_.EndTraining();
  // What the next group's members take over is right.
  if (engine().outcome() == Outcome::kRegrouped && engine().comparable()) Compare();
  const Outcome outcome = engine().outcome();
  if (outcome == Outcome::kGroupLost) return LossOfGroup();
  if (outcome == Outcome::kRegrouped) {
    return Failure{.message = engine().reason(), .of_group = true};
  }
  if (outcome != Outcome::kDiverged) return std::nullopt;
  return Failure{.message = "training diverged: " + engine().reason()};
}

// No other group has what this one lacks: the job goes back to a checkpoint.
Failure Life::LossOfGroup() const {
  if (engine().state_lost()) return {.message = engine().reason(), .transient = true};
  return LostGroup(engine().reason());
}

// A stop condition holds: who asked for the end, or has lost it, would not begin it anew.
bool Life::EndsByItself() const {
  return engine().outcome() == Outcome::kFinished && !engine().asked_to_stop();
}

// Only the stop condition's end is worth one.
void Life::KeepEnd() {
  if (checkpoints_ != nullptr) checkpoints_->AtEnd();
}

std::optional<Failure> Life::Conclude() {
  if (auto failure = AgreeOnParameters()) return failure;
  const FinishedMessage finished = Facts();
  if (engine().outcome() == Outcome::kDiscarded) {
    mail_.Send(finished);
    return std::nullopt;
  }
  engine().GatherShards();
  if (engine().outcome() == Outcome::kGroupLost) return LossOfGroup();
  // Of a suspended job as well: the checkpoint has the buffers, and rank 0 alone writes it.
  if (auto failure = world_.AgreeOnBuffers(static_cast<double>(finished.samples))) {
    return SaidOfGroup(*failure);
  }
  const bool suspended = engine().outcome() == Outcome::kSuspended;
  return suspended ? ConcludeSuspended(finished) : ConcludeFinished(finished);
}

// What depends on norms, as clipping does, can differ in a last bit between a GPU and a processor,
// which add up squares in another order. It does not grow: the same combined vector is added to
// both.
std::optional<Failure> Life::AgreeOnParameters() {
  // No result is of parameters that are wrong.
  if (engine().outcome() != Outcome::kDiscarded && engine().comparable()) Compare();
  if (engine().outcome() == Outcome::kGroupLost) return LossOfGroup();
  if (group_.transport != protocol::TransportKind::kStaged) return std::nullopt;
  const collective::Completion agreed = met_->transport.StartBroadcast(met_->parameters, 0)->Wait();
  if (agreed.progress == collective::Progress::kDone) return std::nullopt;
  return LostGroup(agreed.reason);
}

FinishedMessage Life::Facts() const {
  return {.reason = engine().reason(),
          .rounds = engine().rounds(),
          .samples = engine().samples(),
          .samples_global = engine().samples_global(),
          .epochs = engine().ledger().epoch(),
          .train_loss = engine().train_loss(),
          .train_seconds = ToSeconds(engine().train_time()),
          .parameters_hash = world_.HashParameters().hash};
}

std::optional<Failure> Life::ConcludeSuspended(FinishedMessage finished) {
  finished.suspended = true;
  if (group_.rank == 0) {
    if (auto failure = world_.KeepCheckpoint()) return failure;
    finished.files = {protocol::kCheckpointFile};
  }
  mail_.Send(finished);
  return std::nullopt;
}

std::optional<Failure> Life::ConcludeFinished(FinishedMessage finished) {
  KeepEnd();
  const OrFailure<engine::Validation> result = ValidateEnd();
  if (const auto* failure = std::get_if<Failure>(&result)) return SaidOfGroup(*failure);
  const auto& at_end = std::get<engine::Validation>(result);
  const bool news = !engine().validated() && at_end.samples > 0;
  if (news && engine().validations().on()) TakeValidation(at_end);
  if (group_.rank == 0) {
    const protocol::EvaluatedMessage evaluated = EvaluationOfResult(at_end);
    if (auto failure = KeepResult(finished, evaluated)) return failure;
    // Before the last word, with which the job may be over.
    if (evaluated.samples > 0) mail_.Send(evaluated);
  }
  mail_.Send(finished);
  return std::nullopt;
}

OrFailure<engine::Validation> Life::ValidateEnd() {
  if (engine().validated()) return *engine().validated();
  return world_.Validate([this] { KeepEnd(); });
}

// A former validation was of better parameters than those that training ended with.
bool Life::ResultIsFormer() const {
  const engine::ValidationState& state = engine().validations().state();
  return loaded_.keeps_best && state.best_samples > 0 && state.best_rounds != engine().rounds();
}

protocol::EvaluatedMessage Life::EvaluationOfResult(const engine::Validation& at_end) const {
  const engine::ValidationState& state = engine().validations().state();
  if (ResultIsFormer()) {
    return {.loss = state.best_loss,
            .accuracy = state.best_accuracy,
            .samples = state.best_samples,
            .rounds = state.best_rounds};
  }
  return {.loss = at_end.loss,
          .accuracy = at_end.accuracy,
          .samples = at_end.samples,
          .rounds = engine().rounds()};
}

// A checkpoint goes on from where training ended, whatever the result is.
std::optional<Failure> Life::KeepResult(FinishedMessage& finished,
                                        const protocol::EvaluatedMessage& evaluated) {
  KeepEnd();
  if (engine().asked_to_stop()) {
    if (auto failure = world_.KeepCheckpoint()) return failure;
  }
  if (ResultIsFormer()) world_.TakeBest();
  OrFailure<std::vector<std::string>> files = world_.KeepResult(finished, evaluated);
  if (const auto* failure = std::get_if<Failure>(&files)) return *failure;
  finished.files = std::move(std::get<std::vector<std::string>>(files));
  if (engine().asked_to_stop()) finished.files.emplace_back(protocol::kCheckpointFile);
  if (checkpoints_ != nullptr) checkpoints_->GiveUp();
  return std::nullopt;
}

}  // namespace tactus::life
