// When training ends: the conditions of a job file's `stop`, and the running mean of the loss.

#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "base/time.h"

namespace tactus::engine {

// The first condition that holds ends the job. At least one is set by a job file.
struct StopOptions {
  std::optional<double> train_loss{};     // mean of a LossWindow at or below
  std::optional<std::uint32_t> epochs{};  // completed, >= 1
  std::optional<std::uint64_t> rounds{};  // applied, >= 1
  std::optional<double> steps{};          // progress in base steps, > 0
  std::optional<Duration> time{};         // since the first round's start, > 0
};

// The samples-weighted mean loss of the latest rounds that have kSteps steps together: rounds of
// many local steps are long, and so many of them would look far back.
class LossWindow {
 public:
  static constexpr std::uint64_t kSteps = 20;

  struct Entry {
    double loss_sum = 0;
    double samples = 0;
    std::uint64_t steps = 0;

    friend bool operator==(const Entry&, const Entry&) = default;
  };

  // A round's. steps: of one member, >= 1.
  void Add(double loss_sum, double samples, std::uint64_t steps);
  bool full() const { return steps_ >= kSteps; }
  double Mean() const;  // 0 before the first round

  // The rounds it looks at, oldest first; added anew in that order they make an equal window.
  const std::deque<Entry>& rounds() const { return rounds_; }

 private:
  std::deque<Entry> rounds_;  // at most kSteps
  std::uint64_t steps_ = 0;   // of them
};

// What is known at a round's edge, equal on all members.
struct StopFacts {
  std::uint64_t rounds = 0;
  std::uint64_t epochs = 0;
  double steps = 0;                    // progress; see policies/learning_rate.h
  const LossWindow* losses = nullptr;  // never null
};

// Why training ends here, for a person, from facts that all members share; empty: it goes on. Time
// is not among them: clocks differ, so the first member votes (RoundEngine).
std::string ReasonToStop(const StopOptions& options, const StopFacts& facts);

}  // namespace tactus::engine
