#include "coordinator/access/bounds.h"

#include <array>
#include <boost/asio/ip/address.hpp>
#include <chrono>

#include "runtime/host_port.h"
#include "runtime/percent.h"
#include "runtime/status.h"

namespace tactus::access {
namespace {

namespace ip = boost::asio::ip;

struct Words {
  const char* name;
  std::string reason;  // empty: who is refused is told nothing
  std::chrono::seconds retry{5};
};

// In the order of Bound.
const std::array<Words, 6>& AllWords() {
  static const auto* const kWords = new std::array<Words, 6>{{
      // lives as long as the process
      {.name = "connections", .reason = ""},
      {.name = "calls", .reason = "TOO_MANY_CALLS"},
      {.name = "first_message", .reason = "FIRST_MESSAGE_LATE"},
      {.name = "nodes", .reason = "TOO_MANY_NODES", .retry = std::chrono::seconds(60)},
      {.name = "upload_bytes", .reason = "UPLOADS_FULL", .retry = std::chrono::seconds(600)},
      {.name = "disk", .reason = "DISK_LOW", .retry = std::chrono::seconds(60)},
  }};
  return *kWords;
}

const Words& Of(Bound bound) { return AllWords().at(static_cast<std::size_t>(bound)); }

// The first half of an address, which is what a host is given.
std::string NetworkOf(const ip::address_v6& address) {
  ip::address_v6::bytes_type bytes = address.to_bytes();
  for (std::size_t i = bytes.size() / 2; i < bytes.size(); ++i) bytes[i] = 0;
  return ip::address_v6(bytes).to_string() + "/64";
}

}  // namespace

const char* NameOf(Bound bound) { return Of(bound).name; }

absl::Status Beyond(Bound bound, const std::string& message) {
  const Words& words = Of(bound);
  absl::Status status = bound == Bound::kFirstMessage ? absl::DeadlineExceededError(message)
                                                      : absl::ResourceExhaustedError(message);
  return runtime::WithRetry(runtime::WithReason(std::move(status), {.reason = words.reason}),
                            words.retry);
}

std::optional<Bound> BoundOf(const absl::Status& status) {
  if (status.ok()) return std::nullopt;
  const std::string reason = runtime::ReasonOf(status).reason;
  if (reason.empty()) return std::nullopt;
  for (std::size_t i = 0; i < AllWords().size(); ++i) {
    if (reason == AllWords().at(i).reason) return static_cast<Bound>(i);
  }
  return std::nullopt;
}

std::string HostOfAddress(const std::string& text) {
  boost::system::error_code error;
  const ip::address address = ip::make_address(text, error);
  if (error) return text;
  if (address.is_v4() || address.is_loopback()) return address.to_string();
  if (address.to_v6().is_v4_mapped()) {
    return ip::make_address_v4(ip::v4_mapped, address.to_v6()).to_string();
  }
  return NetworkOf(address.to_v6());
}

std::string HostOfPeer(const std::string& peer) {
  if (!peer.starts_with("ipv4:") && !peer.starts_with("ipv6:")) return peer;
  // gRPC writes peers as URIs.
  const auto decoded = runtime::DecodePercent(peer.substr(peer.find(':') + 1));
  const auto parts = runtime::ParseHostPort(decoded.value_or(""));
  return parts ? HostOfAddress(parts->host) : peer;
}

std::string BoundedName(const Principal& who, const std::string& peer) {
  if (who.kind == Principal::Kind::kPage) return "";
  // Strangers are not one caller: one of them would keep all others from their tokens.
  const bool unknown =
      who.kind == Principal::Kind::kLocal || who.kind == Principal::Kind::kStranger;
  return unknown ? "host/" + HostOfPeer(peer) : NameOf(who);
}

CallCounts::Place::~Place() {
  if (counts_ != nullptr) counts_->Leave(caller_);
}

std::optional<CallCounts::Place> CallCounts::Enter(const std::string& caller) {
  const threads::MutexLock lock(mutex_);
  std::size_t& calls = calls_[caller];
  if (calls >= per_caller_) return std::nullopt;
  ++calls;
  return Place(*this, caller);
}

void CallCounts::Leave(const std::string& caller) {
  const threads::MutexLock lock(mutex_);
  const auto found = calls_.find(caller);
  if (--found->second == 0) calls_.erase(found);
}

}  // namespace tactus::access
