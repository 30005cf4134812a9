// Copies of a build without the CUDA toolkit.

#include "cuda/pinned_copies.h"

namespace tactus::cuda {
namespace {

constexpr const char* kNone = "this build has no CUDA support";

}  // namespace

void FreePinned::operator()(float*) const {}

OpenedPinned OpenPinned(std::size_t) { return {.reason = kNone}; }
OpenedEvent OpenSleepingEvent() { return {.reason = kNone}; }
std::string QueueCopy(Stream, std::span<const std::byte>, std::span<std::byte>) { return kNone; }
std::string Await(Event) { return kNone; }

}  // namespace tactus::cuda
