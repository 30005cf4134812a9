// The sample ledger: which positions of the epochs are used, and who takes the next ones.
//
// Every member holds the same ledger and feeds it the same facts (the plan and, from each applied
// round, one count a member), so nobody has to be asked which samples are free and a dead member's
// samples fall to the others by themselves.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/engine/samples/permutation.h"
#include "agent/engine/samples/subset.h"

namespace tactus::engine {

// Positions [begin, end), counted through all epochs: epoch e is [e size, (e + 1) size).
struct Stretch {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  std::uint64_t size() const { return end - begin; }
  friend bool operator==(const Stretch&, const Stretch&) = default;
};

// A member's part of a round, in rising order, without overlap.
using Block = std::vector<Stretch>;

// Whether a round may take positions of two epochs. Where the batch is an outcome (delayed) it
// must: waiting for what others left of an epoch would leave everybody idle.
enum class Edges { kKept, kCrossed };

// What a ledger holds but for the rounds that are outstanding: plain data, for checkpoints.
struct LedgerState {
  std::uint64_t epoch_size = 1;     // [samples]
  std::uint64_t fresh = 0;          // no position from here on was ever used
  std::vector<Stretch> returned{};  // unused below `fresh`, in rising order, apart from one another
  Subset subset{};                  // what positions stand for, where they are not all samples

  friend bool operator==(const LedgerState&, const LedgerState&) = default;
};

// Why no ledger over epochs of `epoch_size` samples can go on from a state; empty: it can.
std::string ReasonAgainst(const LedgerState& state, std::uint64_t epoch_size);

// Every position is reserved, then either used or returned, and used exactly once. Rounds may be
// reserved before earlier ones are applied; they are applied in the order of their reservation.
// Not thread-safe.
class SampleLedger {
 public:
  // epoch_size [samples] >= 1; seed chooses the order of every epoch; epochs_max: positions beyond
  // so many epochs are never handed out.
  SampleLedger(std::uint64_t epoch_size, std::uint64_t seed,
               std::optional<std::uint64_t> epochs_max = std::nullopt);

  std::uint64_t epoch_size() const { return epoch_size_; }
  // Epochs of which every position is used.
  std::uint64_t epoch() const;
  // Epochs that will be over once the oldest outstanding round is applied, if it is used whole and
  // nothing of an epoch before is free.
  std::uint64_t EpochBehind() const { return (consumed_ + reserved()) / epoch_size_; }
  // Positions used since the end of the last whole epoch. At most a few beyond epoch_size(), where
  // rounds crossed an edge.
  std::uint64_t consumed() const { return consumed_ - epoch() * epoch_size_; }

  // How the rounds to come are shared out, and whose blocks Reserve returns.
  // shares: samples of one round, one a member, sum >= 1; member: one of them.
  void SetShares(std::vector<std::uint64_t> shares, std::size_t member);

  // Reserves the next round's blocks, one a member, from the lowest free positions, and returns
  // that of this member. The cost does not depend on the number of members: in a group of
  // thousands, each pays for itself alone.
  //
  // With B = sum of the shares b_i and R free positions (kKept: in the epoch of the first one): if
  // R >= B member i gets b_i; otherwise the R are shared in proportion, member i getting
  // floor(R B_{i+1} / B) - floor(R B_i / B), B_i = b_0 + ... + b_{i-1}.
  Block Reserve(Edges edges = Edges::kKept);

  // What Reserve would return now, if all that is outstanding is used whole. Reserves nothing.
  Block Next(Edges edges = Edges::kKept) const;

  // Whether anything is left to reserve, in any epoch.
  bool HasFree() const { return !returned_.empty() || fresh_ < end_; }

  // Rounds reserved and neither applied nor abandoned, and the positions in the oldest.
  std::size_t outstanding() const { return outstanding_.size(); }
  std::uint64_t reserved() const { return outstanding_.empty() ? 0 : outstanding_.front().size; }
  // Members that have some of those. One pass over all members.
  std::uint32_t contributors() const;

  // The oldest outstanding round was applied and member i used the first counts[i] positions of its
  // block; the others are free again. counts: one a member, each at most the block's size.
  void Apply(std::span<const std::uint64_t> counts);

  // The same, with every block used whole.
  void ApplyWhole();

  // No outstanding round was applied: they consumed nothing.
  void Abandon();

  // Of the oldest outstanding round: this member's block, and a number that is another where
  // positions or shares are. Requires: there is one.
  Block OwnBlock() const;
  std::uint64_t RoundId() const;

  // A round that was abandoned goes on, maybe without some of its members.
  // Whether these blocks, one a member, rise from one member to the next and are free.
  bool MayResume(const std::vector<Block>& blocks) const;
  // Reserves them for a round, and returns that of `member`. Requires: MayResume(blocks).
  Block Resume(const std::vector<Block>& blocks, std::size_t member);

  // What is outstanding counts as free: who goes on from this begins those rounds anew.
  LedgerState State() const;

  // Goes on from a state of the same seed, also under other shares. Requires: it fits, nothing is
  // outstanding.
  void Restore(const LedgerState& state);

  // The lowest free positions, so many or all that there are, count as used, by nobody. Requires:
  // nothing is outstanding.
  void PassOver(std::uint64_t positions);

  // From here on positions stand for the samples of this subset, which is as large as an epoch; one
  // that was never chosen stands for all. Requires: ReasonAgainst(subset, epoch_size()) is empty.
  void Choose(Subset subset);
  const Subset& subset() const { return *subset_; }

  // The sample at a position: of the subset, or else in [0, epoch_size).
  std::uint64_t SampleAt(std::uint64_t position) const;
  // How much that counts; see Subset::weights.
  bool weighted() const { return !subset_->weights.empty(); }
  float WeightAt(std::uint64_t position) const;

 private:
  struct Shares {
    std::vector<std::uint64_t> sizes{};  // by member
    std::uint64_t wanted = 0;            // their sum
    std::uint64_t before = 0;            // sum of those before this member's
    std::uint64_t own = 0;               // this member's
  };
  struct Reservation {
    std::vector<Stretch> taken{};
    std::uint64_t size = 0;
    std::shared_ptr<const Shares> shares{};

    // Of the reserved positions, those of members whose shares sum to `prefix`.
    std::uint64_t Edge(std::uint64_t prefix) const;
  };

  Reservation Lowest(Edges edges) const;
  static Block BlockIn(const Reservation& reservation);
  std::uint64_t FreeUpTo(Edges edges, std::uint64_t wanted) const;
  std::vector<Stretch> LowestFree(std::uint64_t count) const;
  void RemoveFree(std::uint64_t count);
  std::vector<Stretch> AllFree() const;
  static std::vector<Stretch> Unused(const Reservation& reservation,
                                     std::span<const std::uint64_t> counts);
  void Return(const std::vector<Stretch>& stretches);
  std::uint64_t PlaceOf(std::uint64_t position) const;

  std::uint64_t epoch_size_;
  std::uint64_t seed_;
  std::uint64_t end_;              // no position from here on is handed out
  std::uint64_t consumed_ = 0;     // positions used, of all epochs
  std::uint64_t fresh_ = 0;        // no position from here on was ever reserved
  std::vector<Stretch> returned_;  // free again, below fresh_, in rising order
  std::deque<Reservation> outstanding_;
  std::shared_ptr<const Shares> shares_;
  std::shared_ptr<const Subset> subset_;  // never null; copies of a ledger share it

  mutable std::uint64_t order_epoch_ = 0;  // of order_
  mutable EpochPermutation order_;
};

// Samples in a block.
std::uint64_t SizeOf(const Block& block);

}  // namespace tactus::engine
