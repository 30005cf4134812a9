#include "cuda/nccl.h"

#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <thread>
#include <utility>

#include "base/check.h"
#include "cuda/stream_events.h"
#include "threads/mutex.h"

namespace tactus::cuda::nccl {
namespace {

static_assert(sizeof(ncclUniqueId) == sizeof(UniqueId::bytes));

constexpr Duration kDestructorLimit = Seconds(60);
constexpr const char* kAborted = "the communicator was aborted";
constexpr const char* kLeft = "the communicator was left";

// What NCCL says about an error.
std::string TextOf(ncclResult_t result, ncclComm_t communicator) {
  std::string text = ncclGetErrorString(result);
  const char* const last = ncclGetLastError(communicator);
  if (last != nullptr && *last != '\0') text += std::string(" (") + last + ")";
  return text;
}

Standing StandingOf(ncclResult_t result, const std::string& call, ncclComm_t communicator) {
  if (result == ncclSuccess) return {};
  if (result == ncclInProgress) return {.state = State::kInProgress};
  return {.state = State::kFailed, .reason = call + ": " + TextOf(result, communicator)};
}

// ncclMemFree takes memory away at once, where cudaFree waits. By whichever thread: its device and
// its last error stay what they are.
void FreeBehindAll(void* memory) {
  int before = 0;
  cudaPointerAttributes found{};
  const bool known = cudaGetDevice(&before) == cudaSuccess &&
                     cudaPointerGetAttributes(&found, memory) == cudaSuccess;
  if (!known) cudaGetLastError();
  if (known && UseDevice(found.device).empty()) {
    cudaDeviceSynchronize();  // where it fails the device is lost, and nothing runs there any more
  }
  ncclMemFree(memory);
  if (known) UseDevice(before);
}

}  // namespace

// The end of a communicator, told by its thread.
struct Communicator::Abortion {
  threads::Mutex mutex{};
  threads::Condition changed{};
  bool over ABSL_GUARDED_BY(mutex) = false;
};

struct Communicator::Core {
  threads::Mutex mutex{};                               // held during every call of NCCL
  ncclComm_t handle ABSL_GUARDED_BY(mutex) = nullptr;   // null: freed
  void* registration ABSL_GUARDED_BY(mutex) = nullptr;  // null: nothing is registered
  // Once not empty, only ncclCommAbort may follow.
  std::string failure ABSL_GUARDED_BY(mutex){};

  threads::Mutex abort_mutex{};
  // Null: none was started; shared with its thread.
  std::shared_ptr<Abortion> abortion ABSL_GUARDED_BY(abort_mutex){};

  Standing Take(ncclResult_t result, const char* call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    Standing standing = StandingOf(result, call, handle);
    if (standing.state == State::kFailed) failure = standing.reason;
    return standing;
  }

  // Makes a call of NCCL.
  template <typename Call>
  Standing Make(const char* name, Call call) ABSL_LOCKS_EXCLUDED(mutex) {
    const threads::MutexLock lock(mutex);
    if (!failure.empty()) return {.state = State::kFailed, .reason = failure};
    return Take(call(handle), name);
  }
};

int Version() {
  int version = 0;
  return ncclGetVersion(&version) == ncclSuccess ? version : 0;
}

MadeUniqueId MakeUniqueId() {
  ncclUniqueId made{};
  const ncclResult_t result = ncclGetUniqueId(&made);
  if (result != ncclSuccess) return {.reason = "ncclGetUniqueId: " + TextOf(result, nullptr)};
  UniqueId id;
  std::memcpy(id.bytes.data(), made.internal, id.bytes.size());
  return {.id = id};
}

Buffer Allocate(Device& device, std::size_t length) {
  if (length == 0 || !device.cuda_index() || !UseDevice(*device.cuda_index()).empty()) return {};
  void* memory = nullptr;
  if (ncclMemAlloc(&memory, length * sizeof(float)) != ncclSuccess) return {};
  Buffer buffer(static_cast<float*>(memory), length, FreeBehindAll);
  device.Fill(0, buffer.span());
  return buffer;
}

BegunCommunicator Communicator::Begin(const Place& place) {
  TACTUS_CHECK(place.size >= 1 && place.rank >= 0 && place.rank < place.size);
  ncclUniqueId id{};
  std::memcpy(id.internal, place.id.bytes.data(), place.id.bytes.size());
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  auto core = std::make_shared<Core>();
  std::unique_ptr<Communicator> communicator(new Communicator(core));
  const Standing standing = core->Make("ncclCommInitRankConfig", [&](ncclComm_t& handle) {
    return ncclCommInitRankConfig(&handle, place.size, id, place.rank, &config);
  });
  if (standing.state != State::kFailed) return {.communicator = std::move(communicator)};
  return {.reason = standing.reason};
}

Communicator::~Communicator() {
  {
    const threads::MutexLock lock(core_->abort_mutex);
    if (core_->abortion != nullptr) return;
  }
  Abort(kDestructorLimit, nullptr);
}

Standing Communicator::AllReduceSum(std::span<float> buffer, Stream stream) {
  return core_->Make("ncclAllReduce", [&](ncclComm_t handle) {
    return ncclAllReduce(buffer.data(), buffer.data(), buffer.size(), ncclFloat32, ncclSum, handle,
                         stream);
  });
}

Standing Communicator::Broadcast(std::span<float> buffer, int root, Stream stream) {
  return core_->Make("ncclBroadcast", [&](ncclComm_t handle) {
    return ncclBroadcast(buffer.data(), buffer.data(), buffer.size(), ncclFloat32, root, handle,
                         stream);
  });
}

Standing Communicator::RootSum(std::span<float> buffer, int root, Stream stream) {
  return core_->Make("ncclReduce", [&](ncclComm_t handle) {
    return ncclReduce(buffer.data(), buffer.data(), buffer.size(), ncclFloat32, ncclSum, root,
                      handle, stream);
  });
}

Standing Communicator::AllGather(std::span<const float> own, std::span<float> all, Stream stream) {
  return core_->Make("ncclAllGather", [&](ncclComm_t handle) {
    return ncclAllGather(own.data(), all.data(), own.size(), ncclFloat32, handle, stream);
  });
}

// Both in one group, as each would wait for the peer's other one. A group that was begun is ended
// whatever happens in it: NCCL keeps it by thread.
Standing Communicator::Exchange(int peer, std::span<const std::byte> outgoing,
                                std::span<std::byte> incoming, Stream stream) {
  const char* call = "ncclGroupStart";
  Standing standing = core_->Make("exchange", [&](ncclComm_t handle) {
    ncclResult_t result = ncclGroupStart();
    if (result != ncclSuccess) return result;
    const auto within = [&](const char* name, ncclResult_t outcome) {
      if (result != ncclSuccess) return;  // the first error stays
      call = name;
      result = outcome == ncclInProgress ? ncclSuccess : outcome;
    };
    if (!outgoing.empty()) {
      within("ncclSend",
             ncclSend(outgoing.data(), outgoing.size(), ncclInt8, peer, handle, stream));
    }
    if (!incoming.empty() && result == ncclSuccess) {
      within("ncclRecv",
             ncclRecv(incoming.data(), incoming.size(), ncclInt8, peer, handle, stream));
    }
    const ncclResult_t ended = ncclGroupEnd();
    if (result != ncclSuccess) return result;
    call = "ncclGroupEnd";
    return ended;
  });
  if (standing.state == State::kFailed) standing.reason = call + (": " + standing.reason);
  return standing;
}

// The handle stays null where NCCL leaves the memory alone and calls that a success.
bool Communicator::Register(std::span<float> memory) {
  const threads::MutexLock lock(core_->mutex);
  if (!core_->failure.empty()) return false;
  TACTUS_CHECK(core_->registration == nullptr);
  void* handle = nullptr;
  const ncclResult_t result =
      ncclCommRegister(core_->handle, memory.data(), memory.size_bytes(), &handle);
  if (result == ncclSuccess) core_->registration = handle;
  return core_->registration != nullptr;
}

Standing Communicator::Deregister() { return Deregister(*core_); }

Standing Communicator::Deregister(Core& core) {
  const threads::MutexLock lock(core.mutex);
  if (!core.failure.empty()) return {.state = State::kFailed, .reason = core.failure};
  void* const registration = std::exchange(core.registration, nullptr);
  if (registration == nullptr) return {};
  return core.Take(ncclCommDeregister(core.handle, registration), "ncclCommDeregister");
}

// On a thread of its own, as a member that is frozen does not answer.
Standing Communicator::DeregisterWithin(Duration limit) {
  const auto done = std::make_shared<std::promise<Standing>>();
  std::future<Standing> standing = done->get_future();
  std::thread thread([core = core_, done] { done->set_value(Deregister(*core)); });
  thread.detach();
  if (standing.wait_for(limit) == std::future_status::ready) return standing.get();
  return {.state = State::kFailed, .reason = "ncclCommDeregister hangs"};
}

Standing Communicator::Poll() {
  if (!core_->mutex.TryLock()) return {.state = State::kInProgress};  // in a call or an abort
  const threads::MutexLock lock(core_->mutex, std::adopt_lock);
  if (!core_->failure.empty()) return {.state = State::kFailed, .reason = core_->failure};
  ncclResult_t error = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(core_->handle, &error);
  if (asked != ncclSuccess) return core_->Take(asked, "ncclCommGetAsyncError");
  return core_->Take(error, "asynchronous error");
}

void Communicator::StartEnd(End end, const std::shared_ptr<const void>& keep) {
  const threads::MutexLock lock(core_->abort_mutex);
  if (core_->abortion != nullptr) return;
  core_->abortion = std::make_shared<Abortion>();
  std::thread thread(
      [end, core = core_, abortion = core_->abortion, keep = std::shared_ptr(keep)]() mutable {
        {
          const threads::MutexLock call(core->mutex);
          const bool may_leave = end == End::kLeave && core->failure.empty();
          if (core->failure.empty()) core->failure = may_leave ? kLeft : kAborted;
          const ncclComm_t handle = std::exchange(core->handle, nullptr);
          // What they say changes nothing any more.
          if (handle != nullptr) (may_leave ? ncclCommDestroy : ncclCommAbort)(handle);
        }
        core.reset();
        keep.reset();
        const threads::MutexLock told(abortion->mutex);
        abortion->over = true;
        abortion->changed.NotifyAll();
      });
  // An end that hangs must hang nobody else. All that the thread uses is its own or shared.
  thread.detach();
}

Aborted Communicator::AwaitAbort(Duration limit) {
  const std::shared_ptr<Abortion> abortion = [this] {
    const threads::MutexLock lock(core_->abort_mutex);
    return core_->abortion;
  }();
  const auto end = std::chrono::steady_clock::now() + limit;
  const threads::MutexLock lock(abortion->mutex);
  while (!abortion->over && abortion->changed.WaitUntil(abortion->mutex, end)) {
  }
  return abortion->over ? Aborted::kYes : Aborted::kHangs;
}

Aborted Communicator::Abort(Duration limit, const std::shared_ptr<const void>& keep) {
  StartEnd(End::kAbort, keep);
  return AwaitAbort(limit);
}

Standing Communicator::Finalize() {
  return core_->Make("ncclCommFinalize",
                     [](ncclComm_t handle) { return ncclCommFinalize(handle); });
}

Aborted Communicator::Leave(const Patience& patience, Duration abort_limit,
                            const std::shared_ptr<const void>& keep) {
  Standing standing = Poll();
  if (standing.state != State::kFailed) standing = Await(*this, patience);
  if (standing.state == State::kReady) standing = DeregisterWithin(abort_limit);
  if (standing.state == State::kReady) standing = Finalize();
  if (standing.state == State::kInProgress) standing = Await(*this, patience);
  StartEnd(standing.state == State::kReady ? End::kLeave : End::kAbort, keep);
  return AwaitAbort(abort_limit);
}

Standing Await(Communicator& communicator, const Patience& patience) {
  constexpr int kTriesAtOnce = 200;  // what is only to be launched is ready within microseconds
  constexpr auto kInterval = std::chrono::microseconds(100);
  const Instant begin = patience.now();
  for (int tries = 0;; ++tries) {
    Standing standing = communicator.Poll();
    if (standing.state != State::kInProgress) return standing;
    const std::string why = patience.give_up ? patience.give_up() : "";
    if (!why.empty()) return {.state = State::kFailed, .reason = why};
    if (patience.now() - begin >= patience.limit) {
      return {
          .state = State::kFailed,
          .reason = patience.what + " within " + std::to_string(ToSeconds(patience.limit)) + " s"};
    }
    if (tries < kTriesAtOnce) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kInterval);
    }
  }
}

void AbortAll(std::span<Communicator* const> communicators, Duration limit,
              const std::function<void(Communicator&)>& hangs) {
  for (Communicator* const communicator : communicators)
    communicator->StartEnd(Communicator::End::kAbort, nullptr);
  const auto end = std::chrono::steady_clock::now() + limit;
  for (Communicator* const communicator : communicators) {
    const Duration left = end - std::chrono::steady_clock::now();
    if (communicator->AwaitAbort(std::max(left, Duration(0))) == Aborted::kHangs) {
      hangs(*communicator);
    }
  }
}

}  // namespace tactus::cuda::nccl
