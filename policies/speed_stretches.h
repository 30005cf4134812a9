// How fast the workers of a group compute, as means over stretches of time.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/fields.h"
#include "policies/plan.h"

namespace tactus::policies {

// What one stretch of rounds under one plan says.
struct SpeedStretch {
  std::uint64_t plan_version = 0;
  double seconds = 0;                  // of training
  double samples = 0;                  // of all ranks
  std::vector<double> speeds{};        // [samples/s] of computing, one a rank, > 0 and finite
  std::vector<std::uint32_t> sizes{};  // [samples] of a step, one a rank, as they were in force
};

// Folds reports into stretches of kStretchSeconds, or of one round where that is longer: noise of
// machines lasts for a time, not for a number of rounds. The first round under a plan is left out
// unless it has kStepsMin steps: it builds what later ones reuse. Reports that say nothing (no
// samples, no measurable time, a rank that is not there) are ignored.
//
// Pure and total; not thread-safe.
//
// Source: design.
class SpeedStretches {
 public:
  static constexpr double kStretchSeconds = 0.1;
  static constexpr std::uint32_t kStepsMin = 5;
  // What a clock can measure; other times are ignored. [s]
  static constexpr double kSecondsMin = 1e-9;
  static constexpr double kSecondsMax = 1e9;

  // A (new) group.
  void Start(std::uint32_t members);

  std::uint32_t members() const { return static_cast<std::uint32_t>(open_.size()); }

  // What comes next is measured by itself: the stretch that is under way is left out.
  void Break();

  // Folds one worker's report in. Returns the stretch that it completes.
  std::optional<SpeedStretch> Observe(const Report& report);

  friend void Fields(auto& archive, Of<SpeedStretches> auto& stretches) {
    archive("open", stretches.open_);
    archive("version", stretches.version_);
  }
  friend bool Sound(const SpeedStretches& stretches);

 private:
  struct Open {  // the sums of one rank's rounds in the stretch that is under way
    double samples = 0;
    double steps = 0;
    double compute = 0;  // [s]
    double seconds = 0;
    bool first_left_out = false;

    friend void Fields(auto& archive, Of<Open> auto& open) {
      archive("samples", open.samples);
      archive("steps", open.steps);
      archive("compute", open.compute);
      archive("seconds", open.seconds);
      archive("first_left_out", open.first_left_out);
    }
  };

  // Whether there are samples, and a time to divide them by, if any time passed.
  static bool Divisible(const Open& open);
  SpeedStretch Close();

  std::vector<Open> open_;  // one a rank
  std::uint64_t version_ = 0;
};

}  // namespace tactus::policies
