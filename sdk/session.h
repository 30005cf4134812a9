// A worker's life beside a program: what the C interface is made of.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/worker/worker.h"
#include "cuda/ops/stream.h"
#include "policies/plan.h"
#include "sdk/program.h"
#include "sdk/program_trainee.h"
#include "sdk/solo_agent.h"
#include "sdk/turns.h"

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

// A member of a group of one, or of one that an agent tells it of. Runs within Await, up to what is
// asked, and within End. A call in the wrong place, or while another thread is in one, is
// FailedPrecondition, and changes nothing. The memory that a program is shown is there as long as
// this is, whatever has ended.
class Session {
 public:
  explicit Session(const Program& program);
  Session(const Program& program, std::unique_ptr<worker::Agent> agent);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // What is asked of the program; null: others were waited for longer than about `limit`. Stays
  // until it is answered; kEnd stays until End.
  absl::StatusOr<const Request*> Await(Duration limit);
  absl::Status Reply(Answer answer);
  // What the program queues on its device from now on is on that stream; null, as at first: on
  // CUDA's default stream. What it has queued when it calls is done before what is done here, and
  // the other way round, as the device does it. One on the host has none.
  void UseStream(cuda::Stream stream);
  // While a batch is computed: of its Request::early_segments, each once.
  absl::Status SegmentReady(std::uint64_t segment);

  Standing standing();
  // Of one that runs alone; the others' are with their coordinator.
  std::vector<policies::Decision> TakeDecisions();

  // Training ends at the next edge of a round, of all members. Any thread.
  void RequestStop(const std::string& reason);

  // Training ends now, whatever it is at. Waits for who is in a call.
  void End(const std::string& reason);

 private:
  // What comes from the worker on its way to the agent.
  class Watched;

  // One of the program's calls that the life may run in.
  class Call {
   public:
    explicit Call(std::atomic<bool>& in_call)
        : in_call_(in_call), alone_(!in_call.exchange(true)) {}
    ~Call() {
      if (alone_) in_call_.store(false);
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    bool alone() const { return alone_; }
    static absl::Status Refused();

   private:
    std::atomic<bool>& in_call_;
    const bool alone_;
  };

  // As StreamOrder has them, once there is one.
  absl::Status PutEngineBehind();
  absl::Status PutProgramBehind();
  void Live();

  const std::unique_ptr<worker::Agent> agent_;
  SoloAgent* const solo_;  // the same; null: it is another's
  Turns turns_;
  std::unique_ptr<Watched> watched_;
  ProgramTrainee trainee_;
  std::unique_ptr<worker::Worker> worker_;
  const Request* asked_ = nullptr;
  Request end_{};
  bool closed_ = false;
  cuda::Stream stream_ = nullptr;
  std::atomic<bool> in_call_ = false;  // a thread is
};

}  // namespace tactus::sdk
