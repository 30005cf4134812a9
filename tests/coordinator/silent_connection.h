// Connections whose client says nothing.

#pragma once

#include <string>

#include "base/descriptor.h"

namespace tactus::service {

// To host:port, of IPv4 on this machine.
Descriptor ConnectSilently(const std::string& address);

// Whether the other end closes it within that time.
bool Closes(const Descriptor& socket, int milliseconds);

}  // namespace tactus::service
