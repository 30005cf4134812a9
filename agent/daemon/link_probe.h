// What the way between two nodes carries, measured when the coordinator asks for it.

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/descriptor.h"
#include "base/time.h"
#include "runtime/control_thread.h"
#include "tactus/agent/v1/session.pb.h"

namespace tactus::agent {

// How much a measurement may take, whoever asks for more.
struct LinkBounds {
  std::uint64_t bytes_max = std::uint64_t{128} << 20;
  Duration time_max = Seconds(1);
  Duration patience = Seconds(5);  // until the other is there, and for each answer
};

struct LinkFigures {
  Duration round_trip{};        // the shortest of some
  double bytes_per_second = 0;  // that arrived at the other end
};

// Listens for one that has the secret, and takes what they send. One thread, but for `stop`.
class LinkListener {
 public:
  // At a port of the system's choice, at the node's address towards other workers.
  // Errors: Unavailable, the address is none of this host's.
  static absl::StatusOr<LinkListener> Open(const std::string& address);

  // Opaque to the coordinator; see collective::EncodeEndpoint.
  const std::string& endpoint() const { return endpoint_; }

  // Blocking, until it is over, `bounds` are reached, or `stop`. Whoever has another secret is sent
  // away, and who shows none keeps nobody waiting. Errors: DeadlineExceeded, nobody came;
  // Cancelled; Unavailable, the connection broke.
  absl::Status Serve(const std::string& secret, const LinkBounds& bounds,
                     const std::atomic<bool>& stop) const;

 private:
  LinkListener(Descriptor listener, std::string endpoint)
      : listener_(std::move(listener)), endpoint_(std::move(endpoint)) {}

  Descriptor listener_;
  std::string endpoint_;
};

// Connects to a listener, and sends as much as `bounds` allow, once it has shown that it knows the
// secret: another is sent nothing but a proof that the dialler does. Blocking. Errors:
// InvalidArgument, no endpoint; Unavailable, nobody answers there; PermissionDenied, another
// secret; DeadlineExceeded; Cancelled.
absl::StatusOr<LinkFigures> MeasureLink(const std::string& endpoint, const std::string& secret,
                                        const LinkBounds& bounds, const std::atomic<bool>& stop);

// An agent's part in measurements, one after the other, on a thread of its own.
class LinkProbes {
 public:
  // `said` is called on that thread with each answer.
  LinkProbes(std::string address, std::function<void(tactus::agent::v1::LinkProbed)> said)
      : address_(std::move(address)), said_(std::move(said)) {}
  ~LinkProbes();  // gives up what is under way

  // From any thread. Dropped where kWaitingMax wait.
  void Order(const tactus::agent::v1::ProbeLink& order);

  static constexpr int kWaitingMax = 4;

 private:
  void Listen(const tactus::agent::v1::ProbeLink& order);
  void Dial(const tactus::agent::v1::ProbeLink& order);

  const std::string address_;
  const std::function<void(tactus::agent::v1::LinkProbed)> said_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> waiting_ = 0;
  runtime::ControlThread thread_;  // last: ends first
};

}  // namespace tactus::agent
