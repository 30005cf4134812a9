#include "sdk/turns.h"

#include "base/check.h"

namespace tactus::sdk {

Answer Turns::Ask(const Request& request) {
  if (!closed_.ok()) return {.status = closed_};
  request_ = &request;
  life_.Suspend();
  request_ = nullptr;
  if (!answer_) return {.status = closed_};
  return *std::exchange(answer_, std::nullopt);
}

std::string Turns::WhyGiveUp() {
  if (std::chrono::steady_clock::now() >= turn_ends_) life_.Suspend();
  return gives_up_ ? std::string(closed_.message()) : "";
}

const Request* Turns::Await(Duration limit) {
  turn_ends_ = std::chrono::steady_clock::now() + limit;
  const bool unanswered = request_ != nullptr && !answer_ && closed_.ok();
  if (!unanswered && !life_.ended()) {
    lives_ = true;
    life_.Resume();
    lives_ = false;
  }
  return request_;
}

void Turns::Reply(Answer answer) {
  TACTUS_CHECK(request_ != nullptr && !answer_);
  answer_ = std::move(answer);
}

void Turns::Close(const absl::Status& status) {
  if (closed_.ok()) closed_ = status;
}

}  // namespace tactus::sdk
