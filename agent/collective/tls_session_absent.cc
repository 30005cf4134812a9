// A build without OpenSSL.

#include "agent/collective/tls_session.h"
#include "base/check.h"

namespace tactus::collective {

struct TlsSession::State {};

bool HasTls() { return false; }

TlsSession::TlsSession(std::unique_ptr<State> state) : state_(std::move(state)) {}
TlsSession::~TlsSession() = default;

std::unique_ptr<TlsSession> TlsSession::Opening(int, std::span<const std::byte>, const crypto::Mac&,
                                                std::uint64_t) {
  TACTUS_CHECK(HasTls());
  return nullptr;
}

std::unique_ptr<TlsSession> TlsSession::Accepting(int, FindKey, std::uint64_t) {
  TACTUS_CHECK(HasTls());
  return nullptr;
}

Flow TlsSession::Handshake(std::string&) { return Flow::kClosed; }
bool TlsSession::wants_write() const { return false; }
Moved TlsSession::Write(std::span<const std::byte>, std::span<const std::byte>) {
  return {.flow = Flow::kClosed};
}
Moved TlsSession::Read(std::span<std::byte>, std::span<std::byte>) {
  return {.flow = Flow::kClosed};
}
bool TlsSession::HasUnread() const { return false; }

}  // namespace tactus::collective
