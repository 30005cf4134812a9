// Whether members hold what they should: after each round all have the same parameters, so that one
// whose memory or arithmetic has gone wrong in silence differs from the others.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "agent/collective/transport.h"
#include "base/time.h"

namespace tactus::engine {

struct ComparisonOptions {
  // Off where members of unlike devices may differ in last bits, and nobody is wrong.
  bool on = true;
  double share = 0.005;                  // of the training time, that all together take, > 0
  Duration least_between = Seconds(10);  // of training, however little one takes
};

// When members compare; by rank 0's clock, which the others follow. One in a group.
class Comparisons {
 public:
  // trained: when the group begins.
  Comparisons(const ComparisonOptions& options, Duration trained)
      : options_(options), last_(trained) {}

  bool Due(Duration trained) const;
  // One was made up to `trained`, and training stood still for `cost`.
  void Take(Duration trained, Duration cost);

 private:
  const ComparisonOptions options_;
  Duration last_;    // the end of the last one
  Duration cost_{};  // of it
};

// What a member says of its parameters.
struct HashedParameters {
  std::uint64_t hash = 0;
  bool finite = true;  // each of them

  friend bool operator==(const HashedParameters&, const HashedParameters&) = default;
};

// What the members' hashes say of them.
struct Comparison {
  std::size_t right = 0;               // of those who hold what is taken for right the lowest rank
  std::vector<std::uint32_t> wrong{};  // ranks, ascending
  // More than half of the members hold it. Else it is what most hold, of as many what
  // is finite, of these the lowest rank's; and nobody knows who is wrong.
  bool majority = true;
};

// hashes: by rank, at least one.
Comparison JudgeHashes(std::span<const HashedParameters> hashes);

// hashes [members] <- what each put in. Waits; returns how it ended.
collective::Completion Exchange(collective::Transport& transport, const HashedParameters& own,
                                std::vector<HashedParameters>& hashes);

}  // namespace tactus::engine
