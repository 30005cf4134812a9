#include "agent/collective/gloo_mesh.h"

#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <utility>

#include "base/check.h"
#include "gloo/transport/pair.h"
#include "gloo/transport/tcp/device.h"

namespace tactus::collective {
namespace {

constexpr std::uint64_t kDeathWatchSlot = 0;  // nobody ever sends there
constexpr std::uint64_t kFirstSlot = 1;
constexpr std::uint64_t kSecondSlot = 2;

// Gloo multiplies a pair's timeout by this when it connects (gloo/transport/tcp/pair.h, waitUntil).
constexpr int kConnectTimeoutFactor = 5;

std::uint64_t SlotOf(Lane lane) { return lane == Lane::kFirst ? kFirstSlot : kSecondSlot; }

// Offset of `memory` in a buffer that begins at address zero.
std::size_t OffsetOf(const std::byte* memory) { return reinterpret_cast<std::size_t>(memory); }

std::chrono::milliseconds InMilliseconds(Duration duration) {
  return std::max(std::chrono::ceil<std::chrono::milliseconds>(duration),
                  std::chrono::milliseconds(1));
}

// Gloo's message without the place in Gloo's source that it begins with.
std::string WithoutPlace(const std::string& message) {
  const std::size_t end = message.find("] ");
  return message.starts_with('[') && end != std::string::npos ? message.substr(end + 2) : message;
}

// Why a socket cannot be bound to the address, or nothing.
std::string WhyUnbindable(const addrinfo& address) {
  const int descriptor = socket(address.ai_family, address.ai_socktype, address.ai_protocol);
  const bool bound = descriptor != -1 && bind(descriptor, address.ai_addr, address.ai_addrlen) == 0;
  const std::string why = bound ? "" : std::strerror(errno);
  if (descriptor != -1) close(descriptor);
  return why;
}

// Why `name` is no address of this host, or nothing. Asked before Gloo, which uses a result that is
// not there when the name is unknown.
std::string WhyNotHere(const std::string& name) {
  if (name.empty()) return "empty";
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* result = nullptr;
  const int error = getaddrinfo(name.c_str(), nullptr, &hints, &result);
  if (error != 0) return gai_strerror(error);
  std::string why;
  for (const addrinfo* address = result; address != nullptr; address = address->ai_next) {
    why = WhyUnbindable(*address);
    if (why.empty()) break;
  }
  freeaddrinfo(result);
  return why;
}

// The part of `endpoint` that is meant for member `to`; it stands in rank order without `from`.
std::vector<char> AddressFor(const std::string& endpoint, int from, int to, std::size_t bytes) {
  const auto index = static_cast<std::size_t>(to < from ? to : to - 1);
  const std::string address = endpoint.substr(index * bytes, bytes);
  return {address.begin(), address.end()};
}

}  // namespace

std::unique_ptr<GlooMesh> GlooMesh::Connect(const GlooMeeting& meeting, std::string& reason) {
  std::unique_ptr<GlooMesh> mesh(new GlooMesh(meeting));
  if (mesh->OpenDevice(meeting.address) && mesh->ConnectPairs(meeting) && mesh->Handshake()) {
    mesh->set_timeout(meeting.collective_timeout);
    return mesh;
  }
  reason = mesh->failure();
  return nullptr;
}

GlooMesh::GlooMesh(const GlooMeeting& meeting)
    : rank_(meeting.rank), size_(meeting.size), timeout_(meeting.timeout) {
  peers_.resize(static_cast<std::size_t>(size_));
}

bool GlooMesh::OpenDevice(const std::string& address) {
  ::gloo::transport::tcp::attr attributes;
  if (if_nametoindex(address.c_str()) != 0) {
    attributes.iface = address;
  } else if (const std::string why = WhyNotHere(address); why.empty()) {
    attributes.hostname = address;
  } else {
    failure_ =
        "address '" + address + "': neither an interface nor an address of this host: " + why;
    return false;
  }
  return Guard(rank_, [&] { device_ = ::gloo::transport::tcp::CreateDevice(attributes); });
}

bool GlooMesh::ConnectPairs(const GlooMeeting& meeting) {
  std::string own_endpoint;
  const bool listening = Guard(rank_, [&] {
    context_ = device_->createContext(rank_, size_);
    context_->setTimeout(InMilliseconds(meeting.timeout / kConnectTimeoutFactor));
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      const std::vector<char> address = context_->createPair(peer)->address().bytes();
      own_endpoint.append(address.begin(), address.end());
    }
  });
  if (!listening) return false;
  const std::vector<std::string> endpoints = meeting.exchange(own_endpoint);
  if (endpoints.size() != peers_.size()) {
    failure_ = "the group was given up before it was connected";
    return false;
  }
  const std::size_t address_bytes = own_endpoint.size() / (peers_.size() - 1);
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    const std::string& endpoint = endpoints[static_cast<std::size_t>(peer)];
    if (endpoint.size() != own_endpoint.size()) {
      failure_ = "rank " + std::to_string(peer) + ": its endpoint has " +
                 std::to_string(endpoint.size()) + " bytes, expected " +
                 std::to_string(own_endpoint.size());
      return false;
    }
    Guard(peer, [&] {
      context_->getPair(peer)->connect(AddressFor(endpoint, peer, rank_, address_bytes));
    });
  }
  return failure_.empty();
}

// Gloo's event loop ends the process when it accepts a connection that was reset meanwhile. Having
// heard from a peer means that its side is accepted, so that from then on either may close at any
// time.
bool GlooMesh::Handshake() {
  std::vector<std::byte> greetings(peers_.size());
  greetings[static_cast<std::size_t>(rank_)] = std::byte{1};
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    Guard(peer, [&] {
      Peer& ends = peers_[static_cast<std::size_t>(peer)];
      for (Buffer* const buffer : {&ends.first, &ends.second}) {
        // All memory, beginning at address zero: one buffer serves every collective, and a pair
        // that dies wakes those who wait on it through the receive that is never filled. Gloo wakes
        // nobody by itself when the pair dies within a message.
        *buffer = context_->createUnboundBuffer(nullptr, std::numeric_limits<std::size_t>::max());
        (*buffer)->recv(peer, kDeathWatchSlot, 0, 1);
      }
    });
    Receive(peer, Lane::kFirst, {&greetings[static_cast<std::size_t>(peer)], 1});
    Send(peer, Lane::kFirst, {&greetings[static_cast<std::size_t>(rank_)], 1});
  }
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    if (!WaitReceived(peer, Lane::kFirst) || !WaitSent(peer, Lane::kFirst)) break;
  }
  if (!failure_.empty()) ReleaseMemory();
  return failure_.empty();
}

template <typename Call>
bool GlooMesh::Guard(int peer, Call call) {
  if (!failure_.empty()) return false;
  try {
    call();
    return true;
  } catch (const std::exception& error) {
    const std::string who = peer == rank_ ? "" : "rank " + std::to_string(peer) + ": ";
    failure_ = who + WithoutPlace(error.what());
    return false;
  }
}

::gloo::transport::UnboundBuffer& GlooMesh::BufferOf(int peer, Lane lane) {
  TACTUS_CHECK(peer >= 0 && peer < size_ && peer != rank_);
  const Peer& ends = peers_[static_cast<std::size_t>(peer)];
  return lane == Lane::kFirst ? *ends.first : *ends.second;
}

void GlooMesh::Send(int peer, Lane lane, std::span<const std::byte> message) {
  Guard(peer, [&] {
    BufferOf(peer, lane).send(peer, SlotOf(lane), OffsetOf(message.data()), message.size_bytes());
  });
}

void GlooMesh::Receive(int peer, Lane lane, std::span<std::byte> message) {
  Guard(peer, [&] {
    BufferOf(peer, lane).recv(peer, SlotOf(lane), OffsetOf(message.data()), message.size_bytes());
  });
}

bool GlooMesh::WaitSent(int peer, Lane lane) {
  return Wait(peer, [&] { return BufferOf(peer, lane).waitSend(InMilliseconds(timeout_)); });
}

bool GlooMesh::WaitReceived(int peer, Lane lane) {
  return Wait(peer, [&] { return BufferOf(peer, lane).waitRecv(InMilliseconds(timeout_)); });
}

// A peer may leave once its last message is on its way. Gloo then tells a waiter of the closed
// connection even when the message has come before; asked again, it counts the message first.
template <typename Call>
bool GlooMesh::Wait(int peer, Call call) {
  if (!failure_.empty()) return false;
  bool done = false;
  const auto wait = [&] { done = call(); };
  if (!Guard(peer, wait)) {
    const std::string failure = std::exchange(failure_, "");
    if (!Guard(peer, wait)) failure_ = failure;
  }
  if (failure_.empty() && !done) failure_ = "interrupted";
  return failure_.empty();
}

void GlooMesh::Interrupt() {
  for (const Peer& peer : peers_) {
    for (const Buffer* const buffer : {&peer.first, &peer.second}) {
      if (*buffer == nullptr) continue;
      (*buffer)->abortWaitRecv();
      (*buffer)->abortWaitSend();
    }
  }
}

void GlooMesh::ReleaseMemory() {
  if (failure_.empty()) failure_ = "closed";
  for (Peer& peer : peers_) peer = {};
}

}  // namespace tactus::collective
