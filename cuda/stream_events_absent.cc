// Streams and events of a build without the CUDA toolkit.

#include "cuda/stream_events.h"

namespace tactus::cuda {
namespace {

constexpr const char* kNone = "this build has no CUDA support";

}  // namespace

void CloseStream::operator()(Stream) const {}
void CloseEvent::operator()(Event) const {}

void CloseFlag::operator()(std::uint32_t*) const {}

std::string UseDevice(int) { return kNone; }
OpenedStream OpenStream() { return {.reason = kNone}; }
OpenedEvent OpenEvent() { return {.reason = kNone}; }
OpenedFlag OpenFlag() { return {.reason = kNone}; }
void Raise(std::uint32_t*) {}
std::string Record(Event, Stream) { return kNone; }
std::string WaitFor(Stream, Event) { return kNone; }
EventState Query(Event) { return {.reached = Reached::kFailed, .reason = kNone}; }
bool IsDeviceMemory(const void*) { return false; }

}  // namespace tactus::cuda
