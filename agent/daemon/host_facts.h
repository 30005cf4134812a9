// What the system knows of this host that a worker's place depends on.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tactus::agent {

// The network interface whose name or address (IPv4 or IPv6, in digits) this is; empty: none of
// this host.
std::string InterfaceOf(const std::string& address);

// The processors next to a PCI device, on its NUMA node, in order. Empty: not known, or the host is
// all one node.
//
// sysfs       "/sys", where the kernel tells
// pci_bus_id  "00000000:3B:00.0" as NVML has it, "0000:3b:00.0" as the kernel has
std::vector<unsigned> CpusNear(const std::string& sysfs, const std::string& pci_bus_id);

// Where as many devices as this process may use processors share them, the one of this device: left
// alone, the kernel moves a worker to the processor of the peer whose message woke it, and the two
// share that. Empty: it knows better.
std::vector<unsigned> OwnCore(std::size_t device, std::size_t devices);

// What OpenBLAS calls the kernels for the widest vectors of this host's processor, of those that
// each of its releases has, for OPENBLAS_CORETYPE; empty: it is to choose. It knows processors by
// their model number, and takes kernels of 2004, a quarter as fast, for one that is newer than it.
std::string OpenBlasKernels();

}  // namespace tactus::agent
