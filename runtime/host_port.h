// "host:port", as addresses are given to us and told to others. Pure.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tactus::runtime {

struct HostPort {
  std::string host = {};  // a name or a number, without brackets; not empty
  std::uint16_t port = 0;

  bool operator==(const HostPort&) const = default;
};

// Reads "host:port" or "[address]:port", the port in one to five digits. Which hosts there are, and
// whether port 0 has a meaning, is for the caller. Nothing for anything else.
std::optional<HostPort> ParseHostPort(std::string_view text);

// The parts of "host:port,host:port", as they stand there; of an empty text one that is empty.
std::vector<std::string> SplitAddresses(std::string_view text);

// Whether each part is host:port, with a port that can be dialled. One part, where there is one.
bool AreHostPorts(std::string_view text);

// True for "localhost", 127.x.x.x and ::1: nobody on another machine is meant. Names are not looked
// up.
bool IsLoopback(std::string_view host);

// What ParseHostPort reads: a host with colons stands in brackets.
std::string FormatHostPort(const HostPort& address);

}  // namespace tactus::runtime
