// A connection between two members that know each other: plain, or encrypted.

#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "agent/collective/tcp_socket.h"
#include "agent/collective/tls_session.h"
#include "base/descriptor.h"

namespace tactus::collective {

// Never blocks and closes itself. One thread at a time.
class MeshConnection {
 public:
  MeshConnection() = default;
  // `session`: over this descriptor, with its handshake done; null: plain.
  explicit MeshConnection(Descriptor descriptor, std::unique_ptr<TlsSession> session = nullptr)
      : descriptor_(std::move(descriptor)), session_(std::move(session)) {}

  int get() const { return descriptor_.get(); }
  bool open() const { return descriptor_.open(); }
  bool encrypted() const { return session_ != nullptr; }

  // As the functions of tcp_socket.h. What was blocked while it wrote is to be tried again with the
  // same bytes. An encrypted one may have more to read although it gave less than was asked for.
  Moved WriteSome(std::span<const std::byte> head, std::span<const std::byte> body) {
    return session_ ? session_->Write(head, body) : collective::WriteSome(descriptor_, head, body);
  }
  Moved ReadSome(std::span<std::byte> head, std::span<std::byte> body) {
    return session_ ? session_->Read(head, body) : collective::ReadSome(descriptor_, head, body);
  }
  bool HasUnread() const {
    return (session_ && session_->HasUnread()) || collective::HasUnread(descriptor_);
  }
  // Without effect on an encrypted one: nobody can say how many bytes of the connection so many of
  // its messages still are.
  void SetLowWater(std::size_t bytes) {
    if (!session_) collective::SetLowWater(descriptor_, bytes);
  }

 private:
  Descriptor descriptor_;
  std::unique_ptr<TlsSession> session_;  // of descriptor_, and gone before it
};

}  // namespace tactus::collective
