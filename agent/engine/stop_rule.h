// When training ends: the conditions of a job file's `stop`.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "agent/engine/validations.h"
#include "base/time.h"
#include "policies/loss_window.h"

namespace tactus::engine {

// The first condition that holds ends the job. At least one is set by a job file.
struct StopOptions {
  std::optional<double> train_loss{};       // mean of a full LossWindow at or below
  std::optional<std::uint32_t> epochs{};    // completed, >= 1
  std::optional<std::uint64_t> rounds{};    // applied, >= 1
  std::optional<double> steps{};            // progress in base steps, > 0
  std::optional<Duration> time{};           // since the first round's start, > 0
  std::optional<double> validation_loss{};  // of the last validation, at or below
  std::optional<std::uint32_t> patience{};  // validations in a row without a new best, >= 1

  friend bool operator==(const StopOptions&, const StopOptions&) = default;
};

// What is known at a round's edge, equal on all members.
struct StopFacts {
  std::uint64_t rounds = 0;
  std::uint64_t epochs = 0;
  double steps = 0;                              // progress; see policies/learning_rate.h
  const policies::LossWindow* losses = nullptr;  // never null
  ValidationState validation{};
};

// Why training ends here, for a person, from facts that all members share; empty: it goes on. Time
// is not among them: clocks differ, so the first member votes (RoundEngine).
std::string ReasonToStop(const StopOptions& options, const StopFacts& facts);

}  // namespace tactus::engine
