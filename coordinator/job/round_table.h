// Rounds of which some members' reports are still to come.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
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
  // round's reports by rank when this was the last one, else null; valid until the next call.
  const std::vector<policies::Report>* Add(const policies::Report& report);

  std::size_t size() const { return rounds_.size(); }

 private:
  struct Round {
    std::vector<policies::Report> reports{};  // by rank
    std::vector<bool> reported{};
    std::uint32_t count = 0;
  };

  Round& Open(std::uint64_t round);

  const std::uint32_t members_;
  std::map<std::uint64_t, Round> rounds_;
  Round complete_;  // the last one; its memory serves the next
};

}  // namespace tactus::job
