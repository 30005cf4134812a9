// What the NCCL transport makes of errors, hangs, aborts and lost members, on the doubles of NCCL
// and CUDA.

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/collective/nccl_transport.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/collective/nccl_double/nccl_members.h"
#include "tests/support/cuda_double/cuda_double.h"
#include "tests/support/nccl_double/nccl_double.h"

namespace tactus::collective {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class NcclFaultsTest : public NcclMembers {
 protected:
  // An all-reduce, a broadcast and an exchange, until one fails; its completion.
  Completion RunScript(int rank) {
    const DeviceFloats a({1.0f, 2.0f}), b({3.0f, 4.0f}), incoming({0.0f, 0.0f});
    Completion completion = member(rank).StartAllReduceSum(a.span())->Wait();
    if (completion.progress == Progress::kFailed) return completion;
    completion = member(rank).StartBroadcast(a.span(), 1)->Wait();
    if (completion.progress == Progress::kFailed) return completion;
    const int peer = rank ^ 1;
    if (peer < size()) {
      completion = member(rank).StartExchange(peer, b.bytes(), incoming.bytes())->Wait();
      if (completion.progress == Progress::kFailed) return completion;
    }
    // Who takes part in nothing that fails learns it here. Whether a call that is to fail comes to
    // be made at all may hang on who is faster: one that asks whether work is done, and finds it.
    for (int i = 0; i < 1000 && completion.progress != Progress::kFailed; ++i) {
      completion = member(rank).StartAllReduceSum(a.span())->Wait();
    }
    return completion;
  }

  // Runs the script on every rank, which is to fail for all; returns the reasons.
  std::vector<std::string> ReasonsOfScript() {
    std::vector<std::string> reasons(static_cast<std::size_t>(size()));
    OnEveryRankInTime([&](int rank) {
      const Completion completion = RunScript(rank);
      EXPECT_EQ(completion.progress, Progress::kFailed) << rank;
      EXPECT_NE(completion.reason, "") << rank;
      reasons[static_cast<std::size_t>(rank)] = completion.reason;
    });
    return reasons;
  }

  // NCCL's finalize and destroy may hang after a failure.
  static void ExpectNothingButAborts(int count) {
    EXPECT_EQ(nccl_double::Calls("ncclCommAbort"), count);
    EXPECT_EQ(nccl_double::Calls("ncclCommFinalize"), 0);
    EXPECT_EQ(nccl_double::Calls("ncclCommDestroy"), 0);
  }
};

// A member whose init never comes: it takes part in the exchange alone.
void StayAway(NcclMeeting& meeting) {
  meeting.exchange = [exchange = meeting.exchange](const std::string& own) {
    exchange(own);
    return std::vector<std::string>();
  };
}

TEST_F(NcclFaultsTest, AMeetingThatIsGivenUpEndsWithItsReason) {
  std::atomic<int> asked = 0;
  Connect(3, [&](NcclMeeting& meeting) {
    meeting.heartbeat = nullptr;
    if (meeting.rank == 2) return StayAway(meeting);
    meeting.give_up = [&] { return ++asked < 20 ? "" : "told to stop"; };
  });

  EXPECT_EQ(reason(0), "told to stop");
  EXPECT_EQ(reason(1), "told to stop");
  EXPECT_THAT(reason(2), HasSubstr("given up"));
  ExpectNothingButAborts(2);
}

TEST_F(NcclFaultsTest, AMemberThatDiesWhileTheyMeetEndsTheMeetingForAll) {
  Connect(3, [](NcclMeeting& meeting) {
    if (meeting.rank == 2) StayAway(meeting);
  });

  EXPECT_THAT(reason(0), HasSubstr("a member has left"));
  EXPECT_THAT(reason(1), HasSubstr("a member has left"));
  ExpectNothingButAborts(2);
}

// At once, and none waits for the other's: each of the two aborts ends when both have begun.
TEST_F(NcclFaultsTest, AMeetingThatOneGivesUpIsAbortedByAll) {
  nccl_double::MeetInAbort(2);
  const auto begun = [] { return nccl_double::Calls("ncclCommInitRankConfig") == 2; };
  const auto over = [] { return nccl_double::Calls("ncclCommAbort") == 2; };
  Connect(3, [&](NcclMeeting& meeting) {
    if (meeting.rank == 0) meeting.give_up = [&] { return begun() ? "told to stop" : ""; };
    if (meeting.rank != 2) return;
    meeting.exchange = [&, exchange = meeting.exchange](const std::string& own) {
      exchange(own);
      EXPECT_TRUE(Eventually(over));
      return std::vector<std::string>();
    };
  });

  EXPECT_EQ(reason(0), "told to stop");
  EXPECT_THAT(reason(1), AllOf(HasSubstr("a member has left"), HasSubstr("told to stop")));
}

TEST_F(NcclFaultsTest, AMemberThatNeverComesEndsTheInitByItsLimit) {
  Connect(3, [&](NcclMeeting& meeting) {
    meeting.heartbeat = nullptr;
    if (meeting.rank == 2) return StayAway(meeting);
    meeting.give_up = [&] {
      clock_.Advance(Seconds(100));
      return "";
    };
  });

  EXPECT_THAT(reason(0), AllOf(HasSubstr("not all of the 3 members have come"), HasSubstr("480")));
  EXPECT_THAT(reason(1), HasSubstr("not all of the 3 members have come"));
  ExpectNothingButAborts(2);
}

TEST_F(NcclFaultsTest, AnAbortUnderWayEndsTheGroupForAll) {
  Connect(4);
  nccl_double::StallRank(2);

  OnEveryRankInTime([&](int rank) {
    const DeviceFloats buffer({1.0f});
    const auto handle = member(rank).StartAllReduceSum(buffer.span());
    if (rank == 1) {
      EXPECT_TRUE(Eventually([] { return nccl_double::Calls("ncclAllReduce") == 4; }));
      std::thread([&] { member(1).Abort("told to stop"); }).join();
    }
    const Completion completion = handle->Wait();
    EXPECT_EQ(completion.progress, Progress::kFailed);
    EXPECT_THAT(completion.reason, HasSubstr("told to stop"));
    EXPECT_EQ(handle->Poll(), Progress::kFailed);
    EXPECT_EQ(member(rank).StartBarrier()->Wait().progress, Progress::kFailed);
  });

  ExpectNothingButAborts(4);
}

TEST_F(NcclFaultsTest, AnAbortWhileIdleFailsWhatComesOnAllMembers) {
  Connect(3);

  member(1).Abort("told to stop");

  OnEveryRankInTime([&](int rank) {
    const DeviceFloats buffer({1.0f});
    const Completion completion = member(rank).StartAllReduceSum(buffer.span())->Wait();
    EXPECT_EQ(completion.progress, Progress::kFailed);
    EXPECT_THAT(completion.reason, HasSubstr("told to stop"));
  });
  ExpectNothingButAborts(3);
}

TEST_F(NcclFaultsTest, AnAbortEndsACallThatNcclDoesNotEnd) {
  Connect(2);
  nccl_double::SetPolls(1'000'000'000);
  const DeviceFloats a({1.0f}), b({1.0f});
  const auto first = member(0).StartAllReduceSum(a.span());
  const auto second = member(1).StartAllReduceSum(b.span());
  EXPECT_TRUE(Eventually([] { return nccl_double::Calls("ncclAllReduce") == 2; }));

  member(0).Abort("told to stop");
  member(1).Abort("told to stop");

  EXPECT_EQ(first->Wait().reason, "told to stop");
  EXPECT_EQ(second->Wait().reason, "told to stop");
}

TEST_F(NcclFaultsTest, AnAbortEndsABarrierUnderWay) {
  Connect(2);
  const auto barrier = member(0).StartBarrier();
  const auto after = member(0).StartBarrier();

  member(0).Abort("told to stop");

  EXPECT_THAT(barrier->Wait().reason, HasSubstr("told to stop"));
  EXPECT_EQ(after->Wait().progress, Progress::kFailed);
}

TEST_F(NcclFaultsTest, NothingWritesToABufferAfterItsFailure) {
  Connect(2);
  nccl_double::StallRank(1);
  const DeviceFloats a({1.0f}), b({2.0f});
  const auto first = member(0).StartAllReduceSum(a.span());
  const auto second = member(1).StartAllReduceSum(b.span());
  EXPECT_TRUE(Eventually([] { return nccl_double::Calls("ncclAllReduce") == 2; }));

  member(0).Abort("told to stop");
  EXPECT_EQ(first->Wait().progress, Progress::kFailed);
  nccl_double::Release();
  member(1).Abort("told to stop");
  EXPECT_EQ(second->Wait().progress, Progress::kFailed);

  EXPECT_EQ(a.values(), std::vector<float>{1.0f});
  EXPECT_EQ(b.values(), std::vector<float>{2.0f});
}

TEST_F(NcclFaultsTest, AFailureIsToldOnlyWhenTheDeviceIsQuiet) {
  cudaStream_t compute = nullptr;
  cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking);
  std::atomic<bool> computed = false;
  cuda_double::Queue(compute, [&computed] { return computed.load(); });
  Connect(2, [&](NcclMeeting& meeting) {
    if (meeting.rank == 0) meeting.compute_stream = compute;
  });
  const DeviceFloats a({1.0f});
  const auto handle = member(0).StartAllReduceSum(a.span());
  EXPECT_TRUE(Eventually([] { return nccl_double::Calls("ncclAllReduce") == 1; }));

  member(0).Abort("told to stop");
  EXPECT_TRUE(Eventually([] { return nccl_double::Calls("ncclCommAbort") == 1; }));
  EXPECT_TRUE(StaysRunning(*handle));
  computed = true;

  EXPECT_EQ(handle->Wait().reason, "told to stop");
  LeaveAll();
  cudaStreamDestroy(compute);
}

TEST_F(NcclFaultsTest, WhatIsDoneStaysDoneAfterAFailure) {
  Connect(2);
  OnEveryRank(2, [&](int rank) {
    const DeviceFloats buffer({1.0f});
    const auto handle = member(rank).StartAllReduceSum(buffer.span());
    EXPECT_EQ(handle->Wait().progress, Progress::kDone);
    member(rank).Abort("told to stop");
    EXPECT_EQ(handle->Poll(), Progress::kDone);
    EXPECT_EQ(handle->Wait().progress, Progress::kDone);
  });
}

// A call that fails, and what the member says whose call it was.
struct BadCall {
  std::string function = "";
  int nth = 1;
};
void PrintTo(const BadCall& bad, std::ostream* out) { *out << bad.function << bad.nth; }

class NcclBadCallTest : public NcclFaultsTest, public ::testing::WithParamInterface<BadCall> {};

TEST_P(NcclBadCallTest, AnErrorOfNcclEndsTheGroupForAllWithItsName) {
  Connect(4);
  nccl_double::FailCall(GetParam().function, GetParam().nth, ncclSystemError);

  const std::vector<std::string> reasons = ReasonsOfScript();

  EXPECT_THAT(reasons, ::testing::Contains(AllOf(HasSubstr(GetParam().function),
                                                 HasSubstr("unhandled system error"))));
  ExpectNothingButAborts(4);
}

std::string BadCallName(const ::testing::TestParamInfo<BadCall>& test) {
  return test.param.function + "_" + std::to_string(test.param.nth);
}

INSTANTIATE_TEST_SUITE_P(Nccl, NcclBadCallTest,
                         ::testing::Values(BadCall{"ncclAllReduce", 1}, BadCall{"ncclAllReduce", 4},
                                           BadCall{"ncclBroadcast", 1}, BadCall{"ncclBroadcast", 3},
                                           BadCall{"ncclGroupStart", 1}, BadCall{"ncclSend", 2},
                                           BadCall{"ncclRecv", 1}, BadCall{"ncclGroupEnd", 4},
                                           BadCall{"ncclCommGetAsyncError", 1},
                                           BadCall{"ncclCommGetAsyncError", 9}),
                         BadCallName);

class CudaBadCallTest : public NcclFaultsTest, public ::testing::WithParamInterface<BadCall> {};

TEST_P(CudaBadCallTest, AnErrorOfCudaEndsTheGroupForAllWithItsName) {
  Connect(4);
  cuda_double::FailCall(GetParam().function, GetParam().nth, cudaErrorLaunchFailure);

  const std::vector<std::string> reasons = ReasonsOfScript();

  EXPECT_THAT(reasons, ::testing::Contains(AllOf(HasSubstr(GetParam().function),
                                                 HasSubstr("unspecified launch failure"))));
  ExpectNothingButAborts(4);
}

INSTANTIATE_TEST_SUITE_P(
    Cuda, CudaBadCallTest,
    ::testing::Values(BadCall{"cudaEventCreateWithFlags", 1},
                      BadCall{"cudaEventCreateWithFlags", 4}, BadCall{"cudaEventRecord", 1},
                      BadCall{"cudaEventRecord", 6}, BadCall{"cudaStreamWaitEvent", 2},
                      BadCall{"cudaEventQuery", 1}, BadCall{"cudaEventQuery", 10}),
    BadCallName);

class ConnectBadCallTest : public NcclFaultsTest, public ::testing::WithParamInterface<BadCall> {};

TEST_P(ConnectBadCallTest, AnErrorOfACallEndsTheMeeting) {
  const std::string& function = GetParam().function;
  if (function.starts_with("nccl")) {
    nccl_double::FailCall(function, 1, ncclSystemError);
  } else {
    cuda_double::FailCall(function, 1, cudaErrorDevicesUnavailable);
  }
  std::vector<NcclMeeting> meetings = Meetings(2);
  meetings[0].exchange = [](const std::string& own) { return std::vector<std::string>(2, own); };

  const ConnectedTransport connected = ConnectNccl(std::move(meetings[0]));

  EXPECT_EQ(connected.transport, nullptr);
  EXPECT_THAT(connected.reason, HasSubstr(GetParam().nth == 0 ? "" : function));
}

INSTANTIATE_TEST_SUITE_P(Either, ConnectBadCallTest,
                         ::testing::Values(BadCall{"ncclGetVersion", 0},
                                           BadCall{"ncclGetUniqueId", 1},
                                           BadCall{"cudaSetDevice", 1},
                                           BadCall{"cudaDeviceGetStreamPriorityRange", 1},
                                           BadCall{"cudaStreamCreateWithPriority", 1},
                                           BadCall{"cudaEventCreateWithFlags", 1}),
                         BadCallName);

TEST_F(NcclFaultsTest, AnErrorOfTheInitEndsTheMeeting) {
  nccl_double::FailCall("ncclCommInitRankConfig", 1, ncclInternalError);
  Connect(2, [&](NcclMeeting& meeting) {
    meeting.heartbeat = nullptr;
    meeting.give_up = [&] {
      clock_.Advance(Seconds(100));
      return "";
    };
  });

  const std::vector<std::string> reasons = {reason(0), reason(1)};
  EXPECT_THAT(reasons,
              ::testing::UnorderedElementsAre(HasSubstr("ncclCommInitRankConfig: internal error"),
                                              HasSubstr("not all of the 2 members have come")));
}

TEST_F(NcclFaultsTest, AnErrorOnLeavingIsAnsweredByAnAbort) {
  Connect(2);
  nccl_double::FailCall("ncclCommFinalize", 1, ncclSystemError);

  LeaveAll();

  EXPECT_EQ(nccl_double::Calls("ncclCommAbort"), 1);
  EXPECT_EQ(nccl_double::Calls("ncclCommDestroy"), 1);
}

TEST_F(NcclFaultsTest, AnErrorOfAnAbortChangesNothing) {
  Connect(2);
  nccl_double::FailCall("ncclCommAbort", 1, ncclSystemError);

  for (const int rank : {0, 1}) member(rank).Abort("told to stop");

  for (const int rank : {0, 1}) {
    EXPECT_EQ(member(rank).StartBarrier()->Wait().reason, "told to stop");
  }
}

TEST_F(NcclFaultsTest, AnAsynchronousErrorEndsTheGroupForAll) {
  Connect(3);
  nccl_double::StallRank(0);

  OnEveryRankInTime([&](int rank) {
    const DeviceFloats buffer({1.0f});
    const auto handle = member(rank).StartAllReduceSum(buffer.span());
    if (rank == 1) {
      EXPECT_TRUE(Eventually([] { return nccl_double::Calls("ncclAllReduce") == 3; }));
      nccl_double::FailRank(1, ncclRemoteError);
    }
    const Completion completion = handle->Wait();
    EXPECT_EQ(completion.progress, Progress::kFailed);
    EXPECT_THAT(completion.reason, HasSubstr("remote process exited"));
  });

  ExpectNothingButAborts(3);
}

TEST_F(NcclFaultsTest, APeerThatHangsIsWaitedFor) {
  Connect(3, [](NcclMeeting& meeting) { meeting.heartbeat = nullptr; });
  nccl_double::StallRank(2);
  const DeviceFloats a({1, 2, 3}), b({1, 2, 3}), c({1, 2, 3});
  std::vector<std::unique_ptr<Collective>> handles;
  handles.push_back(member(0).StartAllReduceSum(a.span()));
  handles.push_back(member(1).StartAllReduceSum(b.span()));
  handles.push_back(member(2).StartAllReduceSum(c.span()));
  EXPECT_TRUE(Eventually([] { return nccl_double::Calls("ncclAllReduce") == 3; }));
  clock_.Advance(Seconds(1e6));
  EXPECT_TRUE(StaysRunning(*handles[0]));
  EXPECT_TRUE(Eventually([&] { return member(0).awaiting().collective; }));

  for (int rank = 0; rank < 3; ++rank) member(rank).Abort("told to stop");

  for (const auto& handle : handles) {
    const Completion completion = handle->Wait();
    EXPECT_EQ(completion.progress, Progress::kFailed);
    EXPECT_THAT(completion.reason, HasSubstr("told to stop"));
  }
  ExpectNothingButAborts(3);
}

TEST_F(NcclFaultsTest, APeerThatStartsNoExchangeIsNamed) {
  Connect(3);
  const DeviceFloats a({1.0f});
  const auto handle = member(1).StartExchange(2, a.bytes(), {});

  EXPECT_TRUE(Eventually([&] {
    return member(1).awaiting().collective && member(1).awaiting().peers == std::vector{2};
  }));
  EXPECT_FALSE(member(2).awaiting().collective);
  member(1).Abort("told to stop");
}

TEST_F(NcclFaultsTest, AMemberThatLeavesFailsWhatTheOthersStartLater) {
  Connect(3);
  EXPECT_TRUE(EveryoneGetsTheSum(10, 1));

  Leave(2);

  OnEveryRankInTime([&](int rank) {
    if (rank == 2) return;
    const DeviceFloats buffer({1.0f});
    const Completion completion = member(rank).StartAllReduceSum(buffer.span())->Wait();
    EXPECT_EQ(completion.progress, Progress::kFailed);
    EXPECT_THAT(completion.reason, HasSubstr("left"));
  });
}

// It has done its part; the slow device of another still has to.
TEST_F(NcclFaultsTest, AMemberThatHasLeftTakesNothingFromWhatIsStillUnderWay) {
  Connect(3);
  nccl_double::StallRank(1);
  const DeviceFloats a({1.0f}), b({2.0f}), c({3.0f}), d({4.0f});
  const auto one = member(0).StartExchange(1, a.bytes(), b.bytes());
  const auto other = member(1).StartExchange(0, c.bytes(), d.bytes());
  EXPECT_TRUE(Eventually([] { return nccl_double::Calls("ncclGroupEnd") == 2; }));

  Leave(2);
  EXPECT_TRUE(StaysRunning(*one));
  nccl_double::Release();

  EXPECT_EQ(one->Wait().progress, Progress::kDone);
  EXPECT_EQ(other->Wait().progress, Progress::kDone);
  EXPECT_EQ(b.values(), std::vector<float>{3.0f});
  EXPECT_EQ(d.values(), std::vector<float>{1.0f});
}

TEST_F(NcclFaultsTest, WhatIsUnderWayHasOnlyItsGraceAfterAMemberHasLeft) {
  Connect(2);
  const DeviceFloats a({1.0f});
  const auto handle = member(0).StartAllReduceSum(a.span());
  EXPECT_TRUE(Eventually([] { return nccl_double::Calls("ncclAllReduce") == 1; }));

  Leave(1);
  EXPECT_TRUE(StaysRunning(*handle));
  clock_.Advance(Seconds(1));

  EXPECT_THAT(handle->Wait().reason, HasSubstr("a member has left"));
}

class NcclRegroupTest : public NcclFaultsTest, public ::testing::WithParamInterface<int> {};

TEST_P(NcclRegroupTest, AfterALossTheRestMeetsAnewByANewId) {
  Connect(4);
  EXPECT_TRUE(EveryoneGetsTheSum(100, 1));
  member(3).Abort("lost");
  OnEveryRankInTime([&](int rank) {
    const DeviceFloats buffer({1.0f});
    EXPECT_EQ(member(rank).StartAllReduceSum(buffer.span())->Wait().progress, Progress::kFailed);
  });

  ++generation_;
  Connect(GetParam());

  EXPECT_TRUE(EveryoneGetsTheSum(100, 2));
  EXPECT_EQ(nccl_double::Calls("ncclGetUniqueId"), 2);
}

INSTANTIATE_TEST_SUITE_P(Sizes, NcclRegroupTest, ::testing::Values(2, 3, 4, 5, 9));

TEST_F(NcclFaultsTest, AnEndpointOfAnOlderGenerationIsRefused) {
  std::vector<std::string> old;
  Connect(2, [&](NcclMeeting& meeting) {
    meeting.exchange = [&old, rank = meeting.rank,
                        exchange = meeting.exchange](const std::string& own) {
      std::vector<std::string> endpoints = exchange(own);
      if (rank == 0) old = endpoints;
      return endpoints;
    };
  });
  LeaveAll();
  ++generation_;

  Connect(2, [&](NcclMeeting& meeting) {
    meeting.exchange = [&old](const std::string&) { return old; };
  });

  for (const int rank : {0, 1}) {
    EXPECT_EQ(reason(rank), "endpoint of rank 0: generation 1, expected 2");
  }
  EXPECT_EQ(nccl_double::Calls("ncclCommInitRankConfig"), 2);
}

// Even if the text says otherwise: an id is good for one meeting.
TEST_F(NcclFaultsTest, AnIdThatWasUsedBringsNobodyTogether) {
  std::vector<std::string> old;
  Connect(2, [&](NcclMeeting& meeting) {
    meeting.exchange = [&old, rank = meeting.rank,
                        exchange = meeting.exchange](const std::string& own) {
      std::vector<std::string> endpoints = exchange(own);
      if (rank == 0) old = endpoints;
      return endpoints;
    };
  });
  LeaveAll();

  Connect(2, [&](NcclMeeting& meeting) {
    meeting.exchange = [&old](const std::string&) { return old; };
  });

  for (const int rank : {0, 1}) EXPECT_THAT(reason(rank), HasSubstr("unhandled system error"));
}

TEST_F(NcclFaultsTest, MembersWithDifferentVersionsDoNotMeet) {
  std::vector<NcclMeeting> meetings = Meetings(2);
  meetings[1].exchange = [](const std::string& own) {
    std::string other = own;
    other.replace(other.find(":1:1:"), 5, ":1:0:");
    other.replace(other.find("22809"), 5, "22703");
    return std::vector<std::string>{other, own};
  };

  const ConnectedTransport connected = ConnectNccl(std::move(meetings[1]));

  EXPECT_EQ(connected.reason, "endpoint of rank 0: NCCL 22703, expected 22809");
}

}  // namespace
}  // namespace tactus::collective
