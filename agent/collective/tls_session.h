// One end of a TLS 1.3 connection whose ends know a key beforehand, so that nobody needs a
// certificate.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "agent/collective/tcp_socket.h"
#include "crypto/mac.h"

namespace tactus::collective {

// Whether this build has OpenSSL: without, there are no sessions.
bool HasTls();

// Over a connection of somebody else's, which never blocks and outlives the session. Both ends
// prove that they know the key, which is of use to nobody who learns it later: what it protects is
// agreed on anew (X25519). One thread at a time. SIGPIPE is not raised.
class TlsSession {
 public:
  // Records that one key encrypts at most, far below what AES-GCM bears (RFC 8446, 5.5: 2^24.5);
  // then the sender takes the next one.
  static constexpr std::uint64_t kRecordsPerKey = std::uint64_t{1} << 22;

  // Of who opened the connection: `identity` says in clear which key it means, [1, 128] bytes.
  // Requires, as the next one: HasTls().
  static std::unique_ptr<TlsSession> Opening(int connection, std::span<const std::byte> identity,
                                             const crypto::Mac& key,
                                             std::uint64_t records_per_key = kRecordsPerKey);

  // Of who accepted it: `find` is called at most once, with what the other end said, and returns
  // the key; nothing: there is none for it.
  using FindKey = std::function<std::optional<crypto::Mac>(std::span<const std::byte> identity)>;
  static std::unique_ptr<TlsSession> Accepting(int connection, FindKey find,
                                               std::uint64_t records_per_key = kRecordsPerKey);

  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;
  ~TlsSession();

  // Goes on with the handshake without waiting: kMoved, it is done, on this side; kBlocked, it
  // waits for the connection; else it failed, and `why` says why.
  Flow Handshake(std::string& why);
  // Blocked, it waits to write and not to read.
  bool wants_write() const;

  // As WriteSome and ReadSome. What was blocked is to be tried again with the same bytes.
  Moved Write(std::span<const std::byte> head, std::span<const std::byte> body);
  Moved Read(std::span<std::byte> head, std::span<std::byte> body);

  // Whether bytes have been taken from the connection that Read has not given out.
  bool HasUnread() const;

 private:
  struct State;
  explicit TlsSession(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace tactus::collective
