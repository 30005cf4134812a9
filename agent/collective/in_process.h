// A group of threads of one process: the transport for tests and for simulated clusters.

#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "agent/collective/transport.h"

namespace tactus::collective {

// One transport for each of `size` members, each to be used by its own thread. Sums are taken in
// rank order by the member that arrives last, so all members get the same bits whatever the order
// of arrival. now: the present, any thread.
std::vector<std::unique_ptr<Transport>> MakeInProcessGroup(int size, std::function<Instant()> now);

}  // namespace tactus::collective
