#include "sdk/session.h"

#include <thread>
#include <utility>
#include <variant>

#include "threads/mutex.h"

namespace tactus::sdk {

namespace {

constexpr Duration kLastWords = std::chrono::seconds(2);
constexpr Duration kLook = std::chrono::milliseconds(2);
// Between two looks whether the program has waited long enough.
constexpr Duration kWait = std::chrono::milliseconds(20);

}  // namespace

class Session::Watched final : public worker::Agent {
 public:
  Watched(worker::Agent& agent, Turns& turns, std::uint64_t epoch_samples)
      : agent_(agent), turns_(turns), epoch_samples_(epoch_samples) {}

  // What the program itself asks for comes as if it were the agent's: a vote like any other. Who
  // waits for others looks here now and then.
  std::optional<worker::ToWorker> Poll() override {
    turns_.WhyGiveUp();
    if (std::optional<worker::StopMessage> stop = TakeStop()) return *std::move(stop);
    std::optional<worker::ToWorker> message = agent_.Poll();
    if (message) Note(*message);
    return message;
  }
  absl::StatusOr<worker::ToWorker> Receive() override {
    while (!agent_.Await(kWait)) turns_.WhyGiveUp();
    absl::StatusOr<worker::ToWorker> message = agent_.Receive();
    if (message.ok()) Note(*message);
    return message;
  }
  void Send(const worker::FromWorker& message) override {
    Note(message);
    agent_.Send(message);
  }
  void Send(const worker::SnapshottedMessage& message) override { agent_.Send(message); }
  bool Await(Duration limit) override { return agent_.Await(limit); }
  bool Flush(Duration limit) override {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!agent_.Flush(kWait)) {
      if (std::chrono::steady_clock::now() >= end || !turns_.WhyGiveUp().empty()) return false;
    }
    return true;
  }
  void BeginStandings() override { agent_.BeginStandings(); }
  worker::Standpoint& standpoint() override { return agent_.standpoint(); }
  void HangUp() override { agent_.HangUp(); }

  void RequestStop(const std::string& reason) {
    threads::MutexLock lock(mutex_);
    stop_ = worker::StopMessage{.reason = reason};
  }
  Standing standing() {
    threads::MutexLock lock(mutex_);
    return standing_;
  }
  // Of what the worker said last; empty: it did not.
  worker::FinishedMessage finished() {
    threads::MutexLock lock(mutex_);
    return finished_;
  }

 private:
  std::optional<worker::StopMessage> TakeStop() {
    threads::MutexLock lock(mutex_);
    return std::exchange(stop_, std::nullopt);
  }

  // A plan travels before it is in force, and rounds say under which they ran.
  void Note(const worker::ToWorker& message) {
    threads::MutexLock lock(mutex_);
    if (const auto* group = std::get_if<worker::GroupMessage>(&message)) {
      standing_.plan = group->plan;
      standing_.rank = group->rank;
      standing_.size = group->size;
    } else if (const auto* plan = std::get_if<policies::Plan>(&message)) {
      next_plan_ = *plan;
    }
  }

  void Note(const worker::FromWorker& message) {
    threads::MutexLock lock(mutex_);
    if (const auto* report = std::get_if<worker::ReportMessage>(&message)) {
      standing_.rounds = report->report.round + 1;
      standing_.epoch = report->report.epoch;
      standing_.samples = report->report.epoch * epoch_samples_ + report->report.epoch_consumed;
      standing_.last = report->report;
      if (next_plan_ && next_plan_->version == report->report.plan_version) {
        standing_.plan = *std::exchange(next_plan_, std::nullopt);
      }
    }
    if (const auto* finished = std::get_if<worker::FinishedMessage>(&message)) {
      finished_ = *finished;
    }
  }

  worker::Agent& agent_;
  Turns& turns_;
  const std::uint64_t epoch_samples_;
  threads::Mutex mutex_;
  Standing standing_ ABSL_GUARDED_BY(mutex_);
  std::optional<policies::Plan> next_plan_ ABSL_GUARDED_BY(mutex_);
  worker::FinishedMessage finished_ ABSL_GUARDED_BY(mutex_);
  std::optional<worker::StopMessage> stop_ ABSL_GUARDED_BY(mutex_);
};

absl::Status Session::Call::Refused() {
  return absl::FailedPreconditionError(
      "another thread is in a call of this run; one at a time may call");
}

Session::Session(const Program& program) : Session(program, std::make_unique<SoloAgent>(program)) {}

Session::Session(const Program& program, std::unique_ptr<worker::Agent> agent)
    : agent_(std::move(agent)),
      solo_(dynamic_cast<SoloAgent*>(agent_.get())),
      turns_([this] { Live(); }),
      watched_(std::make_unique<Watched>(*agent_, turns_, program.train_samples)),
      trainee_(program, turns_),
      worker_(std::make_unique<worker::Worker>(*watched_, trainee_)) {}

Session::~Session() { End("the program has closed its run"); }

void Session::Live() {
  const std::optional<worker::FailedMessage> failed = worker_->Run();
  const worker::FinishedMessage finished = watched_->finished();
  end_.reason = finished.reason;
  end_.suspended = finished.suspended;
  if (failed) {
    const std::string field = failed->field.empty() ? "" : failed->field + ": ";
    end_.end = absl::InternalError(field + failed->message);
  }
  // What was said is said: where the others are gone, the end comes.
  collective::Transport* const group = worker_->transport();
  if (failed || finished.suspended || solo_ != nullptr || group == nullptr) return;
  [[maybe_unused]] const absl::Status stood = trainee_.StandAtEdge(
      *group, {.kind = Request::Kind::kEdge, .reason = finished.reason, .over = true});
}

absl::StatusOr<const Request*> Session::Await(Duration limit) {
  const Call call(in_call_);
  if (!call.alone()) return Call::Refused();
  if (absl::Status s = PutEngineBehind(); !s.ok()) return s;
  asked_ = turns_.Await(limit);
  if (turns_.ended() && !closed_) asked_ = &end_;
  if (absl::Status s = PutProgramBehind(); !s.ok()) return s;
  return asked_;
}

void Session::UseStream(cuda::Stream stream) { stream_ = stream; }

absl::Status Session::PutEngineBehind() {
  StreamOrder* const order = trainee_.order();
  if (order == nullptr) return absl::OkStatus();
  order->UseStream(stream_);
  return order->PutEngineBehind();
}

absl::Status Session::PutProgramBehind() {
  StreamOrder* const order = trainee_.order();
  if (order == nullptr) return absl::OkStatus();
  order->UseStream(stream_);
  return order->PutProgramBehind();
}

absl::Status Session::Reply(Answer answer) {
  const Call call(in_call_);
  if (!call.alone()) return Call::Refused();
  if (asked_ == nullptr || asked_->kind == Request::Kind::kEnd) {
    return absl::FailedPreconditionError("nothing was asked");
  }
  asked_ = nullptr;
  turns_.Reply(std::move(answer));
  return absl::OkStatus();
}

absl::Status Session::SegmentReady(std::uint64_t segment) {
  if (asked_ == nullptr || asked_->kind != Request::Kind::kCompute) {
    return absl::FailedPreconditionError("no batch is computed, so no segment can be ready");
  }
  if (absl::Status s = PutEngineBehind(); !s.ok()) return s;
  return trainee_.SegmentReady(segment);
}

Standing Session::standing() { return watched_->standing(); }

std::vector<policies::Decision> Session::TakeDecisions() {
  return solo_ == nullptr ? std::vector<policies::Decision>() : solo_->TakeDecisions();
}

void Session::RequestStop(const std::string& reason) { watched_->RequestStop(reason); }

void Session::End(const std::string& reason) {
  std::optional<Call> call(std::in_place, in_call_);
  while (!call->alone()) {
    std::this_thread::sleep_for(kLook);
    call.emplace(in_call_);
  }
  if (closed_) return;
  asked_ = nullptr;
  closed_ = true;
  [[maybe_unused]] const absl::Status entered = PutEngineBehind();  // a device that is lost is
  turns_.Close(absl::CancelledError(reason));
  // It is at the program's answers mostly, and says why it ends; it may wait for others, too.
  const auto end = std::chrono::steady_clock::now() + kLastWords;
  while (!turns_.ended()) {
    turns_.Await(kLook);
    if (std::chrono::steady_clock::now() < end) continue;
    agent_->HangUp();
    turns_.GiveUp();
  }
  agent_->HangUp();
  [[maybe_unused]] const absl::Status left = PutProgramBehind();
}

}  // namespace tactus::sdk
