// Which nodes of a group are not heard, and since when nothing new is known of them.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/time.h"

namespace tactus::job {

// Unheard is not lost. A round needs every member, so a report of a newer one, by whomever, proves
// that all of them lived when it was applied; silence tells something only where somebody who is
// heard could have told of a newer round and did not.
class Contact {
 public:
  // The node is not heard any more, for `reason`.
  void Miss(const std::string& node, const std::string& reason, Instant now);

  // It is heard again, or its workers are gone. False: it was not missed.
  bool Hear(const std::string& node, Instant now);

  // Nobody is waited for there.
  void Forget(const std::string& node) { missed_.erase(node); }

  // A report of this round of the group came.
  void Prove(std::uint64_t round, Instant now);

  // That the group validated after so many rounds came; all of it took part.
  void ProveValidated(std::uint64_t rounds, Instant now);

  bool Missed(const std::string& node) const { return missed_.contains(node); }
  const std::map<std::string, std::string>& missed() const { return missed_; }  // reasons by node

  // Silence lasted for `patience`, also at a second look so long after the first: what was said
  // while the coordinator itself stood still comes within moments of its waking. To be asked when
  // LookDue says so.
  struct Limits {
    Duration patience{};
    Duration second_look{};
  };
  bool Over(const Limits& limits, Instant now);
  Instant LookDue(Duration patience) const;

 private:
  std::map<std::string, std::string> missed_{};
  std::optional<std::uint64_t> newest_{};  // round that somebody reported
  std::uint64_t validated_ = 0;            // rounds before the newest validation; 0: none
  Instant since_{};  // a node came, went or was proven to live: from then on silence counts
  struct Look {
    Instant since{};  // of what was seen
    Instant again{};
  };
  std::optional<Look> look_{};
};

}  // namespace tactus::job
