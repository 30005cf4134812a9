// What members of a group tell one another while training stands still.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/collective/transport.h"

namespace tactus::sdk {

// What one member has to tell those that do the same.
struct Offer {
  std::uint64_t key = 0;         // of what it does; the least has the first turn
  std::vector<double> values{};  // none: it does nothing more here
};

// What those who offered alike have told, to the last bit the same for each.
struct Gathered {
  std::vector<double> values{};        // of one after the other, by rank
  std::size_t members = 0, place = 0;  // how many they are, and this one among them
};

enum class Turn : std::uint8_t {
  kOwn,     // `gathered` is of this member's offer
  kOthers,  // it was others', whose offer is another one; this member's waits
  kOver,    // nobody has anything to tell
};

// All members call it, with what they have to tell now, until it is over. Those with the least key,
// and the least count of these, have the turn. Waits. Errors: Unavailable, the group was lost.
absl::StatusOr<Turn> TakeTurn(collective::Transport& transport, const Offer& own,
                              Gathered& gathered);

}  // namespace tactus::sdk
