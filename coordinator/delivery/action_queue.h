// Carries out the core's actions in order, and holds them back until what they rest on is durable.

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/job/actions.h"

namespace tactus::delivery {

// Lists of actions go in, one write at a time goes out (group commit: all records that wait, in one
// transaction), and every other action is performed when all PersistJob before it, in its own list
// and in earlier ones, are durable. Rounds, validations, decisions and what planners learned ride
// on the next write, that of their list's PersistJob where it has one, and hold nothing up. A write
// that fails is tried again on Flush; until it succeeds the actions behind it wait, so nothing is
// seen that a restart would deny. PersistNode counts as PersistJob does. One thread.
//
// What bounds it while the store fails: an agent's next message is read only when the one before is
// dealt with, timers wait behind the write that set them, records that wait are one a job and one a
// node, and users' changes are refused by whoever pushes them: see `full`.
class ActionQueue {
 public:
  // Rounds, validations and decisions kept while the store fails; the oldest go first.
  static constexpr std::size_t kRoundsMax = 65536;
  static constexpr std::size_t kValidationsMax = 4096;
  static constexpr std::size_t kDecisionsMax = 4096;
  // Lists that may wait before users' changes are refused.
  static constexpr std::size_t kListsMax = 65536;

  struct Hooks {
    // Writes the batch, which stays as it is until then, and answers with OnWritten, later. One at
    // a time.
    std::function<void(const job::WriteBatch& batch)> write;
    // Carries out anything but the Persists.
    std::function<void(const job::Action& action)> perform;
    // While it says so nothing is carried out; asked again on Flush. Null: never.
    std::function<bool()> held{};
  };

  explicit ActionQueue(Hooks hooks) : hooks_(std::move(hooks)) {}

  using Done = std::function<void(bool carried_out)>;

  // Appends a list; `done` is called when all of it is carried out, or, with false, given up: see
  // Close. May be called from within `perform`.
  void Push(job::Actions actions, Done done);

  // Gives up what waits and what comes: nothing is carried out any more, and whoever waits is told.
  // What is to be written still is, where it can be.
  void Close();

  // Drops what waits to be carried out on `node`; see job::StartsAnew.
  void Drop(const std::string& node);

  // The write asked for has ended; `durable`: all of it is, else nothing.
  void OnWritten(bool durable);

  // Goes on with what was held. Starts a write of what rides along and waits, or the one that
  // failed again. To be called now and then.
  void Flush();

  bool writing() const { return writing_; }
  std::size_t lists() const { return lists_.size(); }
  bool full() const { return lists_.size() >= kListsMax; }
  bool idle() const { return !writing_ && lists_.empty() && !AnyHistory(); }

 private:
  struct List {
    std::deque<job::Action> actions;  // PersistJob without its record, also for a PersistNode
    Done done;
  };

  void Drain();
  void StartWrite();
  void Forget(const job::ForgetRounds& action);
  bool AnyHistory() const {
    return !rounds_.empty() || !decisions_.empty() || !forgotten_.empty() || !memories_.empty() ||
           !priors_.empty() || !validations_.empty();
  }

  const Hooks hooks_;
  std::deque<List> lists_;
  bool closed_ = false;
  bool draining_ = false;

  // Of the persists in lists_, those at the front that are durable, or in the write that runs.
  std::uint64_t durable_ = 0;
  std::uint64_t in_write_ = 0;
  std::uint64_t waiting_ = 0;

  std::map<JobId, job::JobRecord> jobs_;          // the newest of each that waits
  std::map<std::string, job::NodeRecord> nodes_;  // likewise
  std::vector<job::RoundsFrom> forgotten_;        // before rounds_ are written
  std::vector<job::RoundRecord> rounds_;
  std::vector<job::ValidationRecord> validations_;
  std::vector<job::DecisionRecord> decisions_;
  std::map<JobId, std::string> memories_;           // the newest of each job
  std::map<std::string, job::PriorRecord> priors_;  // of each key
  job::WriteBatch batch_;                           // what is being written, kept for another try
  bool writing_ = false;
  bool failed_ = false;
};

}  // namespace tactus::delivery
