#include "coordinator/shell/link_inquiry.h"

#include <algorithm>
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
  if (!asked_.empty()) {
    const Question& other = asked_.begin()->second.question;
    return done(runtime::WithRetry(
        absl::UnavailableError("probe: the link from nodes/" + other.from + " to nodes/" +
                               other.to + " is being measured; one at a time"),
        std::chrono::seconds(2)));
  }
  Begin({.from = from, .to = to, .done = std::move(done), .alone = true});
}

void LinkInquiry::AskInTurn(const std::string& from, const std::string& to, Done done) {
  waiting_.push_back({.from = from, .to = to, .done = std::move(done)});
  BeginWaiting();
}

bool LinkInquiry::Busy(const std::string& node) const {
  return std::ranges::any_of(asked_, [&](const auto& one) {
    return one.second.question.from == node || one.second.question.to == node;
  });
}

void LinkInquiry::BeginWaiting() {
  while (std::ranges::none_of(asked_, [](const auto& one) { return one.second.question.alone; })) {
    const auto next = std::ranges::find_if(waiting_, [this](const Question& question) {
      return !Busy(question.from) && !Busy(question.to);
    });
    if (next == waiting_.end()) return;
    Question question = std::move(*next);
    waiting_.erase(next);
    Begin(std::move(question));
  }
}

void LinkInquiry::Begin(Question question) {
  std::string secret(kSecretBytes, '\0');
  if (!crypto::FillRandom(std::as_writable_bytes(std::span(secret)))) {
    return question.done(absl::UnavailableError("probe: the system has no random bytes"));
  }
  // Not the numbers of a former coordinator's, whose answers may be on their way.
  if (last_id_ == 0)
    last_id_ = static_cast<std::uint64_t>(static_cast<unsigned char>(secret[0])) << 32;
  const std::uint64_t id = ++last_id_;
  const std::string to = question.to;
  asked_[id] = {.question = std::move(question),
                .secret = secret,
                .patience = std::make_unique<runtime::Timer>(control_)};
  asked_[id].patience->After(kPatience, [this, id] {
    Answer(id, absl::DeadlineExceededError("probe: nodes/" + asked_.at(id).turn() +
                                           ": its agent does not answer; one of an older release "
                                           "measures no links"));
  });
  tell_(to, Order(id, secret, ""));
}

void LinkInquiry::Hear(const std::string& node, const agent::v1::LinkProbed& said) {
  const std::uint64_t id = said.probe_id();
  const auto found = asked_.find(id);
  if (found == asked_.end() || node != found->second.turn()) return;
  Asked& asked = found->second;
  if (!said.error().empty()) return AnswerError(id, node, said.error());
  if (!asked.listens) {
    const std::size_t length = said.endpoint().size();
    if (length == 0 || length > kEndpointBytesMax) {
      return AnswerError(id, node, "said no endpoint");
    }
    asked.listens = true;
    return tell_(asked.question.from, Order(id, asked.secret, said.endpoint()));
  }
  if (!std::isfinite(said.bytes_per_second()) || said.bytes_per_second() <= 0) {
    return AnswerError(id, node, "said no speed");
  }
  v1::ProbeLinkResponse response;
  *response.mutable_round_trip() = said.round_trip();
  response.set_bytes_per_second(said.bytes_per_second());
  Answer(id, response);
}

void LinkInquiry::GiveUp(const absl::Status& status) {
  for (const Question& question : std::exchange(waiting_, {})) question.done(status);
  while (!asked_.empty()) Answer(asked_.begin()->first, status);
}

void LinkInquiry::AnswerError(std::uint64_t id, const std::string& node, const std::string& why) {
  v1::ProbeLinkResponse response;
  response.set_error("nodes/" + node + ": " + why);
  Answer(id, response);
}

// Another may be asked for before the function is back.
void LinkInquiry::Answer(std::uint64_t id, const absl::StatusOr<v1::ProbeLinkResponse>& found) {
  const Asked asked = std::move(asked_.extract(id).mapped());
  asked.patience->Cancel();
  asked.question.done(found);
  BeginWaiting();
}

}  // namespace tactus::service
