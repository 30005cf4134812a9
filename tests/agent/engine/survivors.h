// Groups of members that live through several, for the engine's tests.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "agent/collective/transport.h"
#include "agent/engine/round_engine.h"
#include "tests/agent/engine/survivor.h"

namespace tactus::engine {

// Of so many, in one process.
std::vector<std::unique_ptr<collective::Transport>> NewGroup(std::size_t size);

using AfterEach = std::function<void(RoundEngine& engine, collective::Transport& transport)>;

// What happens in one group.
struct Stage {
  policies::Plan plan{};
  Survivor::BeforeStep before_step = [](RoundEngine&, collective::Transport&) { return true; };
  AfterEach after_step = [](RoundEngine&, collective::Transport&) {};
  bool told_of_rounds = true;
};

// All members of a stage on threads of their own; who is dead afterwards is taken out.
void Train(std::vector<Survivor*>& members, const Stage& stage);
void TrainOver(std::vector<std::unique_ptr<collective::Transport>> transports,
               std::vector<Survivor*>& members, const Stage& stage);

class Members {
 public:
  explicit Members(const EngineOptions& options, std::size_t count = 3,
                   std::size_t length = Survivor::kLength);

  std::vector<Survivor*> Everybody() const;
  Survivor& operator[](std::size_t i) const { return *all_[i]; }

 private:
  std::vector<std::unique_ptr<Survivor>> all_;
};

// Ends the group once, in the round after `rounds`, where `rank` is at its work.
Survivor::BeforeStep AbortIn(std::uint64_t rounds, int rank);
Survivor::BeforeStep DieIn(std::uint64_t rounds, int rank);

// So many batches of a round, by rank; of a step there may be several.
using Batches = std::vector<std::uint64_t>;
inline constexpr std::uint64_t kAllBatches = 1000;  // of any round

// Each gives the group up after so many of its batches of the round after `rounds`; who takes all
// waits for what is combined.
AfterEach LoseAfter(std::uint64_t rounds, const Batches& batches);

// A group of which some do not hear what came of a round.
struct Tear {
  std::uint64_t rounds = 0;  // before it
  std::vector<bool> ranks{};
};
void TrainTorn(std::vector<Survivor*>& members, Stage stage, const Tear& tear);

// They hold the same, and nobody has a window under way.
void ExpectAlike(const std::vector<Survivor*>& members);

}  // namespace tactus::engine
