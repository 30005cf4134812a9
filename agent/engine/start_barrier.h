// When a round whose length is an outcome ends: as soon as everybody is ready for the next.

#pragma once

#include <memory>
#include <optional>

#include "agent/collective/transport.h"
#include "base/time.h"

namespace tactus::engine {

// A barrier that members come to with READY and, while it is under way, go on computing; START is
// its end. Of the collectives of a group it has the same place on all members: posted behind what
// they have combined, and over before they combine anything else. One thread.
//
// Source: [abs-sgd], algorithm 1: READY and START.
class StartBarrier {
 public:
  bool posted() const { return barrier_ != nullptr; }
  // READY. Requires: not posted.
  void Post(collective::Transport& transport) { barrier_ = transport.StartBarrier(); }

  // START, or how the group failed; nothing: not yet. Waits for it if the member has nothing more
  // to compute. last: when its latest batch was over, to which START is dated if it came meanwhile.
  std::optional<collective::Completion> Look(Instant last, bool wait);

  // Of a group that is lost.
  void Abandon() { barrier_.reset(); }

 private:
  std::unique_ptr<collective::Collective> barrier_;
};

}  // namespace tactus::engine
