// Communicators on the doubles of NCCL and CUDA.

#include "cuda/nccl.h"

#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "cuda/stream_events.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/cuda_double/cuda_double.h"
#include "tests/support/nccl_double/nccl_double.h"

namespace tactus::cuda::nccl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Duration kLong = Seconds(60);
constexpr Duration kShort = Seconds(0.05);

// A pair of communicators, used by one thread: their calls do not wait.
class NcclTest : public ::testing::Test {
 protected:
  NcclTest() {
    cuda_double::Reset({.devices = 2});
    nccl_double::Reset();
    const MadeUniqueId made = MakeUniqueId();
    for (int rank = 0; rank < 2; ++rank) {
      pair_.at(Index(rank)) =
          Communicator::Begin({.rank = rank, .size = 2, .device = rank, .id = *made.id})
              .communicator;
      streams_.at(Index(rank)) = OpenStream().stream;
    }
    for (const auto& communicator : pair_) {
      EXPECT_EQ(Await(*communicator, PatienceFor(kLong)).state, State::kReady);
    }
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, 2 * sizeof(float)), cudaSuccess);
    floats_ = static_cast<float*>(memory);
    cudaMemset(floats_, 0, 2 * sizeof(float));
  }

  ~NcclTest() override {
    pair_ = {};
    streams_ = {};
    cudaFree(floats_);
    EXPECT_EQ(nccl_double::Communicators(), 0);
  }

  static std::size_t Index(int rank) { return static_cast<std::size_t>(rank); }
  Communicator& at(int rank) { return *pair_.at(Index(rank)); }
  Stream stream(int rank) { return streams_.at(Index(rank)).get(); }
  std::span<float> floats(int rank) { return {floats_ + rank, 1}; }
  std::span<std::byte> bytes(int rank) { return std::as_writable_bytes(floats(rank)); }

  static Patience PatienceFor(Duration limit) {
    return {.limit = limit, .now = [] { return Instant(); }, .what = "something"};
  }

  // Waits for both and for their streams.
  void Settle() {
    for (const int rank : {0, 1}) {
      EXPECT_EQ(Await(at(rank), PatienceFor(kLong)).state, State::kReady);
    }
    RunStreams();
  }

  // Both streams to their ends, which wait for each other.
  void RunStreams() {
    bool over = false;
    while (!over) {
      over = true;
      for (const int rank : {0, 1}) over = cudaStreamQuery(stream(rank)) == cudaSuccess && over;
    }
  }

  std::array<std::unique_ptr<Communicator>, 2> pair_ = {};
  std::array<OwnedStream, 2> streams_ = {};
  float* floats_ = nullptr;
};

TEST_F(NcclTest, EveryCallIsInProgressAtFirst) {
  EXPECT_EQ(at(0).AllReduceSum(floats(0), stream(0)).state, State::kInProgress);
  EXPECT_EQ(at(1).AllReduceSum(floats(1), stream(1)).state, State::kInProgress);
  Settle();
  EXPECT_EQ(at(0).Broadcast(floats(0), 1, stream(0)).state, State::kInProgress);
  EXPECT_EQ(at(1).Broadcast(floats(1), 1, stream(1)).state, State::kInProgress);
  Settle();
  EXPECT_EQ(at(0).Exchange(1, bytes(0), {}, stream(0)).state, State::kInProgress);
  EXPECT_EQ(at(1).Exchange(0, {}, bytes(1), stream(1)).state, State::kInProgress);
  Settle();
  EXPECT_EQ(nccl_double::Calls("ncclSend"), 1);
  EXPECT_EQ(nccl_double::Calls("ncclRecv"), 1);
  EXPECT_THAT(nccl_double::Complaints(), ElementsAre());
}

// What the double is for: NCCL forbids these, and answers by a hang at best.
TEST_F(NcclTest, TheDoubleNoticesACallWhileAnotherIsInProgress) {
  EXPECT_EQ(at(0).AllReduceSum(floats(0), stream(0)).state, State::kInProgress);

  EXPECT_EQ(at(0).AllReduceSum(floats(0), stream(0)).state, State::kFailed);

  EXPECT_THAT(nccl_double::Complaints(),
              ElementsAre("rank 0: ncclAllReduce while another call is in progress"));
}

TEST_F(NcclTest, TheDoubleNoticesASendOutsideOfAGroup) {
  ncclUniqueId id{};
  ncclGetUniqueId(&id);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t alone = nullptr;
  ncclCommInitRankConfig(&alone, 1, id, 0, &config);
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) ncclCommGetAsyncError(alone, &state);

  ncclSend(floats_, 1, ncclFloat32, 0, alone, stream(0));
  ncclCommAbort(alone);
  ncclCommAbort(alone);

  EXPECT_THAT(nccl_double::Complaints(),
              ElementsAre("rank 0: ncclSend outside of a group",
                          "ncclCommAbort of a communicator that was freed"));
}

TEST_F(NcclTest, TheDoubleNoticesMessagesOfDifferentLengths) {
  EXPECT_EQ(at(0).Exchange(1, bytes(0), {}, stream(0)).state, State::kInProgress);
  at(1).Exchange(0, {}, bytes(1).first(2), stream(1));

  EXPECT_THAT(nccl_double::Complaints(),
              ElementsAre(AllOf(HasSubstr("ncclRecv of 2 bytes"), HasSubstr("of 4 bytes"))));
  EXPECT_EQ(at(0).Poll().state, State::kFailed);
}

TEST_F(NcclTest, AGroupThatFailsIsEndedAllTheSame) {
  nccl_double::FailCall("ncclSend", 1, ncclSystemError);

  const Standing standing = at(0).Exchange(1, bytes(0), bytes(1), stream(0));

  EXPECT_EQ(standing.state, State::kFailed);
  EXPECT_THAT(standing.reason, AllOf(HasSubstr("ncclSend"), HasSubstr("unhandled system error")));
  EXPECT_EQ(nccl_double::Calls("ncclGroupEnd"), 1);
  EXPECT_EQ(nccl_double::Calls("ncclRecv"), 0);
}

TEST_F(NcclTest, AfterAFailureNothingIsCalledButAbort) {
  nccl_double::FailRank(0, ncclRemoteError);
  const Standing first = at(0).Poll();
  EXPECT_EQ(first.state, State::kFailed);

  EXPECT_EQ(at(0).Poll().reason, first.reason);  // it stays
  EXPECT_EQ(at(0).AllReduceSum(floats(0), stream(0)).reason, first.reason);
  EXPECT_EQ(at(0).Leave(PatienceFor(kLong), kLong, nullptr), Aborted::kYes);

  EXPECT_EQ(nccl_double::Calls("ncclAllReduce"), 0);
  EXPECT_EQ(nccl_double::Calls("ncclCommFinalize"), 0);
  EXPECT_EQ(nccl_double::Calls("ncclCommDestroy"), 0);
  EXPECT_EQ(nccl_double::Calls("ncclCommAbort"), 1);
}

TEST_F(NcclTest, LeavingLetsWhatIsQueuedArrive) {
  nccl_double::StallRank(1);
  at(0).AllReduceSum(floats(0), stream(0));
  at(1).AllReduceSum(floats(1), stream(1));
  for (const int rank : {0, 1}) Await(at(rank), PatienceFor(kLong));
  std::atomic<bool> left = false;

  std::thread leaving([&] {
    EXPECT_EQ(at(0).Leave(PatienceFor(kLong), kLong, nullptr), Aborted::kYes);
    left = true;
  });
  while (nccl_double::Calls("ncclCommFinalize") == 0) std::this_thread::yield();
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(left);
  nccl_double::Release();
  RunStreams();
  leaving.join();

  EXPECT_EQ(nccl_double::Calls("ncclCommDestroy"), 1);
  EXPECT_EQ(nccl_double::Calls("ncclCommAbort"), 0);
}

TEST_F(NcclTest, LeavingHasALimit) {
  at(0).AllReduceSum(floats(0), stream(0));
  Await(at(0), PatienceFor(kLong));
  std::atomic<std::int64_t> seconds = 0;
  const Patience patience{.limit = Seconds(5),
                          .now = [&] { return Instant(Seconds(1) * ++seconds); }};

  EXPECT_EQ(at(0).Leave(patience, kLong, nullptr), Aborted::kYes);

  EXPECT_EQ(nccl_double::Calls("ncclCommDestroy"), 0);
  EXPECT_EQ(nccl_double::Calls("ncclCommAbort"), 1);
}

TEST_F(NcclTest, AFreeThatHangsWhileLeavingIsToldAndHoldsUpNobody) {
  nccl_double::HangCall("ncclCommDestroy", 1);
  auto kept = std::make_shared<int>(1);
  const std::weak_ptr<int> seen = kept;

  EXPECT_EQ(at(0).Leave(PatienceFor(kLong), kShort, std::exchange(kept, nullptr)), Aborted::kHangs);
  EXPECT_EQ(at(0).Poll().state, State::kInProgress);
  EXPECT_EQ(at(0).Abort(kShort, nullptr), Aborted::kHangs);  // there is no second end
  EXPECT_FALSE(seen.expired());
  nccl_double::Release();

  while (!seen.expired()) std::this_thread::yield();
  EXPECT_EQ(nccl_double::Calls("ncclCommAbort"), 0);
}

// Another member that is frozen answers nobody.
TEST_F(NcclTest, ADeregistrationThatHangsWhileLeavingHoldsUpNobody) {
  ASSERT_TRUE(at(0).Register(floats(0)));
  nccl_double::HangCall("ncclCommDeregister", 1);

  EXPECT_EQ(at(0).Leave(PatienceFor(kLong), kShort, nullptr), Aborted::kHangs);
  nccl_double::Release();

  while (nccl_double::Calls("ncclCommAbort") == 0) std::this_thread::yield();
  EXPECT_EQ(nccl_double::Calls("ncclCommDestroy"), 0);
}

TEST_F(NcclTest, AwaitEndsByItsLimitAndNamesWhatItWaitedFor) {
  nccl_double::SetPolls(1'000'000'000);
  at(0).AllReduceSum(floats(0), stream(0));
  std::atomic<std::int64_t> seconds = 0;

  const Standing standing = Await(at(0), {.limit = Seconds(5),
                                          .now = [&] { return Instant(Seconds(1) * ++seconds); },
                                          .what = "all-reduce: NCCL did not queue it"});

  EXPECT_EQ(standing.state, State::kFailed);
  EXPECT_THAT(standing.reason, HasSubstr("all-reduce: NCCL did not queue it within 5.0"));
}

TEST_F(NcclTest, AnAbortIsMadeOnce) {
  const auto kept = std::make_shared<int>(1);

  EXPECT_EQ(at(0).Abort(kLong, kept), Aborted::kYes);
  EXPECT_EQ(at(0).Abort(kLong, nullptr), Aborted::kYes);
  EXPECT_EQ(at(0).Poll().state, State::kFailed);
  pair_[0].reset();

  EXPECT_EQ(kept.use_count(), 1);
  EXPECT_EQ(nccl_double::Calls("ncclCommAbort"), 1);
}

TEST_F(NcclTest, AnAbortThatHangsIsToldAndKeepsWhatItNeeds) {
  nccl_double::HangCall("ncclCommAbort", 1);
  auto kept = std::make_shared<int>(1);
  const std::weak_ptr<int> seen = kept;

  EXPECT_EQ(at(0).Abort(kShort, std::exchange(kept, nullptr)), Aborted::kHangs);
  EXPECT_FALSE(seen.expired());
  EXPECT_EQ(at(0).Poll().state, State::kInProgress);  // and does not hang as well
  pair_[0].reset();                                   // nor does this
  EXPECT_FALSE(seen.expired());
  nccl_double::Release();

  while (!seen.expired()) std::this_thread::yield();
}

// Each of the two aborts ends only after both were begun: one after the other would hang.
TEST_F(NcclTest, SeveralAreAbortedAtOnce) {
  nccl_double::MeetInAbort(2);
  const std::array<Communicator*, 2> both = {&at(0), &at(1)};

  AbortAll(both, kLong, [](Communicator&) { FAIL(); });

  EXPECT_EQ(nccl_double::Communicators(), 0);
}

TEST_F(NcclTest, OneThatHangsIsToldAndTheOtherIsAborted) {
  nccl_double::HangCall("ncclCommAbort", 1);
  const std::array<Communicator*, 2> both = {&at(0), &at(1)};
  std::vector<Communicator*> hanging;

  AbortAll(both, kShort, [&](Communicator& communicator) { hanging.push_back(&communicator); });

  EXPECT_EQ(hanging.size(), 1u);
  EXPECT_EQ(nccl_double::Communicators(), 1);
  nccl_double::Release();
  while (nccl_double::Communicators() > 0) std::this_thread::yield();
}

TEST_F(NcclTest, MemoryIsRegisteredUntilItIsTakenBack) {
  for (const int rank : {0, 1}) EXPECT_TRUE(at(rank).Register(floats(rank)));
  for (const int rank : {0, 1}) at(rank).AllReduceSum(floats(rank), stream(rank));
  Settle();

  for (const int rank : {0, 1}) EXPECT_EQ(at(rank).Deregister().state, State::kReady);
  for (const int rank : {0, 1}) EXPECT_EQ(at(rank).Deregister().state, State::kReady);

  EXPECT_EQ(nccl_double::Calls("ncclCommDeregister"), 2);
  EXPECT_THAT(nccl_double::Complaints(), ElementsAre());
}

TEST_F(NcclTest, MemoryThatNcclLeavesAloneIsNotRegistered) {
  nccl_double::FailCall("ncclCommRegister", 1, ncclUnhandledCudaError);
  EXPECT_FALSE(at(0).Register(floats(0)));
  nccl_double::DoNotRegister(0);  // which it calls a success
  EXPECT_FALSE(at(0).Register(floats(0)));

  EXPECT_EQ(at(0).Deregister().state, State::kReady);
  for (const int rank : {0, 1}) at(rank).AllReduceSum(floats(rank), stream(rank));
  Settle();

  EXPECT_EQ(nccl_double::Calls("ncclCommDeregister"), 0);
  EXPECT_THAT(nccl_double::Complaints(), ElementsAre());
}

TEST_F(NcclTest, MemoryThatCannotBeTakenBackEndsTheCommunicator) {
  EXPECT_TRUE(at(0).Register(floats(0)));
  nccl_double::FailCall("ncclCommDeregister", 1, ncclSystemError);

  EXPECT_THAT(at(0).Deregister().reason, HasSubstr("ncclCommDeregister: unhandled system error"));

  EXPECT_EQ(at(0).Poll().state, State::kFailed);
  EXPECT_FALSE(at(0).Register(floats(0)));
}

TEST_F(NcclTest, EndsOfACommunicatorTakeMemoryBack) {
  for (const int rank : {0, 1}) EXPECT_TRUE(at(rank).Register(floats(rank)));

  EXPECT_EQ(at(0).Leave(PatienceFor(kLong), kLong, nullptr), Aborted::kYes);
  EXPECT_EQ(at(1).Abort(kLong, nullptr), Aborted::kYes);

  EXPECT_EQ(nccl_double::Calls("ncclCommDeregister"), 1);  // an abort does it by itself
  EXPECT_THAT(nccl_double::Complaints(), ElementsAre());
}

TEST_F(NcclTest, MemoryOfItsOwnIsZerosOrNotThere) {
  const std::unique_ptr<Device> device = OpenDevice("cuda:1").device;
  const Buffer buffer = Allocate(*device, 100);
  std::vector<float> values(100, 1);
  device->Copy(buffer.span(), values);
  device->Synchronize();
  EXPECT_THAT(values, ::testing::Each(0.0f));

  nccl_double::FailCall("ncclMemAlloc", 1, ncclUnhandledCudaError);
  EXPECT_EQ(Allocate(*device, 100).size(), 0u);
  EXPECT_EQ(Allocate(*device, 0).size(), 0u);
  EXPECT_EQ(Allocate(*MakeHostDevice("cpu:0"), 100).size(), 0u);
}

TEST_F(NcclTest, TheDoubleNoticesMemoryThatOneAloneHasRegistered) {
  EXPECT_TRUE(at(0).Register(floats(0)));

  at(0).AllReduceSum(floats(0), stream(0));
  at(1).AllReduceSum(floats(1), stream(1));

  EXPECT_THAT(
      nccl_double::Complaints(),
      ElementsAre("rank 1: ncclAllReduce in memory that is not registered, unlike another's"));
}

TEST_F(NcclTest, TheDoubleNoticesHowRegistrationsEnd) {
  ncclUniqueId id{};
  ncclGetUniqueId(&id);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t alone = nullptr;
  ncclCommInitRankConfig(&alone, 1, id, 0, &config);
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) ncclCommGetAsyncError(alone, &state);
  void* memory = nullptr;
  ncclMemAlloc(&memory, 64);
  void* handle = nullptr;
  ncclCommRegister(alone, memory, 64, &handle);

  ncclMemFree(memory);
  ncclCommDeregister(alone, handle);
  ncclCommDeregister(alone, handle);
  ncclCommRegister(alone, floats_, 8, &handle);
  ncclCommDestroy(alone);

  const std::string not_final =
      "rank 0: ncclCommDestroy after an error, or of what is not finalized";
  EXPECT_THAT(nccl_double::Complaints(),
              ElementsAre("rank 0: ncclMemFree of memory that is registered",
                          "rank 0: ncclCommDeregister of what is not registered", not_final,
                          "rank 0: ncclCommDestroy with memory that is registered"));
}

TEST(NcclMemoryTest, ItIsFreedBehindWhatOthersHaveQueued) {
  cuda_double::Reset({.devices = 2, .timing = cuda_double::Timing{}});
  nccl_double::Reset();
  const std::unique_ptr<Device> device = OpenDevice("cuda:1").device;
  EXPECT_TRUE(UseDevice(1).empty());
  const OwnedStream of_a_program = OpenStream().stream;
  EXPECT_TRUE(UseDevice(0).empty());
  float seen = 1;
  {
    Buffer buffer = Allocate(*device, 100);
    device->Synchronize();
    cuda_double::Queue(of_a_program.get(), [&seen, values = buffer.span()] {
      const cuda_double::OpenMemory open;
      seen = values[99];
      return true;
    });
  }
  EXPECT_EQ(seen, 0);
  EXPECT_TRUE(UseDevice(0).empty());
}

TEST_F(NcclTest, TheVersionIsThatOfRunTime) {
  EXPECT_EQ(Version(), 22809);
  nccl_double::SetVersion(22703);
  EXPECT_EQ(Version(), 22703);
}

}  // namespace
}  // namespace tactus::cuda::nccl
