#include "agent/collective/greeting.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

namespace tactus::collective {
namespace {

constexpr std::string_view kMagic = "TMG1";
static_assert(kMagic.size() == 4);

// Appends to bytes that are long enough, least significant byte first.
class Writer {
 public:
  explicit Writer(std::span<std::byte> bytes) : left_(bytes) {}

  void Write(std::span<const std::byte> bytes) {
    std::ranges::copy(bytes, left_.begin());
    left_ = left_.subspan(bytes.size());
  }
  template <typename T>
  void WriteNumber(T number) {
    for (std::size_t i = 0; i < sizeof(T); ++i) left_[i] = static_cast<std::byte>(number >> 8 * i);
    left_ = left_.subspan(sizeof(T));
  }

 private:
  std::span<std::byte> left_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {}

  void Read(std::span<std::byte> bytes) {
    std::ranges::copy(left_.first(bytes.size()), bytes.begin());
    left_ = left_.subspan(bytes.size());
  }
  template <typename T>
  void ReadNumber(T& number) {
    number = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) number |= static_cast<T>(left_[i]) << 8 * i;
    left_ = left_.subspan(sizeof(T));
  }

 private:
  std::span<const std::byte> left_;
};

// All but the proof.
std::span<const std::byte> Unsigned(const HelloBytes& hello) {
  return std::span(hello).first(kHelloBytes - crypto::kMacBytes);
}

}  // namespace

HelloBytes Encode(const Hello& hello) {
  HelloBytes bytes = {};
  Writer writer(bytes);
  writer.Write(std::as_bytes(std::span(kMagic)));
  writer.WriteNumber(hello.generation);
  writer.WriteNumber(hello.from);
  writer.WriteNumber(hello.to);
  writer.WriteNumber(hello.lane);
  writer.Write(hello.nonce);
  writer.Write(hello.mac);
  return bytes;
}

AnswerBytes Encode(const Answer& answer) {
  AnswerBytes bytes = {};
  Writer writer(bytes);
  writer.Write(answer.nonce);
  writer.Write(answer.mac);
  return bytes;
}

std::optional<Hello> DecodeHello(std::span<const std::byte> bytes) {
  if (bytes.size() != kHelloBytes) return std::nullopt;
  const std::span<const std::byte> magic = std::as_bytes(std::span(kMagic));
  if (!std::ranges::equal(bytes.first(magic.size()), magic)) return std::nullopt;
  Hello hello;
  Reader reader(bytes.subspan(magic.size()));
  reader.ReadNumber(hello.generation);
  reader.ReadNumber(hello.from);
  reader.ReadNumber(hello.to);
  reader.ReadNumber(hello.lane);
  reader.Read(hello.nonce);
  reader.Read(hello.mac);
  return hello;
}

std::optional<Answer> DecodeAnswer(std::span<const std::byte> bytes) {
  if (bytes.size() != kAnswerBytes) return std::nullopt;
  Answer answer;
  Reader reader(bytes);
  reader.Read(answer.nonce);
  reader.Read(answer.mac);
  return answer;
}

crypto::Mac Greeting::MacOf(const char* label, std::span<const std::byte> said,
                            std::span<const std::byte> more) const {
  // The label's end is written, too, so that none is the beginning of another.
  const std::size_t label_size = std::strlen(label) + 1;
  std::vector<std::byte> message(label_size + sizeof(word_) + said.size() + more.size());
  Writer writer(message);
  writer.Write(std::as_bytes(std::span(label, label_size)));
  writer.WriteNumber(word_);
  writer.Write(said);
  writer.Write(more);
  return crypto::MacOf(group_.secret, message);
}

void Greeting::Sign(Hello& hello) const {
  hello.mac = MacOf("tactus mesh hello", Unsigned(Encode(hello)), {});
}

void Greeting::Sign(const Hello& hello, Answer& answer) const {
  answer.mac = MacOf("tactus mesh answer", Encode(hello), answer.nonce);
}

Proof Greeting::Prove(const Hello& hello, const Answer& answer) const {
  return {.mac = MacOf("tactus mesh proof", Encode(hello), answer.nonce)};
}

bool Greeting::IsTrue(const Hello& hello) const {
  Hello own = hello;
  Sign(own);
  return hello.generation == group_.generation && crypto::SameMac(own.mac, hello.mac);
}

bool Greeting::IsTrue(const Hello& hello, const Answer& answer) const {
  Answer own = answer;
  Sign(hello, own);
  return crypto::SameMac(own.mac, answer.mac);
}

bool Greeting::IsTrue(const Hello& hello, const Answer& answer, const Proof& proof) const {
  return crypto::SameMac(Prove(hello, answer).mac, proof.mac);
}

crypto::Mac Greeting::KeyOf(const Hello& hello) const {
  return MacOf("tactus mesh key", Encode(hello), {});
}

}  // namespace tactus::collective
