#include "agent/worker/standpoint.h"

#include "agent/life/standing.h"

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
  return life::StandingOf(generation_, batches_, transport_);
}

}  // namespace tactus::worker
