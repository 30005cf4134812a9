// A group that is lost while the compute stream stands behind one of its collectives, on the
// doubles of NCCL and CUDA.

#include <atomic>
#include <cstdint>

#include "agent/collective/nccl_transport.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/collective/nccl_double/nccl_members.h"
#include "tests/support/cuda_double/cuda_double.h"
#include "tests/support/nccl_double/nccl_double.h"

namespace tactus::collective {
namespace {

using ::testing::HasSubstr;

using NcclLostTest = NcclMembers;

// Whatever the abort does to the buffer, who reads it behind the collective knows.
TEST_F(NcclLostTest, TheGroupIsLostBeforeAnythingIsEndedByForce) {
  cudaStream_t compute = nullptr;
  cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking);
  Connect(2, [&](NcclMeeting& meeting) {
    if (meeting.rank == 0) meeting.compute_stream = compute;
  });
  nccl_double::StallRank(1);
  const DeviceFloats a({1.0f}), b({2.0f});
  const auto first = member(0).StartAllReduceSum(a.span());
  const auto second = member(1).StartAllReduceSum(b.span());
  EXPECT_EQ(first->WaitOnDevice(), Progress::kRunning);
  const std::uint32_t* const lost = member(0).lost();
  ASSERT_NE(lost, nullptr);
  EXPECT_EQ(*lost, 0u);
  std::atomic<int> seen = -1;
  cuda_double::Queue(compute, [&seen, lost] {
    seen = static_cast<int>(*lost);
    return true;
  });

  member(0).Abort("told to stop");
  cudaStreamSynchronize(compute);  // the abort ends this wait
  EXPECT_EQ(seen, 1);

  EXPECT_EQ(first->Wait().reason, "told to stop");
  EXPECT_EQ(member(0).StartAllReduceSum(a.span())->WaitOnDevice(), Progress::kFailed);
  member(1).Abort("told to stop");
  EXPECT_EQ(second->Wait().progress, Progress::kFailed);
  LeaveAll();
  cudaStreamDestroy(compute);
}

TEST_F(NcclLostTest, AStreamThatCannotBePutBehindACollectiveEndsTheGroup) {
  Connect(2);
  nccl_double::StallRank(1);
  const DeviceFloats a({1.0f}), b({2.0f});
  const auto first = member(0).StartAllReduceSum(a.span());
  const auto second = member(1).StartAllReduceSum(b.span());
  // Both calls have put the transports' streams behind the compute streams.
  EXPECT_TRUE(Eventually([] { return nccl_double::Calls("ncclAllReduce") == 2; }));
  cuda_double::FailCall("cudaStreamWaitEvent", 1, cudaErrorLaunchFailure);

  EXPECT_EQ(first->WaitOnDevice(), Progress::kFailed);

  EXPECT_THAT(first->Wait().reason, HasSubstr("cudaStreamWaitEvent"));
  member(1).Abort("told to stop");
  EXPECT_EQ(second->Wait().progress, Progress::kFailed);
}

}  // namespace
}  // namespace tactus::collective
