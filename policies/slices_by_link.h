// Slices of sums by what links were measured to carry.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/fields.h"
#include "policies/axis_policy.h"

namespace tactus::policies {

// The rate of a member's link is the least of what it sends to all others together, and of what
// they send to it: where a link is the slowest on each way that uses it, that is what it carries.
// Ways that are short of nothing are as fast as others' links, which is as much as slices have to
// know of them. The median of the latest rounds that all told of counts.
//
// Other slices are tried where the transfer of a round should become shorter by kShorter and teach
// kGainMin more in a second, and kept where the one that is measured then is shorter by half of
// what was promised: training is the same, so that nothing else has to be judged. What did not pay
// is tried again when the training time is kPauseRegretted times as long, others are looked for
// when it is kPause times.
//
// Only a worker that tells of its links knows slices: where one does not, there are none.
//
// Source: design.
class SlicesByLink {
 public:
  static constexpr std::size_t kRounds = 5;
  static constexpr double kShorter = 0.1;
  static constexpr double kGainMin = 0.05;
  static constexpr double kPause = 1.5;
  static constexpr double kPauseRegretted = 3;

  // A (new) group of so many, or one that goes on under a plan of another's: what was on trial is
  // over.
  void Start(std::size_t members);

  void Observe(const Report& report);

  // Another plan's slices, or nothing; asked while nothing else is on trial. base_batch: [samples]
  std::optional<Proposal> Decide(const Situation& situation, double base_batch);

  bool OnTrial() const { return on_trial_; }

  friend void Fields(auto& archive, Of<SlicesByLink> auto& policy) {
    archive("members", policy.members_);
    archive("rates", policy.rates_);
    archive("tried", policy.tried_);
    archive("former", policy.former_);
    archive("on_trial", policy.on_trial_);
    archive("transfer_before", policy.transfer_before_);
    archive("transfer_promised", policy.transfer_promised_);
    archive("due", policy.due_);
  }
  friend bool Sound(const SlicesByLink& policy) { return policy.RatesAreSound(); }

 private:
  // By rank, the medians; nothing while too little is known. [bytes/s]
  std::optional<std::vector<double>> Rates() const;
  bool RatesAreSound() const;
  std::optional<Proposal> Judge(const Situation& situation);

  std::size_t members_ = 0;
  std::vector<std::vector<double>> told_;  // by rank, since all had told; empty: has not. [bytes/s]
  std::deque<std::vector<double>> rates_;  // the latest, by rank [bytes/s]
  std::vector<std::uint32_t> tried_;       // the slices on trial
  std::vector<std::uint32_t> former_;      // before
  bool on_trial_ = false;
  double transfer_before_ = 0;    // of a round [s]
  double transfer_promised_ = 0;  // [s]
  double due_ = 0;                // training time from which on others may be tried
};

}  // namespace tactus::policies
