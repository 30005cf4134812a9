#include "sdk/session.h"

#include <utility>
#include <variant>

#include "threads/mutex.h"

namespace tactus::sdk {

class Session::Watched final : public worker::Agent {
 public:
  explicit Watched(worker::Agent& agent) : agent_(agent) {}

  std::optional<worker::ToWorker> Poll() override {
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

  Standing standing() {
    threads::MutexLock lock(mutex_);
    return standing_;
  }
  std::string reason() {
    threads::MutexLock lock(mutex_);
    return reason_;
  }

 private:
  // A plan travels before it is in force, and rounds say under which they ran.
  void Note(const worker::ToWorker& message) {
    threads::MutexLock lock(mutex_);
    if (const auto* group = std::get_if<worker::GroupMessage>(&message)) {
      standing_.plan = group->plan;
    } else if (const auto* plan = std::get_if<policies::Plan>(&message)) {
      next_plan_ = *plan;
    }
  }

  void Note(const worker::FromWorker& message) {
    threads::MutexLock lock(mutex_);
    if (const auto* report = std::get_if<worker::ReportMessage>(&message)) {
      standing_.rounds = report->report.round + 1;
      standing_.epoch = report->report.epoch;
      standing_.samples += report->report.samples_global;
      standing_.last = report->report;
      if (next_plan_ && next_plan_->version == report->report.plan_version) {
        standing_.plan = *std::exchange(next_plan_, std::nullopt);
      }
    }
    if (const auto* finished = std::get_if<worker::FinishedMessage>(&message)) {
      reason_ = finished->reason;
    }
  }

  worker::Agent& agent_;
  threads::Mutex mutex_;
  Standing standing_ ABSL_GUARDED_BY(mutex_);
  std::optional<policies::Plan> next_plan_ ABSL_GUARDED_BY(mutex_);
  std::string reason_ ABSL_GUARDED_BY(mutex_);
};

Session::Session(const Program& program)
    : segments_(program.segments.size()),
      agent_(program),
      watched_(std::make_unique<Watched>(agent_)),
      trainee_(program, handoff_),
      worker_(std::make_unique<worker::Worker>(*watched_, trainee_)),
      life_([this] { Live(); }) {}

Session::~Session() { End("the program has closed its run"); }

void Session::Live() {
  const std::optional<worker::FailedMessage> failed = worker_->Run();
  end_.reason = watched_->reason();
  if (failed) {
    const std::string field = failed->field.empty() ? "" : failed->field + ": ";
    end_.end = absl::InternalError(field + failed->message);
  }
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

void Session::End(const std::string& reason) {
  handoff_.Close(absl::CancelledError(reason));
  if (life_.joinable()) life_.join();
  asked_ = nullptr;
}

}  // namespace tactus::sdk
