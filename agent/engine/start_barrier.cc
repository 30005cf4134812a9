#include "agent/engine/start_barrier.h"

#include "base/check.h"

namespace tactus::engine {

std::optional<collective::Completion> StartBarrier::Look(Instant last, bool wait) {
  TACTUS_CHECK(posted());
  const bool running = barrier_->Poll() == collective::Progress::kRunning;
  if (running && !wait) return std::nullopt;
  collective::Completion start = barrier_->Wait();
  barrier_.reset();
  // Who need not wait goes on from its own last batch: it looked only now.
  if (!running) start.at = last;
  return start;
}

}  // namespace tactus::engine
