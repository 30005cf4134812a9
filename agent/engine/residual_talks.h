// How what encodings have left with the members comes to others of them: all of it to rank 0, for a
// checkpoint, and that of who leaves to those who stay.

#pragma once

#include <cstdint>
#include <vector>

#include "agent/collective/transport.h"
#include "agent/engine/combine/encodings.h"
#include "agent/engine/combine/residuals.h"
#include "cuda/device.h"

namespace tactus::engine {

// Both wait and return how it ended. All members call them in the same place of their collectives,
// between two rounds, after one with the same encoding.

// parts <- by rank, on rank 0; on the others it stays empty.
collective::Completion GatherResiduals(Encodings& encodings, cuda::Device& device,
                                       collective::Transport& transport,
                                       std::vector<Residuals>& parts);

// leaving: ranks, as far as this member knows; who leaves is who any of them knows of, and with it
// its replica, of `replica_members` members. Those who stay have theirs, one replica after the
// other and place by place, and who leaves has none, also where it failed on the way: what counted
// twice would be worse than what is lost. Where nobody stays nothing changes.
collective::Completion HandOverResiduals(Encodings& encodings, cuda::Device& device,
                                         collective::Transport& transport,
                                         const std::vector<std::uint32_t>& leaving,
                                         std::size_t replica_members);

}  // namespace tactus::engine
