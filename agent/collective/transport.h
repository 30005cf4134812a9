// How the members of a group talk: collectives on spans of float32, started without waiting.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agent/collective/conversation.h"
#include "agent/collective/operation.h"
#include "base/check.h"
#include "base/time.h"

namespace tactus::collective {

enum class Progress { kRunning, kDone, kFailed };

// How a collective ended.
struct Completion {
  Progress progress = Progress::kDone;  // kDone or kFailed
  Instant finished = {};  // when it was done, which may be before the caller learned of it
  Instant at = {};  // when the waiting caller learned of it, in the caller's world: real or virtual
  std::string reason = {};  // why it failed, for a person; empty otherwise
};

// A collective under way. Destroying it before it is done waits for it.
class Collective {
 public:
  virtual ~Collective() = default;

  // Where it stands, without waiting.
  virtual Progress Poll() = 0;

  // Waits until it is done or has failed.
  virtual Completion Wait() = 0;

  // Puts what the caller queues on the device from here on behind this collective, so that nobody
  // has to wait for it: returns kRunning once that holds. A transport that does not move memory in
  // the device's own order waits instead and returns how it ended. kFailed: it failed, nothing is
  // put behind it.
  //
  // After kRunning it may still fail. What was put behind it runs all the same, over a buffer that
  // may hold anything, and finds Transport::lost() raised; so it must not touch what is to outlive
  // the group without having looked there. Where lost() was not raised the buffer is as it should
  // be, even if Wait says afterwards that the group came to its end.
  virtual Progress WaitOnDevice() { return Wait().progress; }
};

// Where a member's collectives stand, for who asks why a group does not get on.
struct Awaiting {
  bool collective = false;        // one is under way, and what it needs of this member is there
  std::vector<int> peers{};       // that it waits for now, as far as the transport knows
  std::uint64_t bytes_moved = 0;  // to and from all peers so far, as far as it counts them
};

// A member's end of a group of `size()` members. All members start the same collectives in the same
// order with the same lengths; different ones may be under way at once and finish in that order.
// One thread.
//
// After a failure every later collective of the transport fails too: the group is over, and a new
// one gets a new transport.
class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const = 0;  // in [0, size())
  virtual int size() const = 0;  // >= 1

  // buffer <- element-wise sum over all members, in place. The memory must live and be left alone
  // until the collective is done. Every member gets the same bits, and the same inputs give the
  // same bits again.
  std::unique_ptr<Collective> StartAllReduceSum(std::span<float> buffer) {
    return Start({.kind = Operation::Kind::kAllReduceSum, .buffer = buffer});
  }

  // buffer <- the root's buffer. Same rules.
  std::unique_ptr<Collective> StartBroadcast(std::span<float> buffer, int root) {
    TACTUS_CHECK(root >= 0 && root < size());
    return Start({.kind = Operation::Kind::kBroadcast, .buffer = buffer, .partner = root});
  }

  // Done once every member has started it, and everything that each had started before is done: a
  // member that computes meanwhile learns by Poll that all are ready. It moves next to nothing.
  std::unique_ptr<Collective> StartBarrier() { return Start({}); }

  // Sends `outgoing` to `peer` and fills `incoming` from it, at the same time; only the two take
  // part, and both start it in the same place of the collectives that they share. `incoming` is as
  // long as the peer's `outgoing`; either may be empty. The memory rules are those above; the two
  // do not overlap. peer: in [0, size()), not this member.
  std::unique_ptr<Collective> StartExchange(int peer, std::span<const std::byte> outgoing,
                                            std::span<std::byte> incoming) {
    TACTUS_CHECK(peer >= 0 && peer < size() && peer != rank());
    return Start({.kind = Operation::Kind::kExchange,
                  .partner = peer,
                  .outgoing = outgoing,
                  .incoming = incoming});
  }

  // Leads a conversation that all members take part in. It must live, with all memory that it
  // touches, and be left alone until the collective is done.
  std::unique_ptr<Collective> StartConversation(Conversation& conversation) {
    return Start({.kind = Operation::Kind::kConversation, .conversation = &conversation});
  }

  // The root's buffer <- the sum of all, in the place of a StartAllReduceSum that all others would
  // throw away; theirs hold anything afterwards. Same rules and bits; in rank order, where sums
  // are. Of a group of one the memory is the host's, here and below.
  virtual std::unique_ptr<Collective> StartRootSum(std::span<float> buffer, int root);

  // all [size() * own.size()] <- what every member brings, by rank. Both are the same kind of
  // memory, and do not overlap.
  virtual std::unique_ptr<Collective> StartAllGather(std::span<const float> own,
                                                     std::span<float> all);

  // Where members have parts of a vector: the group of those that have the same one, in the order
  // of their ranks, which lives as long as this. Null: everybody has all.
  virtual Transport* of_parts() { return nullptr; }

  // Any of those that are not virtual.
  virtual std::unique_ptr<Collective> Start(const Operation& operation) = 0;

  // A number that the device can read: 0, and not 0 from before the moment on when something that
  // is under way is ended by force. Null where WaitOnDevice waits. Lives as long as the transport.
  virtual const std::uint32_t* lost() const { return nullptr; }

  // Prepares memory of the device for collectives within it, so that they need no copies. False: it
  // cannot, and nothing was done. A member does this by itself, but for a collective all of the
  // memory of all that take part has to be prepared, or none: see RegisterTogether. Nothing is
  // prepared yet, and the memory outlives the transport, or Deregister.
  virtual bool Register(std::span<float> /*memory*/) { return false; }
  // The end of it. Requires: no collective within the memory is under way.
  virtual void Deregister() {}

  // May be called from another thread, at any time, and waits for nothing.
  virtual Awaiting awaiting() { return {}; }

  // Ranks whose connections failed, as far as the transport knows; it may be of a group of which no
  // collective has found out yet.
  virtual std::vector<int> failed() { return {}; }

  // What all peers together can bring this member at once, as the collectives since the last call
  // tell; 0: they do not. [bytes/s]
  virtual double TakeLinkRate() { return 0; }

  // Fails everything under way and to come, on this member. May be called from another thread.
  virtual void Abort(const std::string& reason) = 0;
};

}  // namespace tactus::collective
