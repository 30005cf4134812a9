// Seconds that are spent in one round and reported with it, when others may have begun.

#pragma once

#include <cstdint>
#include <map>

namespace tactus::worker {

// One thread.
class SecondsByRound {
 public:
  void Add(std::uint64_t round, double seconds) { seconds_[round] += seconds; }

  // Those of a round that is reported now; 0 where none are known. Rounds come in order: what is
  // left of earlier ones is forgotten.
  double Take(std::uint64_t round) {
    const auto found = seconds_.find(round);
    const double seconds = found == seconds_.end() ? 0 : found->second;
    seconds_.erase(seconds_.begin(), seconds_.upper_bound(round));
    return seconds;
  }

 private:
  std::map<std::uint64_t, double> seconds_;  // of rounds not yet reported: at most two
};

}  // namespace tactus::worker
