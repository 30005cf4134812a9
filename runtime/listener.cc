#include "runtime/listener.h"

#include <fcntl.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/socket_base.hpp>
#include <chrono>
#include <deque>
#include <optional>
#include <set>
#include <utility>

#include "runtime/host_port.h"
#include "runtime/logging.h"

namespace tactus::runtime {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr auto kPause = std::chrono::milliseconds(200);

// As of a machine that has the one of IPv4 and IPv6 and not the other.
bool IsNotHere(const error_code& error) {
  return error == boost::asio::error::address_family_not_supported ||
         error == boost::system::errc::address_not_available;
}

class ListenerImpl final : public Listener {
 public:
  explicit ListenerImpl(ControlThread& thread) : thread_(thread) {}

  // Errors: as Open.
  absl::Status Listen(const std::string& address) {
    std::optional<HostPort> parts = ParseHostPort(address);
    if (!parts.has_value()) {
      return absl::InvalidArgumentError("found \"" + address + "\", allowed is host:port");
    }
    if (!BindAll(*parts)) {
      return absl::UnavailableError(address +
                                    ": cannot listen here; the port is in use or the host is "
                                    "not an address of this machine");
    }
    parts->port = acceptors_.front().local_endpoint().port();
    address_ = FormatHostPort(*parts);
    loopback_ = std::ranges::all_of(acceptors_, [](const tcp::acceptor& acceptor) {
      return acceptor.local_endpoint().address().is_loopback();
    });
    return absl::OkStatus();
  }

  const std::string& address() const override { return address_; }
  bool loopback() const override { return loopback_; }

  void Start(Take take) override {
    take_ = std::move(take);
    for (std::size_t i = 0; i < acceptors_.size(); ++i) {
      pauses_.emplace_back(thread_);
      Accept(i);
    }
  }

  void Stop() override {
    pauses_.clear();
    error_code ignored;
    for (tcp::acceptor& acceptor : acceptors_) acceptor.close(ignored);
  }

 private:
  bool BindAll(const HostPort& parts) {
    error_code error;
    tcp::resolver resolver(thread_.context());
    const auto found =
        resolver.resolve(parts.host, std::to_string(parts.port),
                         tcp::resolver::passive | tcp::resolver::numeric_service, error);
    if (error) return false;
    std::set<tcp::endpoint> bound;  // a hosts file may name one twice
    for (const auto& one : found) {
      if (!bound.insert(one.endpoint()).second) continue;
      Bind(one.endpoint(), error);
      if (error && !IsNotHere(error)) return false;
      if (!error && parts.port == 0) break;
    }
    return !acceptors_.empty();
  }

  void Bind(const tcp::endpoint& endpoint, error_code& error) {
    tcp::acceptor acceptor(thread_.context());
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(boost::asio::socket_base::max_listen_connections, error);
    if (!error) acceptors_.push_back(std::move(acceptor));
  }

  void Accept(std::size_t index) {
    acceptors_[index].async_accept([this, index](const error_code& error, tcp::socket connection) {
      if (!acceptors_[index].is_open()) return;
      if (error) {
        if (!std::exchange(failing_, true)) {
          Logger("listener")
              ->warn("no connection can be taken address={} reason={}", address_,
                     Quoted(error.message()));
        }
        return pauses_[index].After(kPause, [this, index] { Accept(index); });
      }
      failing_ = false;
      error_code ignored;
      connection.non_blocking(true, ignored);
      ::fcntl(connection.native_handle(), F_SETFD, FD_CLOEXEC);
      take_(std::move(connection));
      Accept(index);
    });
  }

  ControlThread& thread_;
  std::deque<tcp::acceptor> acceptors_;
  std::deque<Timer> pauses_;  // of each
  std::string address_;
  bool loopback_ = false;
  bool failing_ = false;  // and it is said
  Take take_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Open(ControlThread& thread,
                                                         const std::string& address) {
  auto listener = std::make_unique<ListenerImpl>(thread);
  const absl::Status status = listener->Listen(address);
  if (!status.ok()) return status;
  return listener;
}

}  // namespace tactus::runtime
