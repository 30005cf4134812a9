// A worker's life beside a program: what the C interface is made of.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/worker/worker.h"
#include "policies/plan.h"
#include "sdk/handoff.h"
#include "sdk/program.h"
#include "sdk/program_trainee.h"
#include "sdk/solo_agent.h"

namespace tactus::sdk {

// Where training stands, as of the round that was applied last.
struct Standing {
  std::uint32_t rank = 0, size = 1;  // of its group, the last one
  std::uint64_t rounds = 0;          // applied
  std::uint64_t epoch = 0;           // of the last round's samples
  std::uint64_t samples = 0;         // used of all epochs, by all members
  std::optional<policies::Report> last{};
  policies::Plan plan{};
};

// A member of a group of one, or of one that an agent tells it of. Runs from construction to End,
// or to its end. A call in the wrong place is FailedPrecondition, and
// changes nothing. One thread at a time. The memory that a program is shown is there as long as
// this is, whatever has ended.
class Session {
 public:
  explicit Session(const Program& program);
  Session(const Program& program, std::unique_ptr<worker::Agent> agent);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // What is asked of the program; null: nothing was in `limit`. Stays until it is answered; kEnd
  // stays for good.
  const Request* Await(Duration limit);
  absl::Status Reply(Answer answer);
  // While a batch that is the last of its round is computed.
  absl::Status SegmentReady(std::uint64_t segment);

  Standing standing();
  // Of one that runs alone; the others' are with their coordinator.
  std::vector<policies::Decision> TakeDecisions();

  // Training ends at the next edge of a round, of all members.
  void RequestStop(const std::string& reason);

  // Training ends now, whatever it is at. Waits for the life's thread.
  void End(const std::string& reason);

 private:
  // What comes from the worker on its way to the agent.
  class Watched;

  void Live();

  const std::uint64_t segments_;
  const std::unique_ptr<worker::Agent> agent_;
  SoloAgent* const solo_;  // the same; null: it is another's
  Handoff handoff_;
  std::unique_ptr<Watched> watched_;
  ProgramTrainee trainee_;
  std::unique_ptr<worker::Worker> worker_;
  const Request* asked_ = nullptr;
  Request end_{};
  std::atomic<bool> ended_ = false;  // the life has said its last word
  std::thread life_;                 // last: runs over all the above
};

}  // namespace tactus::sdk
