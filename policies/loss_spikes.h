// Training that goes wrong at once: a loss that rises as no noise of it explains, and stays there.

#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "policies/plan.h"

namespace tactus::policies {

struct LossSpike {
  std::uint64_t round = 0;  // the first of those that are too high
  double before = 0;        // what the loss was
  double after = 0;         // and is
};

// Looks at the mean losses L_b of blocks of kBlock rounds, at common parameters:
//
//   m, s  median of log L over the last kKept blocks that were not high, and 1.4826 times the
//         median distance from it: the standard deviation, were it normal
//   high  log L_b > m + max(kDeviations s, log kFactor), where kKnown blocks or more are known
//
// kHigh blocks in a row that are high are a spike. The factor keeps a loss that hardly varies from
// being spoken of for nothing, the deviations one that varies much; a loss that rises slowly takes
// the median along. What a change of the plan does to the loss is the planner's to judge: all is
// forgotten when the plan changes in anything but the members' shares. Losses that are not positive
// have no logarithm: nothing is said of them.
//
// Not for concurrent use. Source: design.
class LossSpikes {
 public:
  static constexpr int kBlock = 8;
  static constexpr std::size_t kKept = 64;
  static constexpr std::size_t kKnown = 16;
  static constexpr double kDeviations = 8;
  static constexpr double kFactor = 1.5;
  static constexpr int kHigh = 4;

  // A round that all reported under `plan`, with its loss; those that are not finite are passed
  // over. Returns the spike that it makes whole; the next one is looked for from the beginning.
  std::optional<LossSpike> Add(std::uint64_t round, double loss, const Plan& plan);

  void Reset();

 private:
  std::optional<LossSpike> Close(std::uint64_t first_round, double mean);

  Plan plan_;
  std::deque<double> calm_;  // log L of blocks that were not high, oldest first
  int rounds_ = 0;           // of the present block
  double sum_ = 0;           // of their losses
  std::uint64_t first_ = 0;  // of them
  int high_ = 0;             // blocks in a row
  std::uint64_t since_ = 0;  // first round of these
};

}  // namespace tactus::policies
