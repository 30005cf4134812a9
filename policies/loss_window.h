// The training loss now, at parameters that all members have in common.

#pragma once

#include <cstdint>
#include <deque>

#include "base/fields.h"
#include "policies/plan.h"

namespace tactus::policies {

// A sum of losses over so many samples.
struct LossSum {
  double sum = 0;
  double samples = 0;

  double Mean() const { return samples > 0 ? sum / samples : 0; }
  friend bool operator==(const LossSum&, const LossSum&) = default;
};
void Fields(auto& archive, Of<LossSum> auto& loss) {
  archive("sum", loss.sum);
  archive("samples", loss.samples);
}

// What a round's samples lost, by the parameters that they met.
struct RoundLosses {
  LossSum common{};         // those that all members had
  LossSum local{};          // members' own, between two exchanges: steps 2 and later of a window
  std::uint64_t steps = 1;  // of one member, >= 1

  friend bool operator==(const RoundLosses&, const RoundLosses&) = default;
};
void Fields(auto& archive, Of<RoundLosses> auto& round) {
  archive("common", round.common);
  archive("local", round.local);
  archive("steps", round.steps);
}

// As a report of a round has them; one that says nothing of steps counts as one of a step.
RoundLosses LossesOf(const Report& report);

// The mean loss over the latest rounds that have kSteps steps together: rounds of many local steps
// are long, and so many of them would look far back.
//
// Between two exchanges members drift apart, and what each of them loses there is above the loss of
// their mean, which is what training makes: only a window's first step tells the latter, and a
// single one is noisy. So the losses of all steps are used, less what the drift adds to them as the
// first steps of the latest windows tell:
//
//   loss  = sum_k (f_k n_k + (l_k - gamma tau_k) m_k) / sum_k (n_k + m_k)   over the latest rounds
//   gamma = sum_j (l_j - f_j) / sum_j tau_j                   over the windows of kRounds rounds
//
// f_k, n_k  mean loss at common parameters, over so many samples
// l_k, m_k  mean loss at members' own, over so many samples
// tau_k     steps of the round
//
// In rounds of one step it is the mean of them all. What a window loses by drift, and what it
// gains by training between its first step and the others, is taken to grow with its length.
//
// Source: design; a control variate.
class LossWindow {
 public:
  static constexpr std::uint64_t kSteps = 20;
  static constexpr std::size_t kRounds = 20;     // kept
  static constexpr std::size_t kWindowsMin = 5;  // of which the drift is known

  void Add(const RoundLosses& round);
  // Whether it has kSteps steps and, where there are windows among them, the drift is known.
  bool full() const;
  double Mean() const;  // 0 before the first round

  // What it looks at, oldest first, at most kRounds; added anew in that order they make an equal
  // window.
  const std::deque<RoundLosses>& rounds() const { return rounds_; }

  friend void Fields(auto& archive, Of<LossWindow> auto& window) {
    archive("rounds", window.rounds_);
  }
  friend bool Sound(const LossWindow& window) { return window.rounds_.size() <= kRounds; }

 private:
  double DriftOfAStep() const;
  std::size_t Latest() const;  // where the rounds that are averaged begin

  std::deque<RoundLosses> rounds_;
};

}  // namespace tactus::policies
