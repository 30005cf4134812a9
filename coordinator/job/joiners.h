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
};

// Those that were started together, less whom the group has taken in or who is gone. A worker is in
// it once. Who is ready waits for the others, but no longer than as long again as the first took to
// load: else one slow disk would hold up all. One thread.
class Joiners {
 public:
  // Requires: empty().
  void Start(const std::vector<MemberRecord>& members, Instant now);

  bool empty() const { return joiners_.empty(); }
  bool Has(WorkerId worker) const { return Find(worker) != nullptr; }
  const std::vector<Joiner>& all() const { return joiners_; }  // as they were started
  std::vector<MemberRecord> members() const;                   // likewise

  // It has loaded; said again, it changes nothing. Requires: Has(worker).
  void SetReady(WorkerId worker, const ReadyMessage& ready, Instant now);

  // It is none any more. Requires: Has(worker).
  MemberRecord Remove(WorkerId worker);
  void Clear() { joiners_.clear(); }

  // When a group is to take in those who are ready; nothing: nobody is.
  std::optional<Instant> Due() const;

  // Who is ready, in the order in which they were started; they are joiners no more.
  std::vector<Joiner> TakeReady();

  // When they were started. Requires: !empty().
  Instant since() const { return since_; }

 private:
  const Joiner* Find(WorkerId worker) const;

  std::vector<Joiner> joiners_;
  Instant since_{};
  Instant first_ready_{};  // of those who are ready
};

// In what a worker has loaded other things than its group, for people: "has 99 parameters, the
// group has 10"; empty: in nothing.
std::string OddLoadWords(const ReadyMessage& ready, const ReadyMessage& group);

}  // namespace tactus::job
