#include "coordinator/shell/link_inquiry.h"

#include <chrono>
#include <cmath>
#include <span>
#include <utility>

#include "crypto/random.h"
#include "runtime/status.h"

namespace tactus::service {
namespace {

constexpr std::size_t kSecretBytes = 32;
constexpr std::size_t kEndpointBytesMax = 64;
// What the answer says of a link; agents have the same bounds.
constexpr std::uint64_t kProbeBytesMax = std::uint64_t{128} << 20;
constexpr int kProbeSecondsMax = 1;

agent::v1::ToAgent Order(std::uint64_t id, const std::string& secret, const std::string& endpoint) {
  agent::v1::ToAgent message;
  agent::v1::ProbeLink* const order = message.mutable_probe_link();
  order->set_probe_id(id);
  order->set_secret(secret);
  order->set_endpoint(endpoint);
  order->set_bytes_max(kProbeBytesMax);
  order->mutable_time_max()->set_seconds(kProbeSecondsMax);
  return message;
}

}  // namespace

void LinkInquiry::Ask(const std::string& from, const std::string& to, Done done) {
  if (asked_) {
    return done(runtime::WithRetry(
        absl::UnavailableError("probe: the link from nodes/" + asked_->from + " to nodes/" +
                               asked_->to + " is being measured; one at a time"),
        std::chrono::seconds(2)));
  }
  std::string secret(kSecretBytes, '\0');
  if (!crypto::FillRandom(std::as_writable_bytes(std::span(secret)))) {
    return done(absl::UnavailableError("probe: the system has no random bytes"));
  }
  // Not the numbers of a former coordinator's, whose answers may be on their way.
  if (last_id_ == 0)
    last_id_ = static_cast<std::uint64_t>(static_cast<unsigned char>(secret[0])) << 32;
  asked_ = {.id = ++last_id_, .from = from, .to = to, .secret = secret, .done = std::move(done)};
  timer_.After(kPatience, [this] {
    const std::string& silent = asked_->listens ? asked_->from : asked_->to;
    Answer(absl::DeadlineExceededError("probe: nodes/" + silent +
                                       ": its agent does not answer; one of an older release "
                                       "measures no links"));
  });
  tell_(to, Order(asked_->id, secret, ""));
}

void LinkInquiry::Hear(const std::string& node, const agent::v1::LinkProbed& said) {
  if (!asked_ || said.probe_id() != asked_->id) return;
  const std::string& turn = asked_->listens ? asked_->from : asked_->to;
  if (node != turn) return;
  if (!said.error().empty()) return AnswerError(node, said.error());
  if (!asked_->listens) {
    const std::size_t length = said.endpoint().size();
    if (length == 0 || length > kEndpointBytesMax) return AnswerError(node, "said no endpoint");
    asked_->listens = true;
    return tell_(asked_->from, Order(asked_->id, asked_->secret, said.endpoint()));
  }
  if (!std::isfinite(said.bytes_per_second()) || said.bytes_per_second() <= 0) {
    return AnswerError(node, "said no speed");
  }
  v1::ProbeLinkResponse found;
  *found.mutable_round_trip() = said.round_trip();
  found.set_bytes_per_second(said.bytes_per_second());
  Answer(found);
}

void LinkInquiry::GiveUp(const absl::Status& status) {
  if (asked_) Answer(status);
}

void LinkInquiry::AnswerError(const std::string& node, const std::string& why) {
  v1::ProbeLinkResponse found;
  found.set_error("nodes/" + node + ": " + why);
  Answer(found);
}

// Another may be asked for before the function is back.
void LinkInquiry::Answer(const absl::StatusOr<v1::ProbeLinkResponse>& found) {
  timer_.Cancel();
  const Done done = std::move(asked_->done);
  asked_.reset();
  done(found);
}

}  // namespace tactus::service
