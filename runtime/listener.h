// Connections taken at an address.

#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/control_thread.h"

namespace tactus::runtime {

// Takes connections for as long as it lives. Where one cannot be taken, as the process has no file
// or the machine no memory left, it says so once and tries again a little later: those that wait in
// the system's queue are served then.
class Listener {
 public:
  using Take = std::function<void(boost::asio::ip::tcp::socket connection)>;

  // Listens at all addresses that the host of "host:port" has here, at port 0 at the first of them
  // and a free port. Its end comes after Stop and the end of the thread. Errors: InvalidArgument,
  // no such text; Unavailable, the port is in use or the host is not this machine's.
  static absl::StatusOr<std::unique_ptr<Listener>> Open(ControlThread& thread,
                                                        const std::string& address);

  virtual ~Listener() = default;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // host:port, the port as it was chosen.
  virtual const std::string& address() const = 0;
  // Nobody on another machine can connect.
  virtual bool loopback() const = 0;

  // take: is called on the thread, with a connection that blocks nobody and is closed where a new
  // program is executed. Start and Stop: on the thread, each once.
  virtual void Start(Take take) = 0;
  virtual void Stop() = 0;

 protected:
  Listener() = default;
};

}  // namespace tactus::runtime
