#include "tests/coordinator/silent_connection.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "runtime/host_port.h"

namespace tactus::service {

Descriptor ConnectSilently(const std::string& address) {
  const auto parts = runtime::ParseHostPort(address);
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(parts->port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  return socket;
}

bool Closes(const Descriptor& socket, int milliseconds) {
  char byte = 0;
  pollfd waits = {.fd = socket.get(), .events = POLLIN, .revents = 0};
  while (::poll(&waits, 1, milliseconds) > 0) {
    if (::recv(socket.get(), &byte, 1, 0) <= 0) return true;
  }
  return false;
}

}  // namespace tactus::service
