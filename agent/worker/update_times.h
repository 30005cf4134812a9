// How long updates take, by the round whose end they follow.

#pragma once

#include <cstdint>

#include "agent/worker/seconds_by_round.h"
#include "base/time.h"

namespace tactus::worker {

// A delayed round's end is followed by the update of the round before it, with which it is not
// reported; of the last one two are applied in one step. So the time belongs to the round that
// ended, not to the one that was applied. One thread.
class UpdateTimes {
 public:
  // `edge` of the engine, before its first step.
  explicit UpdateTimes(Instant edge) : edge_(edge) {}

  // After the engine's step of `round`: where its edge is, and that the next samples can be read.
  void Note(std::uint64_t round, Instant edge, Instant now);

  // Seconds after the end of `round`, which is reported now; 0 where they are not known. Rounds
  // come in order.
  double Take(std::uint64_t round) { return seconds_.Take(round); }

 private:
  Instant edge_;
  SecondsByRound seconds_;
};

}  // namespace tactus::worker
