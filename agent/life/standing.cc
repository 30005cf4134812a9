#include "agent/life/standing.h"

namespace tactus::life {

protocol::StandingMessage StandingOf(std::uint64_t generation, std::uint64_t batches,
                                     collective::Transport* transport) {
  protocol::StandingMessage standing{.generation = generation, .batches = batches};
  if (transport == nullptr) return standing;
  const collective::Awaiting awaiting = transport->awaiting();
  standing.bytes = awaiting.bytes_moved;
  standing.waits = awaiting.collective;
  standing.awaits.assign(awaiting.peers.begin(), awaiting.peers.end());
  return standing;
}

}  // namespace tactus::life
