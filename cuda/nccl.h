// NCCL: collectives between devices. The only home of NCCL's types; nccl_absent.cc where it was not
// found.
//
// Communicators are non-blocking: a call that may take its time says kInProgress, and nothing else
// is asked of the communicator, nor of the stream, until Poll says kReady.

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/time.h"
#include "cuda/device.h"
#include "cuda/nccl_endpoint.h"
#include "cuda/ops/stream.h"

namespace tactus::cuda::nccl {

// The version that is loaded, as 22809; 0 without NCCL.
int Version();

// A new unique id, or the reason why there is none.
struct MadeUniqueId {
  std::optional<UniqueId> id = {};
  std::string reason = "";
};
MadeUniqueId MakeUniqueId();

// `length` zeros in memory of the device, a CUDA device, that NCCL may map into others (it is
// ncclMemAlloc's): what Communicator::Register is of use for. Empty where it cannot be had. Who
// frees it waits for all that is queued on the device, on whosever stream: a program that has views
// of it may have queued what reads them.
Buffer Allocate(Device& device, std::size_t length);

enum class State { kReady, kInProgress, kFailed };

// How a communicator stands. After kFailed it is of no use but for Abort.
struct Standing {
  State state = State::kReady;
  std::string reason = "";  // of kFailed, for a person: the call, and what NCCL says
};

// A member's place in a group.
struct Place {
  int rank = 0;  // in [0, size)
  int size = 1;
  int device = 0;  // CUDA's index; the calling threads use it too
  UniqueId id = {};
};

// How long to wait for a communicator, and what ends it before.
struct Patience {
  Duration limit = Seconds(30);               // > 0
  std::function<Instant()> now = {};          // the present
  std::function<std::string()> give_up = {};  // why to stop, empty to go on; may be empty
  std::string what = "";  // is waited for: "init: not all of the 4 members have come"
};

// How an abort ended.
enum class Aborted {
  kYes,    // nothing of the communicator runs any more, but for what the stream still has to end
  kHangs,  // not within the limit: device memory may still be written, so the process has to end
};

struct BegunCommunicator;

// A member's end of a group of devices. Calls may come from several threads; one that finds another
// at work waits for it, but Poll then says kInProgress.
//
// Ends by Abort or Leave; a destructor that finds neither aborts and waits for it.
class Communicator {
 public:
  // Begins to meet the others of the place's id; Poll says when all have met.
  static BegunCommunicator Begin(const Place& place);

  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator();

  // Each queues a collective on `stream`; buffers are memory of the device, and the contracts those
  // of collective::Transport. Once they are kReady it is in the stream.
  Standing AllReduceSum(std::span<float> buffer, Stream stream);
  Standing Broadcast(std::span<float> buffer, int root, Stream stream);
  Standing RootSum(std::span<float> buffer, int root, Stream stream);
  Standing AllGather(std::span<const float> own, std::span<float> all, Stream stream);
  // A send and a receive in one group, either left out where it is empty.
  Standing Exchange(int peer, std::span<const std::byte> outgoing, std::span<std::byte> incoming,
                    Stream stream);

  // Registers memory with the communicator: collectives within it may then go without copies, by
  // NVLink's switches or a network's adapter. False: NCCL did not, be it that it cannot or that its
  // environment forbids it; all is as before. Nothing is registered yet. This is a matter of this
  // member alone, but what follows is not: results are undefined where a collective's memory is
  // registered with one member and not with another, source and target alike
  // (docs/decisions/0033-registered-gradients.md).
  bool Register(std::span<float> memory);
  // Takes it back, if anything is registered; no collective within it is under way. An abort does
  // so by itself, and Leave. Only after one of the three may the memory be freed. NCCL may ask the
  // other members' processes, and an abort has to wait until they have answered.
  Standing Deregister();

  // Where the last call stands, and whether a collective in the stream has met an error.
  Standing Poll();

  // Ends what is under way and frees the communicator, on a thread of its own; returns when that is
  // done or the limit (real time, > 0) has passed. Any thread. A second abort waits for the first.
  // After a failure there is no other end: NCCL's finalize and destroy may hang then.
  //
  // keep: something that must live until the abort is over, however late; may be null.
  Aborted Abort(Duration limit, const std::shared_ptr<const void>& keep);

  // Lets what is queued reach the others, then frees the communicator; within registered memory
  // nothing is queued. Where the first fails or takes longer than the patience, and after a
  // failure, it aborts. Either end has the limit and a thread of its own, as Abort has.
  Aborted Leave(const Patience& patience, Duration abort_limit,
                const std::shared_ptr<const void>& keep);

 private:
  struct Core;
  struct Abortion;
  explicit Communicator(std::shared_ptr<Core> core) : core_(std::move(core)) {}

  static Standing Deregister(Core& core);
  Standing DeregisterWithin(Duration limit);

  enum class End { kAbort, kLeave };  // ncclCommDestroy may hang as well as ncclCommAbort

  void StartEnd(End end, const std::shared_ptr<const void>& keep);
  Aborted AwaitAbort(Duration limit);
  Standing Finalize();

  friend void AbortAll(std::span<Communicator* const> communicators, Duration limit,
                       const std::function<void(Communicator&)>& hangs);

  const std::shared_ptr<Core> core_;  // shared with the thread of an abort
};

// A communicator that is under way, or the reason why there is none.
struct BegunCommunicator {
  std::unique_ptr<Communicator> communicator = nullptr;
  std::string reason = "";
};

// Polls until the communicator is no longer in progress. kFailed also when the patience ends, with
// a reason that names what was waited for.
Standing Await(Communicator& communicator, const Patience& patience);

// Aborts all of them at once, each on its own thread: an abort may wait for the kernels of another
// communicator of the process, so one after the other may never end. `hangs` is called for each
// that does not end within the limit, counted from the call; see Aborted::kHangs.
void AbortAll(std::span<Communicator* const> communicators, Duration limit,
              const std::function<void(Communicator&)>& hangs);

}  // namespace tactus::cuda::nccl
