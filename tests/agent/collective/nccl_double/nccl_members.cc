#include "tests/agent/collective/nccl_double/nccl_members.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "agent/collective/in_process.h"
#include "base/check.h"
#include "tests/agent/collective/endpoint_board.h"
#include "tests/support/cuda_double/cuda_double.h"
#include "tests/support/nccl_double/nccl_double.h"

namespace tactus::collective {
namespace {

// Memory that waits to be freed: cudaFree waits for all that runs, and other members' collectives
// may run to the end of a test.
class Parked {
 public:
  void Park(void* memory) {
    const std::lock_guard lock(mutex_);
    memory_.push_back(memory);
  }

  void FreeAll() {
    const std::lock_guard lock(mutex_);
    for (void* const memory : memory_) cudaFree(memory);
    memory_.clear();
  }

 private:
  std::mutex mutex_;
  std::vector<void*> memory_;
};

Parked& TheParked() {
  static Parked parked;
  return parked;
}

}  // namespace

DeviceFloats::DeviceFloats(const std::vector<float>& values) : length_(values.size()) {
  void* memory = nullptr;
  TACTUS_CHECK(cudaMalloc(&memory, std::max<std::size_t>(length_, 1) * sizeof(float)) ==
               cudaSuccess);
  data_ = static_cast<float*>(memory);
  TACTUS_CHECK(cudaMemcpy(data_, values.data(), length_ * sizeof(float), cudaMemcpyHostToDevice) ==
               cudaSuccess);
  TACTUS_CHECK(cudaStreamSynchronize(nullptr) == cudaSuccess);  // no other stream waits for that
}

DeviceFloats::~DeviceFloats() { TheParked().Park(data_); }

std::vector<float> DeviceFloats::values() const {
  std::vector<float> values(length_);
  TACTUS_CHECK(cudaMemcpy(values.data(), data_, length_ * sizeof(float), cudaMemcpyDeviceToHost) ==
               cudaSuccess);
  return values;
}

std::vector<float> SumInProcess(int size, std::size_t length, std::uint64_t seed) {
  const auto members = MakeInProcessGroup(size, [] { return Instant(); });
  std::vector<float> sum;
  OnEveryRank(size, [&](int rank) {
    std::vector<float> buffer = RandomValues(length, seed + static_cast<std::uint64_t>(rank));
    members[static_cast<std::size_t>(rank)]->StartAllReduceSum(buffer)->Wait();
    if (rank == 0) sum = buffer;
  });
  return sum;
}

NcclMembers::NcclMembers() {
  cuda_double::Reset({.devices = kSizeMax});
  nccl_double::Reset();
}

NcclMembers::~NcclMembers() {
  LeaveAll();
  TheParked().FreeAll();
  EXPECT_TRUE(Eventually([] { return nccl_double::Communicators() == 0; }));
  EXPECT_TRUE(Eventually([] { return cuda_double::Streams() == 0; }));
  EXPECT_TRUE(Eventually([] { return cuda_double::Events() == 0; }));
  EXPECT_EQ(cuda_double::DeviceBytes(), 0u);
  if (complaints_forgiven_) return;
  for (const std::string& complaint : nccl_double::Complaints()) ADD_FAILURE() << complaint;
}

std::vector<NcclMeeting> NcclMembers::Meetings(int size) {
  const auto board = std::make_shared<EndpointBoard>(size);
  const auto now = [this] { return clock_.Now(); };
  std::vector<std::unique_ptr<Transport>> signals = MakeInProcessGroup(size, now);
  std::vector<std::unique_ptr<Transport>> heartbeats = MakeInProcessGroup(size, now);
  std::vector<NcclMeeting> meetings;
  for (int rank = 0; rank < size; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    NcclMeeting meeting;
    meeting.rank = rank;
    meeting.size = size;
    meeting.generation = generation_;
    meeting.device = rank;
    meeting.exchange = [board, rank](const std::string& own) { return board->Exchange(rank, own); };
    meeting.now = now;
    meeting.heartbeat_interval = Duration(0);
    meeting.signals = std::move(signals[index]);
    meeting.heartbeat = std::move(heartbeats[index]);
    meetings.push_back(std::move(meeting));
  }
  return meetings;
}

void NcclMembers::Connect(int size, const Adjust& adjust) {
  LeaveAll();
  std::vector<NcclMeeting> meetings = Meetings(size);
  members_.resize(meetings.size());
  OnEveryRank(size, [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    if (adjust) adjust(meetings[index]);
    members_[index] = ConnectNccl(std::move(meetings[index]));
  });
}

// All at once, as a member that leaves waits for what it has sent.
void NcclMembers::LeaveAll() {
  OnEveryRank(size(), [this](int rank) { Leave(rank); });
  members_.clear();
}

bool NcclMembers::EveryoneGetsTheSum(std::size_t length, std::uint64_t seed) {
  const std::vector<float> expected = SumInProcess(size(), length, seed);
  std::vector<char> right(static_cast<std::size_t>(size()));
  OnEveryRank(size(), [&](int rank) {
    const DeviceFloats buffer(RandomValues(length, seed + static_cast<std::uint64_t>(rank)));
    const Completion completion = member(rank).StartAllReduceSum(buffer.span())->Wait();
    EXPECT_EQ(completion.progress, Progress::kDone) << completion.reason;
    right[static_cast<std::size_t>(rank)] = SameBits(buffer.values(), expected);
  });
  return std::vector<char>(right.size(), 1) == right;
}

void NcclMembers::OnEveryRankInTime(int size, const std::function<void(int rank)>& body) {
  std::atomic<bool> over = false;
  std::thread time([&] {
    for (int i = 0; i < 600 && !over; ++i) {
      clock_.Advance(Seconds(0.1));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  OnEveryRank(size, body);
  over = true;
  time.join();
}

// Every member's watch asks its communicator now and then.
bool NcclMembers::StaysRunning(Collective& collective) {
  constexpr int kTimes = 100;
  const int before = nccl_double::Calls("ncclCommGetAsyncError");
  bool running = true;
  const bool went_on = Eventually([&] {
    running = running && collective.Poll() == Progress::kRunning;
    return nccl_double::Calls("ncclCommGetAsyncError") >= before + kTimes;
  });
  return running && went_on;
}

bool NcclMembers::Eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace tactus::collective
