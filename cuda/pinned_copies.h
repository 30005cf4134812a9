// Copies between a device's memory and pinned memory of the host, for a thread that has nothing to
// do but to move pieces: it queues copies on streams of its own and sleeps until they are done.
//
// Nothing here stops the process. Reasons are for a person and empty on success.

#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "cuda/ops/stream.h"
#include "cuda/stream_events.h"

namespace tactus::cuda {

struct FreePinned {
  void operator()(float* memory) const;
};
using PinnedFloats = std::unique_ptr<float[], FreePinned>;

// Memory of the host that devices copy from and to by themselves, or the reason why there is none.
struct OpenedPinned {
  PinnedFloats memory = nullptr;
  std::string reason = "";
};

// `length` floats, >= 1, of any value.
OpenedPinned OpenPinned(std::size_t length);

// An event without a time, of the thread's device, on which Await sleeps instead of spinning.
OpenedEvent OpenSleepingEvent();

// to <- from, equally long, on the stream; one is the device's memory, the other pinned. Both are
// left alone until the stream is past it.
std::string QueueCopy(Stream stream, std::span<const std::byte> from, std::span<std::byte> to);

// Returns when all before the event's last record is done; at once if there was none.
std::string Await(Event event);

}  // namespace tactus::cuda
