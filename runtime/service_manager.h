// The service manager that started this process, and how this process stands: systemd's sd_notify.

#pragma once

#include <string>
#include <utility>

#include "base/time.h"

namespace tactus::runtime {

// Speaks to the socket that a unit of Type=notify has in NOTIFY_SOCKET. Without one, and where a
// message cannot be sent, nothing happens: nobody waits for it. Any thread.
class ServiceManager {
 public:
  // `socket`: a path, or a name of Linux' abstract namespace behind '@'; empty: nobody started us.
  explicit ServiceManager(std::string socket) : socket_(std::move(socket)) {}

  // Of this process's environment, out of which it takes the variable: children do not speak for
  // us. Called from main files only, before any other thread is there.
  static ServiceManager TakeFromEnvironment();

  // Serving now; `status` is a line for people ("systemctl status").
  void Ready(const std::string& status) const;

  // Ending, which may take `within` from now on where the unit's own limit is less; 0: that limit.
  void Stopping(Duration within = Duration(0)) const;

 private:
  void Send(const std::string& message) const;

  std::string socket_;
};

}  // namespace tactus::runtime
