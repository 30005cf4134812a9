// Leaders: which member the others are pulled towards, found by how low its training loss is.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace tactus::engine {

// What a member says of itself when leaders are found.
struct LeaderScore {
  double loss = 0;          // per sample, of its latest steps
  std::uint32_t steps = 0;  // that the loss is of, at most the window's length
  bool sound = true;        // its parameters are finite
};

struct Leaders {
  std::vector<std::optional<std::size_t>> of_nodes{};  // by rank: the leader of that rank's node
  std::optional<std::size_t> of_group{};
};

// Whoever has the least loss leads, of its node and of all, by one look at all scores: so the
// leader of all leads its node, too. Of equal losses the lowest rank's. Nobody can lead whose loss
// is no number, whose parameters are not finite, or whose loss is of fewer than `least_steps`.
//
// scores: by rank; nodes: the node of each rank, by any numbers.
//
// Source: [lsgd]. Differs: there a window that is not full yet counts as if it held zeros, so that
// who has trained least leads.
Leaders FindLeaders(std::span<const LeaderScore> scores, std::span<const std::uint32_t> nodes,
                    std::uint32_t least_steps);

// Local steps that each member takes until the next pull: shares of period times members, by how
// many each took in the window before, which lasted equally long for all. So the period is what
// members take on average, and who is slow takes fewer. At least 1 for who takes part; 0 else.
//
// before: steps by rank; taking_part: by rank. Where nobody took any, each takes the period.
std::vector<std::uint64_t> StepsUntilPull(std::span<const std::uint64_t> before,
                                          const std::vector<bool>& taking_part,
                                          std::uint32_t period);

// The losses of a member's latest steps. One thread.
class RecentLosses {
 public:
  explicit RecentLosses(std::uint32_t length) : length_(length) {}

  // loss: the sum over so many samples. A step that was not taken, as its loss or its gradient was
  // not finite, brings nothing.
  void Add(double loss, std::uint64_t samples, bool taken);

  LeaderScore Score() const;
  // Steps in a row that were not taken, up to the latest.
  std::uint32_t skipped() const { return skipped_; }
  void Restart() { *this = RecentLosses(length_); }

 private:
  struct Step {
    double loss = 0;
    std::uint64_t samples = 0;
  };
  std::uint32_t length_;
  std::deque<Step> steps_;
  std::uint32_t skipped_ = 0;
};

}  // namespace tactus::engine
