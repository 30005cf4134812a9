// A connection whose ends get to know each other: the greeting, over a socket that never blocks.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "agent/collective/greeting.h"
#include "agent/collective/mesh_connection.h"
#include "agent/collective/tcp_socket.h"
#include "agent/collective/tls_session.h"
#include "base/descriptor.h"

namespace tactus::collective {

// What is the same for all connections of a meeting.
struct Party {
  GroupSecret group{};
  bool encrypted = false;  // the members' connections are
  std::uint32_t rank = 0;  // of this member
  std::uint32_t size = 1;
  std::uint32_t lanes = 1;  // between each two members
};

// One connection on its way to become one of the mesh. Plain: as greeting.h has it. Encrypted: the
// Hello is the identity of a TLS handshake by the key that only members can make of it, which
// proves the same to both ends in as many trips. One thread at a time.
class Introduction {
 public:
  // Of the member that opened it, to a member of a lower rank, whose endpoint has the word. Null:
  // this host has no random bytes. Nothing is written before Advance.
  static std::unique_ptr<Introduction> Open(Descriptor connection, const Party& party,
                                            std::uint32_t to, std::uint32_t lane,
                                            std::uint64_t word);
  // Of the member that accepted it, whose endpoint has the word.
  static std::unique_ptr<Introduction> Accept(Descriptor connection, const Party& party,
                                              std::uint64_t word);

  Introduction(const Introduction&) = delete;
  Introduction& operator=(const Introduction&) = delete;

  enum class State { kOn, kDone, kRefused };
  // Goes on as far as it can without waiting.
  State Advance();

  // Refused: why, of the other end, for a person; empty: it left without a word.
  const std::string& refusal() const { return refusal_; }
  // Who it is, or says to be: what a member that knows the secret said first. Nothing: not yet.
  const std::optional<Hello>& hello() const { return hello_; }

  // For poll(2).
  int descriptor() const { return descriptor_.get(); }
  bool wants_write() const { return session_ && session_->wants_write(); }

  // Once, when it is done.
  MeshConnection Take() { return MeshConnection(std::move(descriptor_), std::move(session_)); }

 private:
  enum class Stage { kSayHello, kHearHello, kHearAnswer, kHearProof, kHandshake, kDone };

  Introduction(Descriptor connection, const Party& party, std::uint64_t word)
      : party_(party), greeting_(party.group, word), descriptor_(std::move(connection)) {}

  // What one stage came to: false, it waits or was refused.
  bool SayHello();
  bool HearHello();
  bool HearAnswer();
  bool HearProof();
  bool Handshake();

  bool Hear(std::size_t bytes);
  bool Say(std::span<const std::byte> bytes);
  bool Refuse(const std::string& why);
  // Why it is none of this group's that this member waits for; empty: it is one.
  std::string WhyNot(const std::optional<Hello>& hello) const;

  const Party& party_;  // outlives it
  const Greeting greeting_;
  Descriptor descriptor_;
  std::unique_ptr<TlsSession> session_;  // of descriptor_, where it is encrypted
  Stage stage_ = Stage::kHearHello;
  std::optional<Hello> hello_;
  Answer answer_;  // of who accepted
  std::string refusal_;
  bool refused_ = false;
  std::array<std::byte, kHelloBytes> heard_{};  // of what is heard now
  std::size_t heard_bytes_ = 0;
  bool spoke_ = false;  // the other end said something
};

}  // namespace tactus::collective
