// Rounds of which some members' reports are still to come.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "policies/plan.h"

namespace tactus::job {

// Gathers reports until a round has one of every member. Members report their rounds in order, so a
// completed round ends the wait for all earlier ones: those lost a report with a former
// coordinator.
class RoundTable {
 public:
  static constexpr std::size_t kRoundsMax = 4096;  // incomplete; the oldest is dropped

  explicit RoundTable(std::uint32_t members) : members_(members) {}

  // Adds a report with rank < members; a second one of a rank for a round does nothing. Returns the
  // round's reports by rank when this was the last one.
  std::optional<std::vector<policies::Report>> Add(const policies::Report& report);

  std::size_t size() const { return rounds_.size(); }

 private:
  const std::uint32_t members_;
  std::map<std::uint64_t, std::map<std::uint32_t, policies::Report>> rounds_;  // by rank
};

}  // namespace tactus::job
