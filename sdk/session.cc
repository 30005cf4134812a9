#include "sdk/session.h"

#include <utility>
#include <variant>

#include "threads/mutex.h"

namespace tactus::sdk {

namespace {

constexpr Duration kLastWords = std::chrono::seconds(2);
constexpr Duration kLook = std::chrono::milliseconds(2);

}  // namespace

class Session::Watched final : public worker::Agent {
 public:
  Watched(worker::Agent& agent, std::uint64_t epoch_samples)
      : agent_(agent), epoch_samples_(epoch_samples) {}

  // What the program itself asks for comes as if it were the agent's: a vote like any other.
  std::optional<worker::ToWorker> Poll() override {
    if (std::optional<worker::StopMessage> stop = TakeStop()) return *std::move(stop);
    std::optional<worker::ToWorker> message = agent_.Poll();
    if (message) Note(*message);
    return message;
  }
  absl::StatusOr<worker::ToWorker> Receive() override {
    absl::StatusOr<worker::ToWorker> message = agent_.Receive();
    if (message.ok()) Note(*message);
    return message;
  }
  void Send(const worker::FromWorker& message) override {
    Note(message);
    agent_.Send(message);
  }
  void Send(const worker::SnapshottedMessage& message) override { agent_.Send(message); }
  bool Flush(Duration limit) override { return agent_.Flush(limit); }
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
  const std::uint64_t epoch_samples_;
  threads::Mutex mutex_;
  Standing standing_ ABSL_GUARDED_BY(mutex_);
  std::optional<policies::Plan> next_plan_ ABSL_GUARDED_BY(mutex_);
  worker::FinishedMessage finished_ ABSL_GUARDED_BY(mutex_);
  std::optional<worker::StopMessage> stop_ ABSL_GUARDED_BY(mutex_);
};

Session::Session(const Program& program) : Session(program, std::make_unique<SoloAgent>(program)) {}

Session::Session(const Program& program, std::unique_ptr<worker::Agent> agent)
    : segments_(program.segments.size()),
      agent_(std::move(agent)),
      solo_(dynamic_cast<SoloAgent*>(agent_.get())),
      watched_(std::make_unique<Watched>(*agent_, program.train_samples)),
      trainee_(program, handoff_),
      worker_(std::make_unique<worker::Worker>(*watched_, trainee_)),
      life_([this] { Live(); }) {}

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
  ended_.store(true);
  handoff_.Ask(end_);
}

const Request* Session::Await(Duration limit) {
  asked_ = handoff_.Await(limit);
  return asked_;
}

absl::Status Session::Reply(Answer answer) {
  if (asked_ == nullptr || asked_->kind == Request::Kind::kEnd) {
    return absl::FailedPreconditionError("nothing was asked");
  }
  asked_ = nullptr;
  handoff_.Reply(std::move(answer));
  return absl::OkStatus();
}

absl::Status Session::SegmentReady(std::uint64_t segment) {
  const bool may = asked_ != nullptr && asked_->kind == Request::Kind::kCompute &&
                   asked_->last_of_round && segment < segments_;
  if (!may) return absl::FailedPreconditionError("no segment can be ready now");
  trainee_.SegmentReady(segment);
  return absl::OkStatus();
}

Standing Session::standing() { return watched_->standing(); }

std::vector<policies::Decision> Session::TakeDecisions() {
  return solo_ == nullptr ? std::vector<policies::Decision>() : solo_->TakeDecisions();
}

void Session::RequestStop(const std::string& reason) { watched_->RequestStop(reason); }

void Session::End(const std::string& reason) {
  handoff_.Close(absl::CancelledError(reason));
  // It is at the program's answers mostly, and says why it ends; it may wait for its agent, too.
  for (Duration waited{}; waited < kLastWords && !ended_.load(); waited += kLook) {
    std::this_thread::sleep_for(kLook);
  }
  agent_->HangUp();
  if (life_.joinable()) life_.join();
  asked_ = nullptr;
}

}  // namespace tactus::sdk
