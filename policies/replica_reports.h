// What the members of a replica report, as one measurement: they pass over their samples together.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "policies/plan.h"

namespace tactus::policies {

// Where several members make one replica, each brings samples and all of them compute until the
// last is done; what one of them reports says nothing of it by itself. So their reports of a round
// are held until the last is there, and handed on with what they measured together:
//
//   samples_i = sum_j samples_j / members, the rest to the lowest ranks
//   compute_seconds_i = max_j compute_seconds_j
//
// over the members j of the replica, so that a member's share of the replica's speed is what its
// report gives, whichever of them had the samples of an epoch's end. All else stays each member's
// own.
//
// Rounds that some never report are forgotten, the oldest first. Pure and total; not thread-safe.
//
// Source: design.
class ReplicaReports {
 public:
  static constexpr std::size_t kOpenRoundsMax = 16;  // of a replica, reported by some members

  // members: of a replica, by consecutive ranks, >= 1; 1: each report is handed on as it is.
  explicit ReplicaReports(std::uint32_t members) : members_(members) {}

  // A (new) group: what is held of the former one is forgotten.
  void Start() { open_.clear(); }

  // Takes a report in. Returns those that are complete by it, by rank: none, or one a member. A
  // report that is repeated takes the former one's place. The caller leaves out ranks that the
  // group does not have.
  std::vector<Report> Observe(const Report& report);

 private:
  // Of a replica's round, by place; nothing: not there yet.
  using Held = std::vector<std::optional<Report>>;

  const std::uint32_t members_;
  std::map<std::uint32_t, std::map<std::uint64_t, Held>> open_;  // by replica, by round
};

}  // namespace tactus::policies
