#include "agent/collective/nccl_transport.h"

#include <cstddef>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "agent/collective/device_transport.h"
#include "agent/collective/heartbeat.h"
#include "agent/collective/nccl_group.h"
#include "base/check.h"
#include "cuda/nccl.h"
#include "cuda/nccl_endpoint.h"
#include "cuda/stream_events.h"
#include "threads/mutex.h"

namespace tactus::collective {
namespace {

namespace nccl = cuda::nccl;

class NcclCollective : public Collective {
 public:
  NcclCollective(std::shared_ptr<NcclGroup> group, const Operation& operation)
      : group_(std::move(group)), ticket_(group_->Start(operation)) {}
  ~NcclCollective() override { group_->Wait(*ticket_); }

  Progress Poll() override { return group_->Poll(*ticket_); }
  Completion Wait() override { return group_->Wait(*ticket_); }
  Progress WaitOnDevice() override { return group_->WaitOnDevice(*ticket_); }

 private:
  const std::shared_ptr<NcclGroup> group_;    // shared with the transport and its threads
  const std::shared_ptr<NcclTicket> ticket_;  // shared with the group's queue
};

class NcclTransport : public DeviceTransport {
 public:
  NcclTransport(int rank, int size, std::shared_ptr<NcclGroup> group)
      : rank_(rank),
        size_(size),
        group_(std::move(group)),
        calls_([own = group_] { own->RunCalls(); }),
        watch_([own = group_] { own->RunWatch(); }) {}

  // A call of NCCL that hangs keeps its thread, and the thread the group: the process has to end.
  ~NcclTransport() override {
    group_->Leave();
    watch_.join();
    if (group_->hangs()) {
      calls_.detach();
    } else {
      calls_.join();
    }
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::unique_ptr<Collective> Start(const Operation& operation) override {
    return std::make_unique<NcclCollective>(group_, operation);
  }

  const std::uint32_t* lost() const override { return group_->lost(); }
  bool Register(std::span<float> memory) override { return group_->Register(memory); }
  void Deregister() override { group_->Deregister(); }
  Awaiting awaiting() override { return group_->awaiting(); }
  std::vector<int> failed() override { return group_->failed(); }
  void Abort(const std::string& reason) override { group_->Abort(reason); }

 private:
  // Constant after construction.
  const int rank_;
  const int size_;
  const std::shared_ptr<NcclGroup> group_;  // shared with the threads and the handles
  std::thread calls_;
  std::thread watch_;
};

// A collective that was over when it was started.
class OverCollective : public Collective {
 public:
  OverCollective(Completion completion, std::function<Instant()> now)
      : completion_(std::move(completion)), now_(std::move(now)) {}

  Progress Poll() override { return completion_.progress; }
  Completion Wait() override {
    Completion completion = completion_;
    completion.at = now_();
    return completion;
  }

 private:
  const Completion completion_;
  const std::function<Instant()> now_;
};

// A group of one: every sum is there already.
class SoloTransport : public Transport {
 public:
  explicit SoloTransport(std::function<Instant()> now) : now_(std::move(now)) {}

  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::unique_ptr<Collective> Start(const Operation& operation) override {
    const threads::MutexLock lock(mutex_);
    if (!aborted_ && operation.kind == Operation::Kind::kConversation) CarryOut({&operation, 1});
    Completion completion = aborted_ ? *aborted_ : Completion{.finished = now_()};
    return std::make_unique<OverCollective>(std::move(completion), now_);
  }

  void Abort(const std::string& reason) override {
    const threads::MutexLock lock(mutex_);
    if (aborted_) return;
    aborted_ = Completion{.progress = Progress::kFailed, .finished = now_(), .reason = reason};
  }

 private:
  const std::function<Instant()> now_;
  threads::Mutex mutex_;  // Abort may come from any thread
  std::optional<Completion> aborted_ ABSL_GUARDED_BY(mutex_);
};

// A unique id, or the reason why there is none.
nccl::MadeUniqueId Rendezvous(const NcclMeeting& meeting) {
  nccl::Endpoint own{
      .generation = meeting.generation, .rank = meeting.rank, .nccl_version = nccl::Version()};
  if (meeting.rank == 0) {
    nccl::MadeUniqueId made{.id = meeting.id};
    if (!made.id) made = nccl::MakeUniqueId();
    if (!made.id) return made;
    own.id = made.id;
  }
  const std::vector<std::string> endpoints = meeting.exchange(nccl::ToText(own));
  if (endpoints.size() != static_cast<std::size_t>(meeting.size)) {
    return {.reason = "the group was given up before it was connected"};
  }
  std::optional<nccl::UniqueId> id;
  for (int rank = 0; rank < meeting.size; ++rank) {
    const nccl::ParsedEndpoint parsed = nccl::EndpointFromText(
        endpoints[static_cast<std::size_t>(rank)],
        {.generation = meeting.generation, .rank = rank, .nccl_version = own.nccl_version});
    if (!parsed.endpoint) return {.reason = parsed.reason};
    if (rank == 0) id = parsed.endpoint->id;
  }
  return {.id = id};
}

// A communicator of which all members have come, or the reason why there is none.
nccl::BegunCommunicator Meet(const NcclMeeting& meeting, Heartbeat& heartbeat) {
  const nccl::MadeUniqueId id = Rendezvous(meeting);
  if (!id.id) return {.reason = id.reason};
  nccl::BegunCommunicator begun = nccl::Communicator::Begin(
      {.rank = meeting.rank, .size = meeting.size, .device = meeting.device, .id = *id.id});
  if (begun.communicator == nullptr) return begun;
  // NCCL waits for one who has died as for one who is still to come.
  const auto give_up = [&] {
    const std::string why = meeting.give_up ? meeting.give_up() : "";
    return why.empty() ? heartbeat.Look(meeting.now()) : why;
  };
  const nccl::Standing standing = nccl::Await(
      *begun.communicator, {.limit = meeting.meet_limit,
                            .now = meeting.now,
                            .give_up = give_up,
                            .what = "init of NCCL: not all of the " + std::to_string(meeting.size) +
                                    " members have come"});
  if (standing.state == nccl::State::kReady) return begun;
  begun.reason = standing.reason;
  // The others abort as well then: one abort may wait for another member's.
  meeting.signals->Abort(begun.reason);
  heartbeat.Abort(begun.reason);
  if (begun.communicator->Abort(meeting.abort_limit, nullptr) == nccl::Aborted::kHangs) {
    begun.reason += "; NCCL did not end: the process has to end";
    if (meeting.must_end) meeting.must_end(begun.reason);
  }
  begun.communicator = nullptr;
  return begun;
}

ConnectedTransport ConnectAlone(const NcclMeeting& meeting) {
  const bool given_up = meeting.exchange("alone").size() != 1;
  if (given_up) return {.reason = "the group was given up before it was connected"};
  return {.transport = MakeSoloTransport(meeting.now)};
}

}  // namespace

std::unique_ptr<Transport> MakeSoloTransport(std::function<Instant()> now) {
  return std::make_unique<SoloTransport>(std::move(now));
}

ConnectedTransport ConnectNccl(NcclMeeting meeting) {
  TACTUS_CHECK(meeting.size >= 1 && meeting.rank >= 0 && meeting.rank < meeting.size);
  TACTUS_CHECK(meeting.exchange && meeting.now);
  if (meeting.size == 1) return ConnectAlone(meeting);
  TACTUS_CHECK(meeting.signals != nullptr && meeting.signals->size() == meeting.size);
  TACTUS_CHECK(meeting.signals->rank() == meeting.rank);
  const std::string reason = cuda::UseDevice(meeting.device);
  if (!reason.empty()) return {.reason = reason, .own = true};
  cuda::OpenedStream stream = cuda::OpenStream();
  if (stream.stream == nullptr) return {.reason = stream.reason, .own = true};
  cuda::OpenedEvent quiet = cuda::OpenEvent();
  if (quiet.event == nullptr) return {.reason = quiet.reason, .own = true};
  cuda::OpenedFlag lost = cuda::OpenFlag();
  if (lost.flag == nullptr) return {.reason = lost.reason, .own = true};
  auto heartbeat = std::make_unique<Heartbeat>(std::move(meeting.heartbeat),
                                               meeting.heartbeat_interval, meeting.now());
  nccl::BegunCommunicator begun = Meet(meeting, *heartbeat);
  if (begun.communicator == nullptr) return {.reason = begun.reason};
  const int rank = meeting.rank;
  const int size = meeting.size;
  meeting.exchange = nullptr;  // the meeting is over; what they refer to may go
  meeting.give_up = nullptr;
  auto group = std::make_shared<NcclGroup>(
      std::move(meeting), std::move(heartbeat), std::move(begun.communicator),
      NcclGroup::DeviceParts{.stream = std::move(stream.stream),
                             .quiet = std::move(quiet.event),
                             .lost = std::move(lost.flag)});
  return {.transport = std::make_unique<NcclTransport>(rank, size, std::move(group))};
}

}  // namespace tactus::collective
