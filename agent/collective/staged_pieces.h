// The pieces of a staged transport: a collective on a device's memory, cut into collectives on
// pinned memory of the host.

#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "agent/collective/operation.h"
#include "cuda/pinned_copies.h"
#include "cuda/stream_events.h"

namespace tactus::collective {

// A collective, and what of it is the device's memory: the rest is the host's, which needs no
// staging.
struct StagedOperation {
  Operation operation{};
  bool down = false;       // what this member puts in is to be brought down
  bool up = false;         // what it gets is to be brought up
  std::size_t pieces = 1;  // >= 1
};

// rank: this member's. What is cut has the pieces of mesh_pieces.h, so that a member whose buffer
// is the host's memory may start the collective whole; what is not is one piece.
StagedOperation StageOf(const Operation& operation, int rank);

// Where one piece at a time stands in the host's memory. `first` has what is brought down, and of a
// sum or a broadcast what is brought up; `second` the incoming bytes of an exchange, and what all
// have brought to a gathering.
struct StagingSlot {
  cuda::PinnedFloats first = nullptr;   // [kPieceLength]
  cuda::PinnedFloats second = nullptr;  // [kPieceLength]
  cuda::OwnedEvent down = nullptr;      // in the stream that brings down
  cuda::OwnedEvent up = nullptr;        // in the stream that brings up
};

// The piece of that number as a collective on the slot's memory; of one that needs no staging, the
// collective itself.
Operation PieceOnHost(const StagedOperation& staged, std::size_t number, StagingSlot& slot);

// Slots, and the copies between them and the device, each direction on a stream of its own: devices
// have an engine for either. One thread, whose device it is. Reasons are empty on success.
class Staging {
 public:
  // One piece travels, the next is there already and travels as soon as that one has arrived, and
  // one is on its way to or from the device.
  static constexpr std::size_t kSlots = 3;

  // Takes memory, streams and events of the calling thread's device.
  std::string Open();

  StagingSlot& slot(std::size_t number) { return slots_[number % kSlots]; }

  // What is copied from now on waits on the device for the event's last record.
  std::string Follow(cuda::Event before);

  // Queues the piece's copy into the slot; AwaitDown returns when it is there, IsDown says whether.
  std::string BringDown(const StagedOperation& staged, std::size_t number, StagingSlot& slot);
  std::string AwaitDown(const StagingSlot& slot) const { return cuda::Await(slot.down.get()); }
  bool IsDown(const StagingSlot& slot) const;

  // Copies the piece from the slot and returns when it is there.
  std::string BringUp(const StagedOperation& staged, std::size_t number, StagingSlot& slot);

  // Returns when nothing that was queued touches any memory. A device that refuses is broken, and
  // then nothing runs on it.
  void AwaitQuiet();

 private:
  std::string QueueGathered(const Operation& whole, std::size_t number, StagingSlot& slot);

  std::array<StagingSlot, kSlots> slots_{};
  cuda::OwnedStream down_ = nullptr;
  cuda::OwnedStream up_ = nullptr;
};

}  // namespace tactus::collective
