#include "client/observe/job_watch.h"

#include <atomic>
#include <boost/asio/post.hpp>
#include <chrono>
#include <future>
#include <utility>

namespace tactus::client {

// gRPC's threads call the On... methods; each posts and touches only `phase_` beside. Handlers that
// are still posted when the watch ends find `alive` gone.
//
// Reads are started by the main thread, so a hold keeps OnDone away until no more will be; `phase_`
// decides who lets it go: the read that finds the end, or End() when no read is out.
class JobWatch::Reader : public grpc::ClientReadReactor<v1::JobEvent> {
 public:
  Reader(api::Client& client, boost::asio::io_context& loop, JobWatchHandlers handlers)
      : client_(client), loop_(loop), handlers_(std::move(handlers)) {}

  void Start(const v1::WatchJobRequest& request) {
    request_ = request;
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::hours(1));
    client_.jobs().async()->WatchJob(&context_, &request_, this);
    AddHold();
    StartRead(&event_);
    StartCall();
  }

  void End() {
    alive_.reset();
    context_.TryCancel();
    if (phase_.exchange(Phase::kEnded) == Phase::kIdle) RemoveHold();
    ended_.wait();
  }

  void OnReadDone(bool ok) override {
    Phase expected = Phase::kReading;
    if (!ok || !phase_.compare_exchange_strong(expected, Phase::kIdle)) {
      phase_ = Phase::kEnded;
      RemoveHold();
      return;
    }
    boost::asio::post(loop_, [this, alive = seen_] {
      if (alive.expired()) return;
      handlers_.event(event_);
      if (alive.expired()) return;
      phase_ = Phase::kReading;
      StartRead(&event_);
    });
  }

  void OnDone(const grpc::Status& status) override {
    const absl::Status translated = status.ok() ? absl::OkStatus() : client_.Translate(status);
    boost::asio::post(loop_, [this, translated, alive = seen_] {
      if (!alive.expired()) handlers_.end(translated);
    });
    // Out of this object, which may be gone as soon as the value is set.
    std::promise<void> done = std::move(done_);
    done.set_value();
  }

 private:
  enum class Phase { kReading, kIdle, kEnded };

  api::Client& client_;
  boost::asio::io_context& loop_;
  const JobWatchHandlers handlers_;
  grpc::ClientContext context_;
  v1::WatchJobRequest request_;
  v1::JobEvent event_;  // gRPC's while reading, the main thread's while idle
  std::atomic<Phase> phase_ = Phase::kReading;
  std::promise<void> done_;
  const std::future<void> ended_ = done_.get_future();
  // Shared with nobody: the weak pointers in posted handlers see when it is gone.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // the main thread's
  const std::weak_ptr<bool> seen_ =
      alive_;  // constant: gRPC's threads copy it while alive_ is reset
};

JobWatch::JobWatch(api::Client& client, boost::asio::io_context& context,
                   const v1::WatchJobRequest& request, JobWatchHandlers handlers)
    : reader_(std::make_unique<Reader>(client, context, std::move(handlers))) {
  reader_->Start(request);
}

JobWatch::~JobWatch() { reader_->End(); }

}  // namespace tactus::client
