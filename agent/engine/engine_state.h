// What training carries over from one group to the next: all but the parameters and the plan.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agent/engine/combine/residuals.h"
#include "agent/engine/one_bit_state.h"
#include "agent/engine/samples/ledger.h"
#include "agent/engine/validations.h"
#include "base/time.h"
#include "policies/learning_rate.h"
#include "policies/loss_window.h"

namespace tactus::engine {

// Plain data, of no group's size. Flat buffers [cuda::FlatLength(segments)], padding zero.
struct EngineState {
  std::uint64_t rounds = 0;  // applied
  std::uint64_t samples_global = 0;
  std::uint64_t steps = 0;             // of the optimizer
  std::uint32_t nonfinite_rounds = 0;  // in a row, at the end
  Duration train_time{};
  policies::LearningRate::State learning_rate{};
  LedgerState ledger{};
  ValidationState validation{};
  std::vector<policies::RoundLosses> losses{};  // of a LossWindow, oldest first
  std::vector<std::vector<float>> optimizer{};  // buffers as Optimizer::State has them
  std::vector<float> block_momentum{};          // empty: zero
  OneBitState one_bit{};
  std::vector<float> fresh_moment{};  // as Optimizer::FreshMoment has it
  // Of the encoding in force: this member's own. A member that has none, or those of another
  // encoding, begins with none.
  Residuals residuals{};

  friend bool operator==(const EngineState&, const EngineState&) = default;
};

// What a state must fit.
struct StateFit {
  std::size_t length = 0;                          // cuda::FlatLength(segments)
  std::size_t optimizer_buffers = 0;               // StateBuffers(optimizer)
  std::size_t segments = 0;                        // how many
  bool lamb = false;                               // the optimizer is
  std::uint64_t train_samples = 1;                 // in an epoch
  std::uint64_t data_samples = 0;                  // a subset is of; 0: not known
  std::map<std::string, std::size_t> residuals{};  // lengths, by name, of those that are of use
};

// Why an engine cannot go on from a state, for a person, whatever the state holds; empty: it can.
std::string ReasonAgainst(const EngineState& state, const StateFit& fit);

}  // namespace tactus::engine
