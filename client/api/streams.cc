// The streams of Client that go on until there is no more: watch and logs.
#include <thread>
#include <utility>

#include "client/api/client.h"
#include "client/api/deadline.h"
#include "runtime/now.h"
#include "runtime/stream_header.h"

namespace tactus::api {
namespace {

bool IsOver(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED ||
         state == v1::JOB_STATE_CANCELLED;
}

}  // namespace

// Opens a stream again and again until it is over; see the rules in client.h.
class Client::Reopening {
 public:
  Reopening(Client& client, Cancellation* cancellation)
      : client_(client), cancellation_(cancellation) {}

  // `open(context)` begins a stream; `take(message)` returns whether it is to go on.
  template <typename Message, typename Open, typename Take>
  absl::Status ReadOnce(const Open& open, const Take& take) {
    grpc::ClientContext context;
    SetTimeout(client_.options_.stream_max, &context);
    if (cancellation_ != nullptr) cancellation_->Add(&context);
    const auto reader = open(&context);
    reader->WaitForInitialMetadata();
    // On a stream that says nothing this header is the only sign of life.
    bool alive = context.GetServerInitialMetadata().contains(runtime::kStreamHeader);
    Message message;
    while (!stopped_ && reader->Read(&message)) {
      alive = true;
      if (!take(message)) {
        stopped_ = true;
        context.TryCancel();
      }
    }
    const grpc::Status status = reader->Finish();
    if (cancellation_ != nullptr) cancellation_->Remove(&context);
    if (alive) NoteAlive();
    if (stopped_) return absl::OkStatus();
    if (cancellation_ != nullptr && cancellation_->cancelled()) {
      return absl::CancelledError("cancelled by the caller");
    }
    if (status.ok()) return absl::OkStatus();
    if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
      return client_.NothingCame(client_.options_.stream_max);
    }
    return client_.Translate(status);
  }

  // After a stream that ended with `status` too early: waits and returns whether to open it again.
  bool MayReopen(const absl::Status& status) {
    const bool lost = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
    if (stopped_ || !lost || !alive_once_) return false;
    if (runtime::Now() - alive_ >= client_.options_.stream_lost_max) return false;
    ++failures_;
    const Duration delay = runtime::BackoffDelay(client_.options_.backoff, failures_, client_.rng_);
    if (cancellation_ != nullptr) {
      cancellation_->Wait(delay);
    } else {
      std::this_thread::sleep_for(delay);
    }
    return true;
  }

  bool stopped() const { return stopped_; }

 private:
  // A stream that was open was so until its end: gRPC's pings notice within a minute when nobody is
  // there any more.
  void NoteAlive() {
    alive_ = runtime::Now();
    alive_once_ = true;
    failures_ = 0;
  }

  Client& client_;
  Cancellation* const cancellation_;
  Instant alive_{};  // when one was open last
  bool alive_once_ = false;
  bool stopped_ = false;  // the function of the caller's said so
  int failures_ = 0;      // since then
};

absl::Status Client::WatchJob(v1::WatchJobRequest request,
                              const std::function<bool(const v1::JobEvent&)>& event,
                              Cancellation* cancellation) {
  Reopening stream(*this, cancellation);
  bool over = false;
  while (true) {
    absl::Status status = stream.ReadOnce<v1::JobEvent>(
        [&](grpc::ClientContext* context) { return jobs_->WatchJob(context, request); },
        [&](const v1::JobEvent& arrived) {
          if (!arrived.resume_token().empty()) request.set_resume_token(arrived.resume_token());
          if (arrived.has_job()) over = IsOver(arrived.job().state());
          return event(arrived);
        });
    if (stream.stopped() || (over && status.ok())) return absl::OkStatus();
    if (absl::IsOutOfRange(status) && !request.resume_token().empty()) {
      request.clear_resume_token();  // a coordinator that does not know it: begin again
      continue;
    }
    if (status.ok()) status = absl::UnavailableError("the stream of events ended");
    if (over && absl::IsUnavailable(status)) return absl::OkStatus();
    if (!stream.MayReopen(status)) return status;
  }
}

absl::Status Client::StreamLogs(v1::StreamLogsRequest request,
                                const std::function<bool(const v1::LogEntry&)>& entry,
                                Cancellation* cancellation) {
  Reopening stream(*this, cancellation);
  while (true) {
    const absl::Status status = stream.ReadOnce<v1::LogEntry>(
        [&](grpc::ClientContext* context) { return jobs_->StreamLogs(context, request); },
        [&](const v1::LogEntry& arrived) {
          if (!arrived.resume_token().empty()) {
            request.set_resume_token(arrived.resume_token());
            request.clear_tail_lines();  // was about where to begin
          }
          return entry(arrived);
        });
    if (status.ok() || !stream.MayReopen(status)) return status;
  }
}

}  // namespace tactus::api
