#include "agent/collective/introduction.h"

#include <cstring>
#include <utility>

#include "base/check.h"
#include "crypto/random.h"

namespace tactus::collective {
namespace {

constexpr const char* kNoMember = "it does not know the group's secret";
constexpr const char* kNoGreeting = "what it said is no greeting of a member's";

}  // namespace

std::unique_ptr<Introduction> Introduction::Open(Descriptor connection, const Party& party,
                                                 std::uint32_t to, std::uint32_t lane,
                                                 std::uint64_t word) {
  std::unique_ptr<Introduction> made(new Introduction(std::move(connection), party, word));
  Hello hello = {.generation = party.group.generation, .from = party.rank, .to = to, .lane = lane};
  if (!crypto::FillRandom(hello.nonce)) return nullptr;
  made->greeting_.Sign(hello);
  made->hello_ = hello;
  made->stage_ = Stage::kSayHello;
  if (party.encrypted) {
    made->session_ =
        TlsSession::Opening(made->descriptor_.get(), Encode(hello), made->greeting_.KeyOf(hello));
    made->stage_ = Stage::kHandshake;
  }
  return made;
}

std::unique_ptr<Introduction> Introduction::Accept(Descriptor connection, const Party& party,
                                                   std::uint64_t word) {
  std::unique_ptr<Introduction> made(new Introduction(std::move(connection), party, word));
  if (!party.encrypted) return made;
  Introduction* const self = made.get();  // which owns the session
  const auto find = [self](std::span<const std::byte> identity) -> std::optional<crypto::Mac> {
    const std::optional<Hello> hello = DecodeHello(identity);
    self->refusal_ = self->WhyNot(hello);
    if (!self->refusal_.empty()) return std::nullopt;
    self->hello_ = hello;
    return self->greeting_.KeyOf(*hello);
  };
  made->session_ = TlsSession::Accepting(made->descriptor_.get(), find);
  made->stage_ = Stage::kHandshake;
  return made;
}

Introduction::State Introduction::Advance() {
  bool goes_on = !refused_;
  while (goes_on && stage_ != Stage::kDone) {
    switch (stage_) {
      case Stage::kSayHello:
        goes_on = SayHello();
        break;
      case Stage::kHearHello:
        goes_on = HearHello();
        break;
      case Stage::kHearAnswer:
        goes_on = HearAnswer();
        break;
      case Stage::kHearProof:
        goes_on = HearProof();
        break;
      case Stage::kHandshake:
        goes_on = Handshake();
        break;
      case Stage::kDone:
        break;
    }
  }
  if (refused_) return State::kRefused;
  return stage_ == Stage::kDone ? State::kDone : State::kOn;
}

bool Introduction::SayHello() {
  stage_ = Stage::kHearAnswer;
  return Say(Encode(*hello_));
}

std::string Introduction::WhyNot(const std::optional<Hello>& hello) const {
  if (!hello) return kNoGreeting;
  if (hello->generation != party_.group.generation) {
    return "it is of generation " + std::to_string(hello->generation) + ", the group of " +
           std::to_string(party_.group.generation);
  }
  if (!greeting_.IsTrue(*hello)) return kNoMember;
  // A member would have to be wrong about itself, but for one that is told what it said.
  if (hello->to != party_.rank || hello->from <= party_.rank || hello->from >= party_.size ||
      hello->lane >= party_.lanes) {
    return "its greeting is for another";
  }
  return "";
}

bool Introduction::HearHello() {
  if (!Hear(kHelloBytes)) return false;
  const std::optional<Hello> hello = DecodeHello(heard_);
  if (const std::string why = WhyNot(hello); !why.empty()) return Refuse(why);
  hello_ = hello;
  if (!crypto::FillRandom(answer_.nonce)) return Refuse("this host has no random bytes");
  greeting_.Sign(*hello_, answer_);
  stage_ = Stage::kHearProof;
  return Say(Encode(answer_));
}

bool Introduction::HearAnswer() {
  if (!Hear(kAnswerBytes)) return false;
  const std::optional<Answer> answer = DecodeAnswer(std::span(heard_).first(kAnswerBytes));
  TACTUS_CHECK(answer.has_value());  // it has the length
  if (!greeting_.IsTrue(*hello_, *answer)) return Refuse(kNoMember);
  stage_ = Stage::kDone;
  return Say(greeting_.Prove(*hello_, *answer).mac);
}

bool Introduction::HearProof() {
  if (!Hear(kProofBytes)) return false;
  Proof proof;
  std::memcpy(proof.mac.data(), heard_.data(), kProofBytes);
  if (!greeting_.IsTrue(*hello_, answer_, proof)) return Refuse(kNoMember);
  stage_ = Stage::kDone;
  return true;
}

bool Introduction::Handshake() {
  std::string why;
  switch (session_->Handshake(why)) {
    case Flow::kMoved:
      stage_ = Stage::kDone;
      return true;
    case Flow::kBlocked:
      return false;
    case Flow::kClosed:
      return Refuse(hello_ ? why : "");
    case Flow::kBroken:
      break;
  }
  // What it said of itself was wrong already, or it was no TLS.
  return Refuse(refusal_.empty() ? kNoMember + (": " + why) : refusal_);
}

// A greeting is shorter than what any connection takes at once.
bool Introduction::Say(std::span<const std::byte> bytes) {
  const Moved moved = WriteSome(descriptor_, bytes, {});
  if (moved.bytes == bytes.size()) return true;
  return Refuse("it did not take the greeting");
}

// True: so many bytes are there, in heard_, and the next are counted anew.
bool Introduction::Hear(std::size_t bytes) {
  while (heard_bytes_ < bytes) {
    const std::span<std::byte> rest = std::span(heard_).first(bytes).subspan(heard_bytes_);
    const Moved moved = ReadSome(descriptor_, rest, {});
    if (moved.flow == Flow::kBlocked) return false;
    if (moved.flow == Flow::kClosed) return Refuse(spoke_ || hello_ ? "closed the connection" : "");
    if (moved.flow == Flow::kBroken) return Refuse(std::strerror(moved.error));
    spoke_ = true;
    heard_bytes_ += moved.bytes;
  }
  heard_bytes_ = 0;
  return true;
}

bool Introduction::Refuse(const std::string& why) {
  refusal_ = why;
  refused_ = true;
  return false;
}

}  // namespace tactus::collective
