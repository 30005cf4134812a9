// Where a worker stands, for who asks why its group does not get on.

#pragma once

#include <cstdint>

#include "agent/collective/transport.h"
#include "protocol/worker_messages.h"

namespace tactus::life {

// Without what is the agent's. transport: of its group; null: it is in none. Any thread, while the
// transport lives.
protocol::StandingMessage StandingOf(std::uint64_t generation, std::uint64_t batches,
                                     collective::Transport* transport);

}  // namespace tactus::life
