#include "client/observe/follow.h"

#include <optional>

#include "base/rng.h"
#include "client/observe/job_watch.h"
#include "client/render/progress_view.h"
#include "runtime/now.h"
#include "runtime/retry.h"

namespace tactus::client {
namespace {

constexpr Duration kForever = Seconds(1e9);

class Follower {
 public:
  Follower(api::Client& client, EventLoop& loop, const FollowHandlers& handlers)
      : client_(client), loop_(loop), handlers_(handlers) {}

  Followed Run(const std::string& name) {
    request_.set_name(name);
    while (true) {
      if (FollowOnce()) return followed_;
      if (Restarted()) continue;
      if (!MayTryAgain()) return followed_;
      ++failures_;
      if (failures_ == 1) handlers_.say(std::string(ended_->message()) + "; trying again");
      if (Wait(runtime::BackoffDelay({}, failures_, rng_))) return followed_;
    }
  }

 private:
  bool Stopped() const { return handlers_.stop && handlers_.stop(); }

  // True when the following is over; false when the stream ended before the job.
  bool FollowOnce() {
    ended_.reset();
    const JobWatch watch(client_, loop_.context(), request_,
                         {.event = [this](const v1::JobEvent& event) { OnEvent(event); },
                          .end = [this](const absl::Status& status) { ended_ = status; }});
    const auto done = [this] {
      return ended_.has_value() || IsOver(followed_.job.state()) || Stopped();
    };
    if (loop_.RunUntil(done, kForever) == EventLoop::Outcome::kInterrupted) {
      return Finish(Followed::End::kInterrupted);
    }
    if (IsOver(followed_.job.state())) return Finish(Followed::End::kOver);
    return Stopped() && Finish(Followed::End::kStopped);
  }

  void OnEvent(const v1::JobEvent& event) {
    heard_ = runtime::Now();
    heard_once_ = true;
    failures_ = 0;
    if (!event.resume_token().empty()) request_.set_resume_token(event.resume_token());
    if (event.has_job()) followed_.job = event.job();
    handlers_.event(event);
  }

  // True when the coordinator does not know the place to go on from: it was restarted, or the place
  // is too far back. The next stream begins with the job as it is.
  bool Restarted() {
    if (ended_->code() != absl::StatusCode::kOutOfRange) return false;
    if (request_.resume_token().empty()) return false;
    request_.clear_resume_token();
    return true;
  }

  // A stream that ends before its job: the coordinator stops, or the stream's hour is over. One
  // that never was has a wrong address.
  bool MayTryAgain() {
    followed_.status = *ended_;
    const bool over = ended_->code() == absl::StatusCode::kDeadlineExceeded || ended_->ok();
    if (!over && !runtime::IsRetryable(*ended_)) return false;
    if (ended_->ok())
      ended_ = followed_.status = absl::UnavailableError("the stream of events ended");
    return heard_once_ && runtime::Now() - heard_ < kLostMax;
  }

  // True when the following ended meanwhile.
  bool Wait(Duration delay) {
    const auto outcome = loop_.RunUntil([this] { return Stopped(); }, delay);
    if (outcome == EventLoop::Outcome::kInterrupted) return Finish(Followed::End::kInterrupted);
    return outcome == EventLoop::Outcome::kDone && Finish(Followed::End::kStopped);
  }

  bool Finish(Followed::End end) {
    followed_.end = end;
    return true;
  }

  api::Client& client_;
  EventLoop& loop_;
  const FollowHandlers& handlers_;
  v1::WatchJobRequest request_;  // with the place to go on from
  Followed followed_;
  std::optional<absl::Status> ended_;  // of the present stream
  Instant heard_{};                    // of the last event
  bool heard_once_ = false;
  int failures_ = 0;  // since then
  Rng rng_{1};
};

}  // namespace

Followed Follow(api::Client& client, EventLoop& loop, const std::string& name,
                const FollowHandlers& handlers) {
  return Follower(client, loop, handlers).Run(name);
}

}  // namespace tactus::client
