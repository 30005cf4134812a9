// The filter of system calls that a worker is under.

#pragma once

#include <linux/filter.h>

#include <vector>

#include "absl/status/statusor.h"

namespace tactus::box {

using Filter = std::vector<sock_filter>;

// Made by libseccomp, for this architecture alone: a call by another one's table ends the process.
//
// Allowed are AllowedCalls; sockets of Unix, IPv4 and IPv6 (streams and datagrams; of Unix packets
// in order as well) and the routing table's netlink, by which interfaces are listed; new processes
// without namespaces (clone3, whose flags no filter can see, is answered ENOSYS, and libraries use
// clone); limits and priorities of the caller itself. What opens files is not looked at, as a
// filter sees no path: that is Landlock's.
//
// Any thread. Error: Internal, libseccomp refused.
absl::StatusOr<Filter> MakeFilter();

// Whether the kernel takes filters.
bool KernelFilters();

// Puts this thread under it, and what it starts. Wants no_new_privs. Async-signal-safe. 0, or
// errno.
int Install(const sock_filter* filter, std::size_t size);

}  // namespace tactus::box
