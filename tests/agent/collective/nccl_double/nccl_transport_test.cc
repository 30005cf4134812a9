// The contract of Transport, held against the NCCL transport on the doubles of NCCL and CUDA.

#include "agent/collective/nccl_transport.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "agent/collective/registration.h"
#include "agent/collective/rehearsal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/collective/counting_conversation.h"
#include "tests/agent/collective/nccl_double/nccl_members.h"
#include "tests/support/cuda_double/cuda_double.h"
#include "tests/support/nccl_double/nccl_double.h"

namespace tactus::collective {
namespace {

using ::testing::HasSubstr;

std::uint64_t SeedOf(int rank) { return static_cast<std::uint64_t>(rank); }

class NcclTransportTest : public NcclMembers, public ::testing::WithParamInterface<int> {
 protected:
  NcclTransportTest() { Connect(GetParam()); }
};

TEST_P(NcclTransportTest, MembersKnowTheirPlace) {
  for (int rank = 0; rank < size(); ++rank) {
    EXPECT_EQ(member(rank).rank(), rank);
    EXPECT_EQ(member(rank).size(), GetParam());
  }
}

TEST_P(NcclTransportTest, EveryMemberGetsTheSumOfTheInProcessTransport) {
  for (const std::size_t length : {0, 1, 2, 17, 1000, 40'003}) {
    EXPECT_TRUE(EveryoneGetsTheSum(length, 7 * length)) << "length " << length;
  }
}

TEST_P(NcclTransportTest, BroadcastGivesEveryoneTheRootsValues) {
  for (int root = 0; root < size(); ++root) {
    OnEveryRank(size(), [&](int rank) {
      const DeviceFloats buffer(RandomValues(3000, SeedOf(rank)));
      const Completion completion = member(rank).StartBroadcast(buffer.span(), root)->Wait();
      EXPECT_EQ(completion.progress, Progress::kDone) << completion.reason;
      EXPECT_EQ(buffer.values(), RandomValues(3000, SeedOf(root)));
    });
  }
}

// Whom `rank` turns to in a turn, the same turn for both; itself in one of them.
int PartnerOf(int rank, int turn, int size) { return (turn + size - rank) % size; }

// What a member sends is empty now and then.
std::size_t FloatsOf(int from, int turn) {
  return static_cast<std::size_t>((from + 2 * turn) % 3) * 500;
}

TEST_P(NcclTransportTest, AnExchangeGivesEachWhatTheOtherSent) {
  OnEveryRank(size(), [&](int rank) {
    for (int turn = 0; turn < 2 * size(); ++turn) {
      const int peer = PartnerOf(rank, turn, size());
      if (peer == rank) continue;
      const DeviceFloats sent(RandomValues(FloatsOf(rank, turn), SeedOf(10 * rank + turn)));
      const DeviceFloats received(std::vector<float>(FloatsOf(peer, turn)));
      const Completion completion =
          member(rank).StartExchange(peer, sent.bytes(), received.bytes())->Wait();
      EXPECT_EQ(completion.progress, Progress::kDone) << completion.reason;
      EXPECT_EQ(received.values(), RandomValues(FloatsOf(peer, turn), SeedOf(10 * peer + turn)));
    }
  });
}

TEST_P(NcclTransportTest, ARehearsalTakesItThroughWithoutATrace) {
  OnEveryRank(size(), [&](int rank) {
    const DeviceFloats buffer(std::vector<float>(1001));
    EXPECT_EQ(Rehearse(member(rank), buffer.span()), "");
    EXPECT_THAT(buffer.values(), ::testing::Each(0.0f));
  });
  EXPECT_TRUE(EveryoneGetsTheSum(1000, 7));
}

TEST_P(NcclTransportTest, MemoryIsRegisteredByAll) {
  OnEveryRank(size(), [&](int rank) {
    const DeviceFloats buffer(std::vector<float>(1001));
    EXPECT_EQ(RegisterTogether(member(rank), buffer.span(), true), size() > 1);
    EXPECT_EQ(Rehearse(member(rank), buffer.span()), "");
    member(rank).Deregister();
  });
  const int members = size() > 1 ? size() : 0;
  EXPECT_EQ(nccl_double::Calls("ncclCommRegister"), members);
  EXPECT_EQ(nccl_double::Calls("ncclCommDeregister"), members);
}

// Be it that its memory is not fit, that NCCL fails or that its environment forbids it.
TEST_P(NcclTransportTest, MemoryThatOneDoesNotRegisterIsRegisteredByNone) {
  for (const int why : {0, 1, 2}) {
    const int last = size() - 1;
    if (why == 1) nccl_double::FailCall("ncclCommRegister", 1, ncclSystemError);
    if (why == 2) nccl_double::DoNotRegister(last);
    OnEveryRank(size(), [&](int rank) {
      const DeviceFloats buffer(std::vector<float>(1001));
      EXPECT_FALSE(RegisterTogether(member(rank), buffer.span(), why != 0 || rank != last));
      EXPECT_EQ(Rehearse(member(rank), buffer.span()), "");
    });
  }
  EXPECT_EQ(nccl_double::Calls("ncclCommDeregister"), size() > 1 ? 3 * (size() - 1) : 0);
}

TEST_P(NcclTransportTest, WhoLeavesHasNothingRegistered) {
  std::vector<std::unique_ptr<DeviceFloats>> buffers;
  for (int rank = 0; rank < size(); ++rank) {
    buffers.push_back(std::make_unique<DeviceFloats>(std::vector<float>(100)));
  }
  OnEveryRank(size(), [&](int rank) {
    RegisterTogether(member(rank), buffers[static_cast<std::size_t>(rank)]->span(), true);
  });

  LeaveAll();  // the double complains of what is left registered

  EXPECT_EQ(nccl_double::Calls("ncclCommDeregister"), GetParam() > 1 ? GetParam() : 0);
}

TEST_P(NcclTransportTest, BuffersOfTheHostGoByTheSignals) {
  const int calls = nccl_double::Calls("ncclAllReduce");
  OnEveryRank(size(), [&](int rank) {
    std::vector<float> buffer = {1.0f, static_cast<float>(rank)};
    if (size() == 1) return;  // nothing is moved
    EXPECT_EQ(member(rank).StartAllReduceSum(buffer)->Wait().progress, Progress::kDone);
    EXPECT_EQ(buffer.front(), static_cast<float>(size()));

    EXPECT_EQ(member(rank).StartBroadcast(buffer, size() - 1)->Wait().progress, Progress::kDone);
    const int peer = size() - 1 - rank;
    if (peer == rank) return;
    std::vector<int> sent = {rank}, received = {-1};
    const Completion completion = member(rank)
                                      .StartExchange(peer, std::as_bytes(std::span(sent)),
                                                     std::as_writable_bytes(std::span(received)))
                                      ->Wait();
    EXPECT_EQ(completion.progress, Progress::kDone) << completion.reason;
    EXPECT_EQ(received.front(), peer);
  });
  EXPECT_EQ(nccl_double::Calls("ncclAllReduce"), calls);
}

TEST_P(NcclTransportTest, ConversationsGoByTheSignalsInTheirPlace) {
  const std::vector<float> expected = ExpectedSum(size(), 5000, 3);
  OnEveryRank(size(), [&](int rank) {
    const DeviceFloats before(RandomValues(5000, 3 + SeedOf(rank)));
    const DeviceFloats behind(RandomValues(5000, 3 + SeedOf(rank)));
    CountingConversation conversation(rank, size());
    std::vector<std::unique_ptr<Collective>> handles;
    handles.push_back(member(rank).StartAllReduceSum(before.span()));
    handles.push_back(member(rank).StartConversation(conversation));
    handles.push_back(member(rank).StartAllReduceSum(behind.span()));

    EXPECT_EQ(handles.back()->Wait().progress, Progress::kDone);

    EXPECT_EQ(before.values(), expected);
    EXPECT_EQ(conversation.calls(), "B0B1B2E");
    EXPECT_TRUE(conversation.as_expected());
    EXPECT_EQ(behind.values(), expected);
  });
}

TEST_P(NcclTransportTest, ManyCollectivesInFlightFinishInOrder) {
  constexpr std::size_t kCount = 12;
  OnEveryRank(size(), [&](int rank) {
    std::vector<std::unique_ptr<DeviceFloats>> buffers;
    std::vector<std::unique_ptr<Collective>> handles;
    for (std::size_t i = 0; i < kCount; ++i) {
      buffers.push_back(std::make_unique<DeviceFloats>(RandomValues(i * 37, i + SeedOf(rank))));
      handles.push_back(member(rank).StartAllReduceSum(buffers.back()->span()));
    }
    EXPECT_EQ(handles.back()->Wait().progress, Progress::kDone);
    for (std::size_t i = 0; i < kCount; ++i) {
      EXPECT_EQ(handles[i]->Poll(), Progress::kDone) << i;
      EXPECT_EQ(buffers[i]->values(), SumInProcess(size(), i * 37, i)) << i;
    }
  });
}

TEST_P(NcclTransportTest, BarriersAndExchangesKeepTheirPlaceAmongTheOthers) {
  OnEveryRank(size(), [&](int rank) {
    const int peer = size() - 1 - rank;  // the one in the middle has none
    const DeviceFloats first(RandomValues(4000, 3 + SeedOf(rank)));
    const DeviceFloats second(RandomValues(4000, 50 + SeedOf(rank)));
    const DeviceFloats swapped(std::vector<float>(4000));
    std::vector<std::unique_ptr<Collective>> handles;
    handles.push_back(member(rank).StartAllReduceSum(first.span()));
    if (peer != rank) {
      handles.push_back(member(rank).StartExchange(peer, first.bytes(), swapped.bytes()));
    }
    handles.push_back(member(rank).StartBarrier());
    handles.push_back(member(rank).StartAllReduceSum(second.span()));

    EXPECT_EQ(handles.back()->Wait().progress, Progress::kDone);

    for (const auto& handle : handles) EXPECT_EQ(handle->Poll(), Progress::kDone);
    EXPECT_EQ(first.values(), SumInProcess(size(), 4000, 3));
    if (peer != rank) {
      EXPECT_EQ(swapped.values(), first.values());
    }
    EXPECT_EQ(second.values(), SumInProcess(size(), 4000, 50));
  });
}

TEST_P(NcclTransportTest, ABarrierIsDoneOnceAllHaveStartedIt) {
  std::atomic<int> come = 0;
  OnEveryRank(size(), [&](int rank) {
    for (int round = 1; round <= 5; ++round) {
      ++come;
      EXPECT_EQ(member(rank).StartBarrier()->Wait().progress, Progress::kDone);
      EXPECT_GE(come, round * size());
    }
  });
}

TEST_P(NcclTransportTest, DestroyingAHandleWaitsForItsCollective) {
  OnEveryRank(size(), [&](int rank) {
    const DeviceFloats buffer(RandomValues(3000, 5 + SeedOf(rank)));
    member(rank).StartAllReduceSum(buffer.span()).reset();
    EXPECT_EQ(buffer.values(), SumInProcess(size(), 3000, 5));
  });
}

TEST_P(NcclTransportTest, AMemberThatLeavesTakesNothingFromFinishedCollectives) {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    Connect(GetParam());
    const std::vector<float> expected = SumInProcess(size(), 7000, seed);
    OnEveryRank(size(), [&](int rank) {
      const DeviceFloats buffer(RandomValues(7000, seed + SeedOf(rank)));
      const Completion completion = member(rank).StartAllReduceSum(buffer.span())->Wait();
      Leave(rank);
      EXPECT_EQ(completion.progress, Progress::kDone) << completion.reason;
      EXPECT_EQ(buffer.values(), expected);
    });
  }
}

TEST_P(NcclTransportTest, TheFirstReasonOfAnAbortStays) {
  member(0).Abort("first");
  member(0).Abort("second");

  const DeviceFloats buffer({1.0f});
  for (int i = 0; i < 2; ++i) {
    const Completion completion = member(0).StartAllReduceSum(buffer.span())->Wait();
    EXPECT_EQ(completion.progress, Progress::kFailed);
    EXPECT_EQ(completion.reason, "first");
  }
}

TEST_P(NcclTransportTest, LeavingInGoodOrderFinalizesAndAbortsNothing) {
  EXPECT_TRUE(EveryoneGetsTheSum(100, 1));

  LeaveAll();

  EXPECT_EQ(nccl_double::Calls("ncclCommAbort"), 0);
  EXPECT_EQ(nccl_double::Calls("ncclCommFinalize"), nccl_double::Calls("ncclCommInitRankConfig"));
  EXPECT_EQ(nccl_double::Calls("ncclCommDestroy"), nccl_double::Calls("ncclCommFinalize"));
}

INSTANTIATE_TEST_SUITE_P(Sizes, NcclTransportTest, ::testing::Range(1, 10));

class NcclOrderTest : public NcclMembers {
 protected:
  // Each on the device of the member of that rank; the thread's own device stays the first.
  static std::array<cudaStream_t, 2> ComputeStreams() {
    std::array<cudaStream_t, 2> streams{};
    for (const int rank : {1, 0}) {
      cudaSetDevice(rank);
      cudaStreamCreateWithFlags(&streams.at(static_cast<std::size_t>(rank)), cudaStreamNonBlocking);
    }
    return streams;
  }
};

TEST_F(NcclOrderTest, AGroupOfOneNeedsNoNccl) {
  Connect(1);
  const DeviceFloats buffer({1.0f, 2.0f});

  EXPECT_EQ(member(0).StartAllReduceSum(buffer.span())->Poll(), Progress::kDone);
  EXPECT_EQ(member(0).StartBroadcast(buffer.span(), 0)->Poll(), Progress::kDone);
  EXPECT_EQ(member(0).StartBarrier()->Poll(), Progress::kDone);

  EXPECT_EQ(buffer.values(), (std::vector<float>{1.0f, 2.0f}));
  EXPECT_EQ(nccl_double::Calls("ncclCommInitRankConfig"), 0);
}

TEST_F(NcclOrderTest, ACollectiveWaitsOnTheDeviceForTheComputeStream) {
  std::array<cudaStream_t, 2> compute = ComputeStreams();
  Connect(2, [&](NcclMeeting& meeting) {
    meeting.compute_stream = compute.at(static_cast<std::size_t>(meeting.rank));
  });
  const DeviceFloats a({0.0f}), b({1.0f});
  std::atomic<bool> computed = false;
  float* const out = a.span().data();
  cuda_double::Queue(compute[0], [&computed, out] {
    if (!computed) return false;
    const cuda_double::OpenMemory open;
    *out = 41.0f;
    return true;
  });

  const auto first = member(0).StartAllReduceSum(a.span());  // returns: the host does not wait
  const auto second = member(1).StartAllReduceSum(b.span());
  const bool queued = Eventually([] { return nccl_double::Calls("ncclAllReduce") == 2; });
  EXPECT_TRUE(queued);
  EXPECT_EQ(first->Poll(), Progress::kRunning);
  EXPECT_EQ(second->Poll(), Progress::kRunning);
  computed = true;

  EXPECT_EQ(first->Wait().progress, Progress::kDone);
  EXPECT_EQ(second->Wait().progress, Progress::kDone);
  EXPECT_EQ(b.values(), std::vector<float>{42.0f});
  LeaveAll();
  for (const cudaStream_t stream : compute) cudaStreamDestroy(stream);
}

// What is queued then comes after it, and nobody has waited for it.
TEST_F(NcclOrderTest, TheComputeStreamWaitsForACollectiveOnTheDevice) {
  std::array<cudaStream_t, 2> compute = ComputeStreams();
  Connect(2, [&](NcclMeeting& meeting) {
    meeting.compute_stream = compute.at(static_cast<std::size_t>(meeting.rank));
  });
  nccl_double::StallRank(1);
  const DeviceFloats a({1.0f}), b({2.0f}), copy({0.0f});
  const auto first = member(0).StartAllReduceSum(a.span());
  const auto second = member(1).StartAllReduceSum(b.span());

  EXPECT_EQ(first->WaitOnDevice(), Progress::kRunning);
  EXPECT_EQ(first->Poll(), Progress::kRunning);
  cudaMemcpyAsync(copy.span().data(), a.span().data(), sizeof(float), cudaMemcpyDeviceToDevice,
                  compute[0]);
  EXPECT_TRUE(StaysRunning(*first));
  nccl_double::Release();
  cudaStreamSynchronize(compute[0]);

  EXPECT_EQ(copy.values(), std::vector<float>{3.0f});
  EXPECT_EQ(first->Wait().progress, Progress::kDone);
  EXPECT_EQ(second->Wait().progress, Progress::kDone);
  EXPECT_EQ(first->WaitOnDevice(), Progress::kDone);
  LeaveAll();
  for (const cudaStream_t stream : compute) cudaStreamDestroy(stream);
}

TEST_F(NcclOrderTest, WhatIsNotOnTheDeviceIsWaitedFor) {
  Connect(2);
  OnEveryRank(2, [&](int rank) {
    std::vector<float> buffer = {1.0f};
    EXPECT_EQ(member(rank).StartAllReduceSum(buffer)->WaitOnDevice(), Progress::kDone);
    EXPECT_EQ(buffer.front(), 2.0f);
    EXPECT_EQ(member(rank).StartBarrier()->WaitOnDevice(), Progress::kDone);
  });
}

TEST_F(NcclOrderTest, ACallThatIsLongInProgressIsWaitedForBeforeTheNext) {
  nccl_double::SetPolls(300);
  Connect(3);

  EXPECT_TRUE(EveryoneGetsTheSum(500, 1));
  EXPECT_TRUE(EveryoneGetsTheSum(10, 2));
}

TEST_F(NcclOrderTest, ASlowDeviceHoldsUpTheOthersButFailsNobody) {
  nccl_double::SlowRank(1, 200);
  Connect(3);

  EXPECT_TRUE(EveryoneGetsTheSum(500, 1));
}

// Who has nothing to do with an exchange learns by the barrier that it is done.
TEST_F(NcclOrderTest, NoBarrierBeginsBeforeWhatTheMemberStartedBeforeItIsDone) {
  Connect(3);
  nccl_double::StallRank(2);
  const DeviceFloats a({1.0f}), b({2.0f}), c({0.0f}), d({0.0f});
  const auto one = member(0).StartExchange(2, a.bytes(), c.bytes());
  const auto other = member(2).StartExchange(0, b.bytes(), d.bytes());
  std::vector<std::unique_ptr<Collective>> barriers;
  for (int rank = 0; rank < 3; ++rank) barriers.push_back(member(rank).StartBarrier());
  EXPECT_TRUE(Eventually([] { return nccl_double::Calls("ncclGroupEnd") == 2; }));

  EXPECT_TRUE(StaysRunning(*barriers[1]));
  nccl_double::Release();

  for (const auto& barrier : barriers) EXPECT_EQ(barrier->Wait().progress, Progress::kDone);
  EXPECT_EQ(one->Poll(), Progress::kDone);
  EXPECT_EQ(other->Poll(), Progress::kDone);
}

TEST_F(NcclOrderTest, ACompletionSaysWhenItWasDoneAndWhenThatWasLearned) {
  Connect(2);
  clock_.Advance(Seconds(5));
  const DeviceFloats a({1.0f}), b({2.0f});
  const auto first = member(0).StartAllReduceSum(a.span());
  const auto second = member(1).StartAllReduceSum(b.span());
  EXPECT_TRUE(Eventually(
      [&] { return first->Poll() == Progress::kDone && second->Poll() == Progress::kDone; }));
  clock_.Advance(Seconds(4));

  const Completion completion = first->Wait();

  EXPECT_EQ(completion.finished, Instant(Seconds(5)));
  EXPECT_EQ(completion.at, Instant(Seconds(9)));
  EXPECT_EQ(completion.reason, "");
}

// NCCL would hang or mix the buffers up; its double notices.
TEST_F(NcclOrderTest, DifferentCollectivesThatMeetAreNoticed) {
  Connect(2);
  ForgiveComplaints();
  const DeviceFloats a({1.0f, 2.0f}), b({1.0f, 2.0f});

  OnEveryRank(2, [&](int rank) {
    const auto handle =
        rank == 0 ? member(0).StartAllReduceSum(a.span()) : member(1).StartBroadcast(b.span(), 0);
    const Completion completion = handle->Wait();
    EXPECT_EQ(completion.progress, Progress::kFailed);
    EXPECT_NE(completion.reason, "");
  });

  ASSERT_EQ(nccl_double::Complaints().size(), 1u);
  EXPECT_THAT(nccl_double::Complaints().front(), HasSubstr("where another called"));
}

TEST_F(NcclOrderTest, AnExchangeIsOneGroup) {
  Connect(2);
  const DeviceFloats a({1.0f}), b({2.0f});

  OnEveryRank(2, [&](int rank) {
    const DeviceFloats& own = rank == 0 ? a : b;
    const DeviceFloats incoming({0.0f});
    EXPECT_EQ(member(rank).StartExchange(1 - rank, own.bytes(), incoming.bytes())->Wait().progress,
              Progress::kDone);
  });

  for (const char* const call : {"ncclGroupStart", "ncclGroupEnd", "ncclSend", "ncclRecv"}) {
    EXPECT_EQ(nccl_double::Calls(call), 2) << call;
  }
}

}  // namespace
}  // namespace tactus::collective
