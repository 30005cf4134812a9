// Waiting by training time, where rounds are short, and by rounds where they are long.

#pragma once

#include "base/fields.h"
#include "policies/observations.h"

namespace tactus::policies {

// A wait that began at some round. Noise lasts for seconds, so a wait of rounds alone is none where
// they last milliseconds; what is learned comes by rounds, so seconds alone are none where they
// last minutes.
struct TrainingWait {
  double seconds = 0;  // training time when it began
  int rounds = 0;      // since then

  static TrainingWait From(const Observations& seen) { return {.seconds = seen.seconds()}; }

  bool Over(const Observations& seen, double seconds_least, int rounds_least) const {
    return rounds >= rounds_least && seen.seconds() - seconds >= seconds_least;
  }

  friend void Fields(auto& archive, Of<TrainingWait> auto& wait) {
    archive("seconds", wait.seconds);
    archive("rounds", wait.rounds);
  }
};

}  // namespace tactus::policies
