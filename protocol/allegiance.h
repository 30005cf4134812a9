// Which coordinator an agent obeys.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tactus::protocol {

// Who a coordinator is: its store, and which of the processes that began from it.
struct CoordinatorIdentity {
  std::string server{};     // of the store, drawn when that was made; empty: not said
  std::uint64_t epoch = 0;  // grows with every start from it; 0: not said
  friend bool operator==(const CoordinatorIdentity&, const CoordinatorIdentity&) = default;
};

// An agent process obeys the coordinator whose workers it runs. Another one, that of a wrong or an
// empty state folder, knows none of them and would have them all stopped; an older epoch, that of a
// backup or of a process that was thought dead, knows only some. Without workers there is nothing
// to lose, and the agent takes up with whoever answers. One thread.
class Allegiance {
 public:
  // Why `coordinator` is not to be obeyed; empty: it is, from now on.
  std::string Meet(const CoordinatorIdentity& coordinator, bool has_workers) {
    if (has_workers && obeyed_) {
      const std::string why = Objection(*obeyed_, coordinator);
      if (!why.empty()) return why;
    }
    obeyed_ = coordinator;
    return {};
  }

  // Unset: nobody yet.
  const std::optional<CoordinatorIdentity>& obeyed() const { return obeyed_; }

  // What speaks against `coordinator` for the workers of `obeyed`; empty: nothing.
  static std::string Objection(const CoordinatorIdentity& obeyed,
                               const CoordinatorIdentity& coordinator) {
    if (coordinator.server != obeyed.server) {
      return "the coordinator is another one, of store " + Shown(coordinator.server) +
             "; the workers here are those of store " + Shown(obeyed.server);
    }
    if (coordinator.epoch >= obeyed.epoch) return {};
    return "the coordinator is in epoch " + std::to_string(coordinator.epoch) +
           "; the workers here are those of epoch " + std::to_string(obeyed.epoch);
  }

 private:
  static std::string Shown(const std::string& server) {
    return server.empty() ? "(unknown)" : server.substr(0, 8);
  }

  std::optional<CoordinatorIdentity> obeyed_{};
};

}  // namespace tactus::protocol
