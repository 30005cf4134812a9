// Scenarios drawn from a seed: small clusters, jobs and faults, to hold the cores to their
// promises.

#pragma once

#include <cstdint>

#include "simulator/simulation.h"

namespace tactus::simulator {

// One to four hosts with one to three devices each, one to three jobs of several priorities, up to
// five faults, every model of devices, links and losses; now and then a user pauses a job for a
// while, takes a decision back or drains a host, or an agent finds a device broken; members of some
// jobs follow leaders, hold parts of the optimizer's state, or train on a part of the samples. All
// jobs fit the cluster and every fault but a pause ends, so all jobs come to an end. Equal seeds
// give equal scenarios.
Scenario RandomScenario(std::uint64_t seed);

}  // namespace tactus::simulator
