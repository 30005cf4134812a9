// NCCL of a build without it.

#include "cuda/nccl.h"

namespace tactus::cuda::nccl {
namespace {

constexpr const char* kNone = "this build has no NCCL";

}  // namespace

// No communicator ever comes about.
struct Communicator::Core {};

int Version() { return 0; }
Buffer Allocate(Device&, std::size_t) { return {}; }
MadeUniqueId MakeUniqueId() { return {.reason = kNone}; }
BegunCommunicator Communicator::Begin(const Place&) { return {.reason = kNone}; }
Communicator::~Communicator() = default;
Standing Communicator::AllReduceSum(std::span<float>, Stream) {
  return {.state = State::kFailed, .reason = kNone};
}
Standing Communicator::Broadcast(std::span<float>, int, Stream) {
  return {.state = State::kFailed, .reason = kNone};
}
Standing Communicator::RootSum(std::span<float>, int, Stream) {
  return {.state = State::kFailed, .reason = kNone};
}
Standing Communicator::AllGather(std::span<const float>, std::span<float>, Stream) {
  return {.state = State::kFailed, .reason = kNone};
}
Standing Communicator::Exchange(int, std::span<const std::byte>, std::span<std::byte>, Stream) {
  return {.state = State::kFailed, .reason = kNone};
}
bool Communicator::Register(std::span<float>) { return false; }
Standing Communicator::Deregister() { return {.state = State::kFailed, .reason = kNone}; }
Standing Communicator::Poll() { return {.state = State::kFailed, .reason = kNone}; }
Aborted Communicator::Abort(Duration, const std::shared_ptr<const void>&) { return Aborted::kYes; }
Aborted Communicator::Leave(const Patience&, Duration, const std::shared_ptr<const void>&) {
  return Aborted::kYes;
}
Standing Await(Communicator&, const Patience&) {
  return {.state = State::kFailed, .reason = kNone};
}
void AbortAll(std::span<Communicator* const>, Duration, const std::function<void(Communicator&)>&) {
}

}  // namespace tactus::cuda::nccl
