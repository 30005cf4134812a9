#include "agent/collective/tls_session.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/obj_mac.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.h"

namespace tactus::collective {
namespace {

// The one that fits a key of 32 bytes and SHA-256, and that processors have instructions for.
constexpr const char* kCipher = "TLS_AES_128_GCM_SHA256";
constexpr std::array<unsigned char, 2> kCipherNumber = {0x13, 0x01};

// Plain bytes of one record.
constexpr std::size_t kRecordBytes = 16 << 10;

template <auto kFree>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using ContextOwner = std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>>;
using SslOwner = std::unique_ptr<SSL, Freed<SSL_free>>;
using SessionOwner = std::unique_ptr<SSL_SESSION, Freed<SSL_SESSION_free>>;

int DescriptorOf(BIO* bio) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
}

int Told(BIO* bio, ssize_t moved, int retry) {
  BIO_clear_retry_flags(bio);
  if (moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
  }
  return static_cast<int>(moved);
}

// OpenSSL's own raises SIGPIPE.
int WriteTo(BIO* bio, const char* bytes, int length) {
  const auto size = static_cast<std::size_t>(length);
  return Told(bio, send(DescriptorOf(bio), bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT),
              BIO_FLAGS_WRITE);
}

int ReadFrom(BIO* bio, char* bytes, int length) {
  const auto size = static_cast<std::size_t>(length);
  return Told(bio, recv(DescriptorOf(bio), bytes, size, MSG_DONTWAIT), BIO_FLAGS_READ);
}

long Control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

const BIO_METHOD* Method() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "mesh connection");
    TACTUS_CHECK(made != nullptr);
    BIO_meth_set_write(made, WriteTo);
    BIO_meth_set_read(made, ReadFrom);
    BIO_meth_set_ctrl(made, Control);
    return made;
  }();
  return method;
}

// A key that was agreed on beforehand, as OpenSSL has it: the session of a former connection.
SSL_SESSION* SessionOf(SSL* ssl, const crypto::Mac& key) {
  SessionOwner session(SSL_SESSION_new());
  const SSL_CIPHER* const cipher = SSL_CIPHER_find(ssl, kCipherNumber.data());
  TACTUS_CHECK(session != nullptr && cipher != nullptr);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(key.data());
  TACTUS_CHECK(SSL_SESSION_set1_master_key(session.get(), bytes, key.size()) == 1 &&
               SSL_SESSION_set_cipher(session.get(), cipher) == 1 &&
               SSL_SESSION_set_protocol_version(session.get(), TLS1_3_VERSION) == 1);
  return session.release();
}

std::string FirstError() {
  const unsigned long error = ERR_get_error();
  const char* const reason = error == 0 ? nullptr : ERR_reason_error_string(error);
  return reason == nullptr ? "the handshake failed" : reason;
}

}  // namespace

struct TlsSession::State {
  SslOwner ssl{};
  std::vector<unsigned char> identity{};  // of who opened
  crypto::Mac key{};
  FindKey find{};  // of who accepted
  std::uint64_t records_per_key = 0;
  std::uint64_t records = 0;  // since the last change of the key
  int wants = SSL_NOTHING;
  std::array<std::byte, kRecordBytes> record{};

  static int UseSession(SSL* ssl, const EVP_MD*, const unsigned char** identity, std::size_t* size,
                        SSL_SESSION** session);
  static int FindSession(SSL* ssl, const unsigned char* identity, std::size_t size,
                         SSL_SESSION** session);
  static SSL_CTX* Context();
  static std::unique_ptr<State> Make(int connection, std::uint64_t records_per_key);

  Moved ResultOf(int returned, std::size_t moved);
  void TakeNextKey();
};

int TlsSession::State::UseSession(SSL* ssl, const EVP_MD*, const unsigned char** identity,
                                  std::size_t* size, SSL_SESSION** session) {
  const auto& state = *static_cast<State*>(SSL_get_app_data(ssl));
  *identity = state.identity.data();
  *size = state.identity.size();
  *session = SessionOf(ssl, state.key);
  return 1;
}

int TlsSession::State::FindSession(SSL* ssl, const unsigned char* identity, std::size_t size,
                                   SSL_SESSION** session) {
  auto& state = *static_cast<State*>(SSL_get_app_data(ssl));
  *session = nullptr;
  // A stranger may name many.
  if (const FindKey find = std::exchange(state.find, nullptr)) {
    if (const auto key = find(std::as_bytes(std::span(identity, size)))) {
      *session = SessionOf(ssl, *key);
    }
  }
  return 1;  // without a key the handshake ends, as there is no certificate
}

// One for all sessions, which never goes: some may outlive what is destroyed at the process's end.
SSL_CTX* TlsSession::State::Context() {
  static SSL_CTX* const context = [] {
    ContextOwner made(SSL_CTX_new(TLS_method()));
    TACTUS_CHECK(made != nullptr);
    SSL_CTX* const all = made.get();
    int group = NID_X25519;
    TACTUS_CHECK(SSL_CTX_set_min_proto_version(all, TLS1_3_VERSION) == 1 &&
                 SSL_CTX_set_max_proto_version(all, TLS1_3_VERSION) == 1 &&
                 SSL_CTX_set_ciphersuites(all, kCipher) == 1 &&
                 SSL_CTX_set1_groups(all, &group, 1) == 1);
    // No tickets, which would lie unread before a member's first message. That a peer closes
    // without a word is told as of plain connections: messages say their own length.
    SSL_CTX_set_num_tickets(all, 0);
    SSL_CTX_set_session_cache_mode(all, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(all, SSL_OP_NO_TICKET | SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_mode(all, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_psk_use_session_callback(all, UseSession);
    SSL_CTX_set_psk_find_session_callback(all, FindSession);
    return made.release();
  }();
  return context;
}

std::unique_ptr<TlsSession::State> TlsSession::State::Make(int connection,
                                                           std::uint64_t records_per_key) {
  auto state = std::make_unique<State>();
  state->ssl.reset(SSL_new(Context()));
  BIO* const bio = BIO_new(Method());
  TACTUS_CHECK(state->ssl != nullptr && bio != nullptr);
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(connection)));
  BIO_set_init(bio, 1);
  SSL_set_bio(state->ssl.get(), bio, bio);
  SSL_set_app_data(state->ssl.get(), state.get());
  state->records_per_key = records_per_key;
  return state;
}

Moved TlsSession::State::ResultOf(int returned, std::size_t moved) {
  wants = SSL_NOTHING;
  if (returned == 1) return {.flow = Flow::kMoved, .bytes = moved};
  const int cause = errno;
  switch (SSL_get_error(ssl.get(), returned)) {
    case SSL_ERROR_WANT_READ:
      wants = SSL_READING;
      return {};
    case SSL_ERROR_WANT_WRITE:
      wants = SSL_WRITING;
      return {};
    case SSL_ERROR_ZERO_RETURN:
      return {.flow = Flow::kClosed};
    case SSL_ERROR_SYSCALL:
      if (cause == 0) return {.flow = Flow::kClosed};
      return {.flow = Flow::kBroken, .error = cause};
    default:
      return {.flow = Flow::kBroken, .error = EBADMSG};
  }
}

// Not while a record waits to be written: then there is another time soon.
void TlsSession::State::TakeNextKey() {
  if (++records < records_per_key) return;
  if (SSL_key_update(ssl.get(), SSL_KEY_UPDATE_NOT_REQUESTED) == 1) records = 0;
}

bool HasTls() { return true; }

TlsSession::TlsSession(std::unique_ptr<State> state) : state_(std::move(state)) {}
TlsSession::~TlsSession() = default;

std::unique_ptr<TlsSession> TlsSession::Opening(int connection, std::span<const std::byte> identity,
                                                const crypto::Mac& key,
                                                std::uint64_t records_per_key) {
  std::unique_ptr<State> state = State::Make(connection, records_per_key);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(identity.data());
  state->identity.assign(bytes, bytes + identity.size());
  state->key = key;
  SSL_set_verify(state->ssl.get(), SSL_VERIFY_PEER, nullptr);  // no certificate will do
  SSL_set_connect_state(state->ssl.get());
  return std::unique_ptr<TlsSession>(new TlsSession(std::move(state)));
}

std::unique_ptr<TlsSession> TlsSession::Accepting(int connection, FindKey find,
                                                  std::uint64_t records_per_key) {
  std::unique_ptr<State> state = State::Make(connection, records_per_key);
  state->find = std::move(find);
  SSL_set_accept_state(state->ssl.get());
  return std::unique_ptr<TlsSession>(new TlsSession(std::move(state)));
}

Flow TlsSession::Handshake(std::string& why) {
  ERR_clear_error();
  errno = 0;
  SSL* const ssl = state_->ssl.get();
  const Moved moved = state_->ResultOf(SSL_do_handshake(ssl), 1);
  if (moved.flow == Flow::kBroken && moved.error == EBADMSG) {
    why = FirstError();
  } else if (moved.flow == Flow::kBroken) {
    why = std::strerror(moved.error);
  } else if (moved.flow == Flow::kClosed) {
    why = "closed the connection";
  } else if (moved.flow == Flow::kMoved && SSL_session_reused(ssl) != 1) {
    why = "went on without the key";
    return Flow::kBroken;
  }
  return moved.flow;
}

bool TlsSession::wants_write() const { return state_->wants == SSL_WRITING; }

// A short head and what follows go in one record: the other end is to be woken once.
Moved TlsSession::Write(std::span<const std::byte> head, std::span<const std::byte> body) {
  std::span<const std::byte> bytes = body;
  if (!head.empty()) {
    const std::size_t begun = std::min(head.size(), kRecordBytes);
    const std::size_t more = std::min(body.size(), kRecordBytes - begun);
    std::ranges::copy(head.first(begun), state_->record.begin());
    std::ranges::copy(body.first(more),
                      state_->record.begin() + static_cast<std::ptrdiff_t>(begun));
    bytes = std::span(state_->record).first(begun + more);
  }
  ERR_clear_error();
  errno = 0;
  std::size_t written = 0;
  const int returned = SSL_write_ex(state_->ssl.get(), bytes.data(), bytes.size(), &written);
  const Moved moved = state_->ResultOf(returned, written);
  if (moved.flow == Flow::kMoved) state_->TakeNextKey();
  return moved;
}

Moved TlsSession::Read(std::span<std::byte> head, std::span<std::byte> body) {
  const std::span<std::byte> bytes = head.empty() ? body : head;
  ERR_clear_error();
  errno = 0;
  std::size_t read = 0;
  const int returned = SSL_read_ex(state_->ssl.get(), bytes.data(), bytes.size(), &read);
  return state_->ResultOf(returned, read);
}

bool TlsSession::HasUnread() const { return SSL_has_pending(state_->ssl.get()) == 1; }

}  // namespace tactus::collective
