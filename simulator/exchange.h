// The step of a collective in which members send to many at once.
//
// The connections of a member share its way out evenly, as TCP's do: all its messages of a step
// leave side by side and their last bytes together. So it does not matter in which order they were
// posted, and one slow way out holds up every receiver alike. A way shared by several senders takes
// them in the order in which they come to it.

#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "base/time.h"
#include "simulator/network.h"

namespace tactus::simulator {

// Messages of equal size from one member to others.
struct Fan {
  std::size_t sender = 0;                    // rank
  std::span<const std::size_t> receivers{};  // ranks; the sender among them is passed over
  double bytes = 0;                          // of each message
  Instant ready{};
};

// Every member sends a message of equal size to every other.
struct Exchange {
  std::span<const std::size_t> hosts{};  // [members], by rank
  double bytes = 0;                      // of each message
  std::optional<std::size_t> spared{};   // a rank that sends but is sent nothing
};

// Sends the messages of all fans of a step. hosts, arrived [members]: where the members are, and
// when the last message to each arrived, which never becomes sooner; kNever if one never does.
void SendFans(std::span<const std::size_t> hosts, std::span<const Fan> fans,
              std::span<Instant> arrived, Network& network);

// Runs an exchange message by message, n (n - 1) of them.
//
// times [members]: in, when each member sends; out, when it has also received from all others;
// kNever for one that does not.
void ExchangeByMessages(const Exchange& exchange, std::span<Instant> times, Network& network);

// The same in O(members x groups), but for sorting: ways in are given what all senders together
// load on them.
//
// Differs from ExchangeByMessages in two ways, each on its way in or group link by at most
//   - the time of what the members of one host would send to themselves: it is not known at which
//     place in the queue the receiver's own messages, which do not come, are missing;
//   - the time of what one sender sends over a link between groups, all of which counts as coming
//     with its last byte.
// Requires: no message is held back by Network::Block, and no time is kNever.
void ExchangeByLoads(const Exchange& exchange, std::span<Instant> times, Network& network);

}  // namespace tactus::simulator
