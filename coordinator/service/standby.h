// A coordinator that waits for its turn: at its address, it says who leads.

#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/service/server.h"

namespace tactus::service {

// Answers every call with Unavailable and the reason NOT_LEADING, and health checks with
// NOT_SERVING, until it is destroyed. Bounds connections and memory, holds the state folder and,
// where it has an authority, makes and renews its certificate meanwhile, as a Server does.
class Standby {
 public:
  // Errors: as Server::Open has them of the folder, the address and TLS.
  static absl::StatusOr<std::unique_ptr<Standby>> Open(const ServerOptions& options);

  virtual ~Standby() = default;

  // host:port in use.
  virtual const std::string& address() const = 0;

  // What callers are told from now on: where the leader is; empty, as at first: nobody knows.
  virtual void SetLeader(const std::string& address) = 0;
};

}  // namespace tactus::service
