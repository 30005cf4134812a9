// Streams and the marks in them, for code that orders work of a device without waiting for it.
//
// Nothing here stops the process: the transports turn a failure into the end of their group.
// Reasons are for a person and empty on success.

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cuda/ops/stream.h"

struct CUevent_st;

namespace tactus::cuda {

// cudaEvent_t: a mark in a stream.
using Event = CUevent_st*;

struct CloseStream {
  void operator()(Stream stream) const;
};
struct CloseEvent {
  void operator()(Event event) const;
};
using OwnedStream = std::unique_ptr<CUstream_st, CloseStream>;
using OwnedEvent = std::unique_ptr<CUevent_st, CloseEvent>;

// Either of them, or the reason why there is none.
struct OpenedStream {
  OwnedStream stream = nullptr;
  std::string reason = "";
};
struct OpenedEvent {
  OwnedEvent event = nullptr;
  std::string reason = "";
};

// A number of the host's that a device reads where it is (pinned memory): 0 until it is raised, for
// good.
struct CloseFlag {
  void operator()(std::uint32_t* flag) const;
};
using OwnedFlag = std::unique_ptr<std::uint32_t, CloseFlag>;
struct OpenedFlag {
  OwnedFlag flag = nullptr;
  std::string reason = "";
};

// Makes `device` (CUDA's index) the one that the calling thread uses.
std::string UseDevice(int device);

// A stream of the thread's device, ahead of those of ordinary priority, that does not wait for the
// default stream.
OpenedStream OpenStream();

// An event without a time, of the thread's device.
OpenedEvent OpenEvent();

OpenedFlag OpenFlag();
// What a device does because of something that comes after finds the flag raised. Any thread.
void Raise(std::uint32_t* flag);

// Marks what was queued on the stream so far. An event can be recorded again.
std::string Record(Event event, Stream stream);

// What is queued on `stream` from now on waits on the device for the event's last record.
std::string WaitFor(Stream stream, Event event);

enum class Reached { kNot, kYes, kFailed };

// Whether all before the event's last record is done.
struct EventState {
  Reached reached = Reached::kNot;
  std::string reason = "";  // of kFailed
};
EventState Query(Event event);

// Whether the address lies in the memory of a device.
bool IsDeviceMemory(const void* address);

}  // namespace tactus::cuda
