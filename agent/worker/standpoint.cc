#include "agent/worker/standpoint.h"

namespace tactus::worker {

void Standpoint::Enter(std::uint64_t generation, collective::Transport& transport) {
  const threads::MutexLock lock(mutex_);
  generation_ = generation;
  transport_ = &transport;
}

void Standpoint::Leave() {
  const threads::MutexLock lock(mutex_);
  transport_ = nullptr;
}

StandingMessage Standpoint::Now() {
  const threads::MutexLock lock(mutex_);
  StandingMessage standing{.generation = generation_, .batches = batches_};
  if (transport_ == nullptr) return standing;
  const collective::Awaiting awaiting = transport_->awaiting();
  standing.bytes = awaiting.bytes_moved;
  standing.waits = awaiting.collective;
  standing.awaits.assign(awaiting.peers.begin(), awaiting.peers.end());
  return standing;
}

}  // namespace tactus::worker
