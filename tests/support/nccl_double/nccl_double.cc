#include "tests/support/nccl_double/nccl_double.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tests/support/cuda_double/cuda_double.h"
#include "tests/support/nccl_double/clique.h"

namespace nccl_double = tactus::nccl_double;
using nccl_double::Batch;
using nccl_double::Clique;
using nccl_double::Fault;
using nccl_double::Kind;
using nccl_double::Member;
using nccl_double::Task;
using nccl_double::TheWorld;
using nccl_double::World;

namespace {

// One call of NCCL: holds the lock, counts, hangs, and says whether the call is to fail.
class Call {
 public:
  explicit Call(const std::string& function) : lock_(TheWorld().mutex) {
    World& world = TheWorld();
    const int count = ++world.calls[function];
    const auto fault = world.faults.find(function);
    if (fault == world.faults.end() || fault->second.at != count) return;
    error_ = fault->second.error;
    if (fault->second.hangs) Hang();
  }

  // Until Release.
  void Hang() {
    World& world = TheWorld();
    ++world.hanging;
    world.changed.notify_all();
    world.changed.wait(lock_, [&world, since = world.releases] { return world.releases > since; });
    --world.hanging;
  }

  ncclResult_t error() const { return error_; }

  // Null, and a complaint, for a communicator that does not exist.
  Member* MemberOf(ncclComm_t communicator, const char* function) const {
    World& world = TheWorld();
    if (world.live.contains(communicator)) return communicator->member.get();
    const bool freed = communicator != nullptr;
    world.complaints.push_back(std::string(function) + " of " +
                               (freed ? "a communicator that was freed" : "no communicator"));
    return nullptr;
  }

  void Unlock() { lock_.unlock(); }

  void MeetInAbort() {
    World& world = TheWorld();
    ++world.aborts;
    world.changed.notify_all();
    world.changed.wait(lock_, [&world] { return world.aborts >= world.aborts_to_meet; });
  }

 private:
  std::unique_lock<std::mutex> lock_;
  ncclResult_t error_ = ncclSuccess;
};

// The calls of the group that this thread has begun.
struct OpenGroup {
  int depth = 0;
  std::vector<std::pair<std::shared_ptr<Member>, Batch>> batches = {};
};
OpenGroup& TheGroup() {
  thread_local OpenGroup group;
  return group;
}

bool IsBusy(const Member& member) {
  return !member.met || !member.unqueued.empty() || member.finalizing || member.polls_left > 0;
}

// Takes a batch, which reaches its stream only when the communicator is asked how it stands.
void Submit(const std::shared_ptr<Member>& member, Batch batch) {
  World& world = TheWorld();
  for (Task& task : batch.tasks) nccl_double::Number(*member, task);
  const auto slow = world.slow.find(member->rank);
  batch.member = member;
  batch.tries_left = slow == world.slow.end() ? 0 : slow->second;
  member->unqueued.push_back(std::make_shared<Batch>(std::move(batch)));
  member->polls_left = world.polls;
}

ncclResult_t Issue(const char* function, ncclComm_t communicator, cudaStream_t stream, Task task) {
  const Call call(function);
  if (call.error() != ncclSuccess) return call.error();
  Member* const member = call.MemberOf(communicator, function);
  if (member == nullptr) return ncclInvalidArgument;
  if (IsBusy(*member)) {
    nccl_double::Complain(*member, std::string(function) + " while another call is in progress");
    return ncclInvalidArgument;
  }
  if (member->error != ncclSuccess) return member->error;
  OpenGroup& group = TheGroup();
  if (group.depth == 0) {
    if (task.kind == Kind::kSend || task.kind == Kind::kReceive) {
      nccl_double::Complain(*member, std::string(function) + " outside of a group");
    }
    Submit(communicator->member, {.stream = stream, .tasks = {task}});
    return ncclInProgress;
  }
  if (group.batches.empty()) {
    group.batches.emplace_back(communicator->member, Batch{.stream = stream});
  }
  if (group.batches.front().first.get() != member) return ncclInvalidUsage;  // one is all we do
  group.batches.front().second.tasks.push_back(task);
  return ncclSuccess;
}

// Puts what was submitted on its stream. Not under the world's lock, which the runtime's comes
// before.
void QueueAll(const std::vector<std::shared_ptr<Batch>>& batches) {
  for (const std::shared_ptr<Batch>& batch : batches) {
    tactus::cuda_double::Queue(batch->stream, [batch] {
      const std::lock_guard lock(TheWorld().mutex);
      return nccl_double::Attempt(*batch);
    });
  }
}

ncclResult_t Stand(Member& member) {
  if (member.error != ncclSuccess) return member.error;
  member.met =
      member.met || member.clique->members.size() == static_cast<std::size_t>(member.clique->size);
  if (!member.met) return ncclInProgress;
  if (member.finalizing) return member.running == 0 ? ncclSuccess : ncclInProgress;
  if (member.polls_left > 0) --member.polls_left;
  return member.polls_left > 0 ? ncclInProgress : ncclSuccess;
}

std::size_t BytesOf(std::size_t count, ncclDataType_t type) {
  return type == ncclFloat32 ? count * sizeof(float) : count;
}

}  // namespace

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
  }
  return "unknown result code";
}

const char* ncclGetLastError(ncclComm_t) { return "told by a double of NCCL"; }

ncclResult_t ncclGetVersion(int* version) {
  const Call call("ncclGetVersion");
  *version = TheWorld().version;
  return call.error();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const Call call("ncclGetUniqueId");
  if (call.error() != ncclSuccess) return call.error();
  std::memset(id->internal, 0, sizeof(id->internal));
  std::snprintf(id->internal, sizeof(id->internal), "double %llu",
                static_cast<unsigned long long>(++TheWorld().ids));
  TheWorld().cliques[id->internal] = std::make_shared<Clique>();
  return ncclSuccess;
}

// An id that is not known, or whose place is taken, is found out only by trying to reach its maker.
ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  const Call call("ncclCommInitRankConfig");
  if (call.error() != ncclSuccess) return call.error();
  if (size < 1 || rank < 0 || rank >= size || config->blocking != 0) return ncclInvalidArgument;
  World& world = TheWorld();
  auto member = std::make_shared<Member>();
  member->rank = rank;
  member->polls_left = world.polls;
  const auto known = world.cliques.find(std::string(id.internal));
  const bool joins = known != world.cliques.end() && !known->second->members.contains(rank) &&
                     (known->second->size == 0 || known->second->size == size);
  member->clique = joins ? known->second : std::make_shared<Clique>();
  member->clique->size = size;
  member->clique->members[rank] = member;
  if (!joins) member->error = ncclSystemError;
  world.all.push_back(std::make_unique<ncclComm>(ncclComm{.member = std::move(member)}));
  *communicator = world.all.back().get();
  world.live.insert(*communicator);
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* error) {
  Call call("ncclCommGetAsyncError");
  if (call.error() != ncclSuccess) return call.error();
  Member* const member = call.MemberOf(communicator, "ncclCommGetAsyncError");
  if (member == nullptr) return ncclInvalidArgument;
  *error = Stand(*member);
  if (*error != ncclSuccess) return ncclSuccess;
  const auto batches = std::exchange(member->unqueued, {});
  member->running += static_cast<int>(batches.size());
  const std::shared_ptr<Member> keep = communicator->member;
  call.Unlock();
  QueueAll(batches);
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  const Call call("ncclCommFinalize");
  if (call.error() != ncclSuccess) return call.error();
  Member* const member = call.MemberOf(communicator, "ncclCommFinalize");
  if (member == nullptr) return ncclInvalidArgument;
  if (member->error != ncclSuccess) {
    nccl_double::Complain(*member, "ncclCommFinalize after an error");
    return ncclInvalidUsage;
  }
  member->finalizing = true;
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  const Call call("ncclCommDestroy");
  if (call.error() != ncclSuccess) return call.error();
  Member* const member = call.MemberOf(communicator, "ncclCommDestroy");
  if (member == nullptr) return ncclInvalidArgument;
  if (member->error != ncclSuccess || !member->finalizing || member->running > 0) {
    nccl_double::Complain(*member, "ncclCommDestroy after an error, or of what is not finalized");
  }
  if (!member->registrations.empty()) {
    nccl_double::Complain(*member, "ncclCommDestroy with memory that is registered");
  }
  TheWorld().live.erase(communicator);
  return ncclSuccess;
}

// What is in its streams ends without a result.
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  Call call("ncclCommAbort");
  Member* const member = call.MemberOf(communicator, "ncclCommAbort");
  if (member == nullptr) return ncclInvalidArgument;
  if (TheWorld().hangs_in_abort.contains(member->rank)) call.Hang();
  member->aborted = call.error() == ncclSuccess;
  member->registrations.clear();  // as NCCL does
  member->unqueued.clear();
  call.MeetInAbort();
  TheWorld().live.erase(communicator);
  call.Unlock();
  tactus::cuda_double::Wake();
  return call.error();
}

ncclResult_t ncclMemAlloc(void** memory, std::size_t size) {
  {
    const Call call("ncclMemAlloc");
    if (call.error() != ncclSuccess) return call.error();
  }
  return cudaMalloc(memory, size) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclMemFree(void* memory) {
  {
    const Call call("ncclMemFree");
    for (const ncclComm_t communicator : TheWorld().live) {
      for (const auto& registration : communicator->member->registrations) {
        if (!registration->Holds(memory, 1)) continue;
        nccl_double::Complain(*communicator->member, "ncclMemFree of memory that is registered");
      }
    }
  }
  return tactus::cuda_double::FreeAtOnce(memory) ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclCommRegister(ncclComm_t communicator, void* memory, std::size_t size,
                              void** handle) {
  const Call call("ncclCommRegister");
  if (call.error() != ncclSuccess) return call.error();
  Member* const member = call.MemberOf(communicator, "ncclCommRegister");
  if (member == nullptr) return ncclInvalidArgument;
  if (TheWorld().does_not_register.contains(member->rank)) return ncclSuccess;
  member->registrations.push_back(std::make_unique<nccl_double::Registration>(
      nccl_double::Registration{.begin = static_cast<const std::byte*>(memory), .bytes = size}));
  *handle = member->registrations.back().get();
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(ncclComm_t communicator, void* handle) {
  const Call call("ncclCommDeregister");
  if (call.error() != ncclSuccess) return call.error();
  Member* const member = call.MemberOf(communicator, "ncclCommDeregister");
  if (member == nullptr) return ncclInvalidArgument;
  if (member->running > 0 || !member->unqueued.empty()) {
    nccl_double::Complain(*member, "ncclCommDeregister while something is under way");
  }
  if (std::erase_if(member->registrations,
                    [&](const auto& each) { return each.get() == handle; }) == 1) {
    return ncclSuccess;
  }
  nccl_double::Complain(*member, "ncclCommDeregister of what is not registered");
  return ncclInvalidUsage;
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t, ncclComm_t communicator, cudaStream_t stream) {
  return Issue("ncclAllReduce", communicator, stream,
               {.kind = Kind::kAllReduce, .from = from, .to = to, .bytes = BytesOf(count, type)});
}

ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t communicator, cudaStream_t stream) {
  return Issue("ncclBroadcast", communicator, stream,
               {.kind = Kind::kBroadcast,
                .from = from,
                .to = to,
                .bytes = BytesOf(count, type),
                .partner = root});
}

ncclResult_t ncclReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t, int root, ncclComm_t communicator, cudaStream_t stream) {
  return Issue("ncclReduce", communicator, stream,
               {.kind = Kind::kReduce,
                .from = from,
                .to = to,
                .bytes = BytesOf(count, type),
                .partner = root});
}

ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclComm_t communicator, cudaStream_t stream) {
  return Issue("ncclAllGather", communicator, stream,
               {.kind = Kind::kAllGather, .from = from, .to = to, .bytes = BytesOf(count, type)});
}

ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  return Issue("ncclSend", communicator, stream,
               {.kind = Kind::kSend, .from = from, .bytes = BytesOf(count, type), .partner = peer});
}

ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  return Issue("ncclRecv", communicator, stream,
               {.kind = Kind::kReceive, .to = to, .bytes = BytesOf(count, type), .partner = peer});
}

ncclResult_t ncclGroupStart() {
  const Call call("ncclGroupStart");
  if (call.error() != ncclSuccess) return call.error();
  ++TheGroup().depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  const Call call("ncclGroupEnd");
  OpenGroup& group = TheGroup();
  if (group.depth == 0) return ncclInvalidUsage;
  if (--group.depth > 0) return call.error();
  auto batches = std::exchange(group.batches, {});
  if (call.error() != ncclSuccess) return call.error();
  for (auto& [member, batch] : batches) Submit(member, std::move(batch));
  return batches.empty() ? ncclSuccess : ncclInProgress;
}

namespace tactus::nccl_double {

void Reset() {
  World& world = TheWorld();
  const std::lock_guard lock(world.mutex);
  if (!world.live.empty() || world.hanging > 0) {
    std::fprintf(stderr, "double of NCCL: reset while there are communicators or calls\n");
    std::abort();
  }
  for (const std::unique_ptr<ncclComm>& communicator : world.all) {
    communicator->member->clique->members.clear();
  }
  world.version = NCCL_VERSION_CODE;
  world.polls = 1;
  world.cliques.clear();
  world.all.clear();
  world.calls.clear();
  world.faults.clear();
  world.stalled.clear();
  world.hangs_in_abort.clear();
  world.slow.clear();
  world.tears = false;
  world.does_not_register.clear();
  world.complaints.clear();
  world.aborts = 0;
  world.aborts_to_meet = 0;
}

void SetVersion(int version) {
  const std::lock_guard lock(TheWorld().mutex);
  TheWorld().version = version;
}

void FailCall(const std::string& function, int nth, ncclResult_t error) {
  World& world = TheWorld();
  const std::lock_guard lock(world.mutex);
  world.faults[function] = {.at = world.calls[function] + nth, .error = error};
}

void HangCall(const std::string& function, int nth) {
  World& world = TheWorld();
  const std::lock_guard lock(world.mutex);
  world.faults[function] = {.at = world.calls[function] + nth, .hangs = true};
}

void HangAbort(int rank) {
  const std::lock_guard lock(TheWorld().mutex);
  TheWorld().hangs_in_abort.insert(rank);
}

void MeetInAbort(int count) {
  const std::lock_guard lock(TheWorld().mutex);
  TheWorld().aborts_to_meet = count;
}

void FailRank(int rank, ncclResult_t error) {
  World& world = TheWorld();
  const std::lock_guard lock(world.mutex);
  for (const ncclComm_t communicator : world.live) {
    if (communicator->member->rank == rank) communicator->member->error = error;
  }
}

void StallRank(int rank) {
  const std::lock_guard lock(TheWorld().mutex);
  TheWorld().stalled.insert(rank);
}

void SlowRank(int rank, int tries) {
  const std::lock_guard lock(TheWorld().mutex);
  TheWorld().slow[rank] = tries;
}

void TearAborted() {
  const std::lock_guard lock(TheWorld().mutex);
  TheWorld().tears = true;
}

void DoNotRegister(int rank) {
  const std::lock_guard lock(TheWorld().mutex);
  TheWorld().does_not_register.insert(rank);
}

void SetPolls(int polls) {
  const std::lock_guard lock(TheWorld().mutex);
  TheWorld().polls = polls;
}

void Release() {
  World& world = TheWorld();
  const std::lock_guard lock(world.mutex);
  ++world.releases;
  world.stalled.clear();
  world.hangs_in_abort.clear();
  world.changed.notify_all();
}

int Calls(const std::string& function) {
  const std::lock_guard lock(TheWorld().mutex);
  return TheWorld().calls[function];
}

int Hanging() {
  const std::lock_guard lock(TheWorld().mutex);
  return TheWorld().hanging;
}

std::vector<std::string> Complaints() {
  const std::lock_guard lock(TheWorld().mutex);
  return TheWorld().complaints;
}

int Communicators() {
  const std::lock_guard lock(TheWorld().mutex);
  return static_cast<int>(TheWorld().live.size());
}

}  // namespace tactus::nccl_double
