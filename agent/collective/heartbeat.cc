#include "agent/collective/heartbeat.h"

#include <utility>

namespace tactus::collective {
namespace {

constexpr int kBeatsMissed = 8;

}  // namespace

Heartbeat::Heartbeat(std::unique_ptr<Transport> transport, Duration interval, Instant now)
    : transport_(std::move(transport)), interval_(interval), beat_at_(now) {}

Heartbeat::~Heartbeat() { Abort("this member has left the group"); }

const std::string& Heartbeat::Look(Instant now) {
  if (transport_ == nullptr || !gone_.empty()) return gone_;
  if (beat_ == nullptr && now - beat_at_ >= interval_) beat_ = transport_->StartBarrier();
  if (beat_ == nullptr || beat_->Poll() == Progress::kRunning) return gone_;
  const Completion completion = beat_->Wait();
  beat_.reset();
  beat_at_ = now;
  if (completion.progress == Progress::kFailed) {
    gone_ = "a member has left: " + completion.reason;
    gone_at_ = now;
  }
  return gone_;
}

std::vector<int> Heartbeat::Missed(Instant now) {
  const bool old = beat_ != nullptr && now - beat_at_ > kBeatsMissed * interval_;
  return old ? transport_->awaiting().peers : std::vector<int>();
}

std::vector<int> Heartbeat::failed() {
  return transport_ == nullptr ? std::vector<int>() : transport_->failed();
}

void Heartbeat::Abort(const std::string& reason) {
  if (transport_ == nullptr) return;
  transport_->Abort(reason);
  beat_.reset();  // which would wait else
}

}  // namespace tactus::collective
