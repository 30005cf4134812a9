// How much processor time this process may have.

#pragma once

#include <string>

namespace tactus::runtime {

// Cores that this process may use at once: those of the machine, or as many as its control groups'
// quota of processor time makes up, rounded down, where that is less; at least 1. A container with
// a limit of its own sees all cores of its host, and computes slower with a thread on each: they
// wait for one another while the quota is used up. root: of the file system, another one in tests.
// Blocking.
unsigned UsableCores(unsigned cores, const std::string& root = "");

}  // namespace tactus::runtime
