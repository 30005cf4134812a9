// What two members say to each other first, so that each knows that the other is one: a challenge
// and a response, over the secret of their group's generation.
//
//   who opened     Hello    who it is, whom it means, a nonce, a proof for the endpoint's word
//   who accepted   Answer   a nonce, and a proof for both nonces
//   who opened     Proof    for both nonces
//
// Each proof is HMAC-SHA256(secret, its own label, word, all that was said before), so that none
// can stand for another, on another connection, in the other direction or in another generation.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "crypto/mac.h"

namespace tactus::collective {

using Nonce = std::array<std::byte, 16>;

// What both ends of a connection know of their group before they talk.
struct GroupSecret {
  // Of this generation of the group: whoever knows it is a member. Empty, as where no coordinator
  // gives one: the endpoints' words alone keep strangers out.
  std::string secret{};
  std::uint64_t generation = 0;
};

// What the member that opened a connection says first.
struct Hello {
  std::uint64_t generation = 0;
  std::uint32_t from = 0;  // its rank
  std::uint32_t to = 0;    // the rank that it means
  std::uint32_t lane = 0;
  Nonce nonce{};  // fresh
  crypto::Mac mac{};

  friend bool operator==(const Hello&, const Hello&) = default;
};
struct Answer {
  Nonce nonce{};  // fresh
  crypto::Mac mac{};
};
struct Proof {
  crypto::Mac mac{};
};

// The same bytes on every host.
inline constexpr std::size_t kHelloBytes = 4 + 8 + 3 * 4 + 16 + crypto::kMacBytes;
inline constexpr std::size_t kAnswerBytes = 16 + crypto::kMacBytes;
inline constexpr std::size_t kProofBytes = crypto::kMacBytes;
using HelloBytes = std::array<std::byte, kHelloBytes>;
using AnswerBytes = std::array<std::byte, kAnswerBytes>;

HelloBytes Encode(const Hello& hello);
AnswerBytes Encode(const Answer& answer);

// Nothing: they are no greeting, whoever sent them. Any bytes are allowed.
std::optional<Hello> DecodeHello(std::span<const std::byte> bytes);
std::optional<Answer> DecodeAnswer(std::span<const std::byte> bytes);

// Proofs of one connection. `word`: of the endpoint of who accepted, drawn for this meeting.
class Greeting {
 public:
  Greeting(const GroupSecret& group, std::uint64_t word) : group_(group), word_(word) {}

  // Completes them by their proof. The nonces are the caller's.
  void Sign(Hello& hello) const;
  void Sign(const Hello& hello, Answer& answer) const;
  Proof Prove(const Hello& hello, const Answer& answer) const;

  // Whether who said it knows the secret.
  bool IsTrue(const Hello& hello) const;
  bool IsTrue(const Hello& hello, const Answer& answer) const;
  bool IsTrue(const Hello& hello, const Answer& answer, const Proof& proof) const;

  // The key of a connection that is encrypted, which only members know.
  crypto::Mac KeyOf(const Hello& hello) const;

  std::uint64_t generation() const { return group_.generation; }

 private:
  // Of one label, for those who know the secret.
  crypto::Mac MacOf(const char* label, std::span<const std::byte> said,
                    std::span<const std::byte> more) const;

  const GroupSecret group_;
  const std::uint64_t word_;
};

}  // namespace tactus::collective
