// A coordinator of several that share a store: stands by, leads, and stands by again.

#pragma once

#include <signal.h>

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "coordinator/service/server.h"
#include "runtime/service_manager.h"

namespace tactus {

// What steps down with: the store's threads send it to the process. To be blocked in all threads.
inline constexpr int kStepDown = SIGUSR1;

struct Turns {
  service::ServerOptions server{};  // with a store that is shared
  sigset_t signals{};               // that end the process, and kStepDown
  const runtime::ServiceManager& manager;
  // Told where it listens, each time that this may have changed; no metrics while it stands by.
  std::function<absl::Status(const std::string& address, const std::string& metrics)> listening{};
};

// Until one of the signals comes. Where another leads, and at the end, the store's lease is given
// back, so that another leads within a second.
// Errors: as Standby::Open, store::TryToLead and Server::Open; a database that does not answer is
// waited for.
absl::Status TakeTurns(const Turns& turns);

}  // namespace tactus
