// Workers that load beside a group that trains, to be in the next one.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/id.h"
#include "base/time.h"
#include "coordinator/job/actions.h"

namespace tactus::job {

struct Joiner {
  MemberRecord member{};
  std::optional<ReadyMessage> ready{};  // nothing: it still loads
  std::uint64_t rounds = 0;             // that it applied, as a member of a former group
};

// Those that were started together, less whom the group has taken in or who is gone; and spares:
// who is ready, and waits for a member to be lost. A worker is in it once. Who is ready waits for
// the others, but no longer than as long again as the first took to load: else one slow disk would
// hold up all. One thread.
class Joiners {
 public:
  // Requires: nobody is coming().
  void Start(const std::vector<MemberRecord>& members, Instant now);

  bool empty() const { return coming_.empty() && spares_.empty(); }
  bool Has(WorkerId worker) const;
  const std::vector<Joiner>& coming() const { return coming_; }  // as they were started
  const std::vector<Joiner>& spares() const { return spares_; }  // the fastest first
  std::vector<MemberRecord> members() const;                     // all, spares behind

  // It has loaded; said again, it changes nothing. Requires: Has(worker).
  void SetReady(WorkerId worker, const ReadyMessage& ready, Instant now);

  // It is none any more. Requires: Has(worker).
  MemberRecord Remove(WorkerId worker);
  void Clear();

  // When a group is to take in those who come and are ready; nothing: nobody is.
  std::optional<Instant> Due() const;

  // Whoever could be in a group at once, spares too, the fastest first; among equals who comes
  // before who is spare.
  std::vector<Joiner> Ready() const;

  // The first so many of Ready(), in the order in which they were started, spares behind; they are
  // joiners no more. Who is ready and is not among them is a spare.
  std::vector<Joiner> Take(std::size_t most);

  // A member that leaves its group for a faster one. Requires: joiner.ready, !Has(its worker).
  void AddSpare(Joiner joiner);

  // When those who come were started. Requires: !coming().empty().
  Instant since() const { return since_; }

 private:
  std::vector<Joiner> coming_;
  std::vector<Joiner> spares_;
  Instant since_{};
  Instant first_ready_{};  // of those who are ready
};

// In what a worker has loaded other things than its group, for people: "has 99 parameters, the
// group has 10"; empty: in nothing.
std::string OddLoadWords(const ReadyMessage& ready, const ReadyMessage& group);

}  // namespace tactus::job
