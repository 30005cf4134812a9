// What an end of NCCL that fails, or does not come, means: that the process has to end, as a device
// may write to memory that is about to be freed. On the doubles of NCCL and CUDA.

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "agent/collective/nccl_transport.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/collective/nccl_double/nccl_members.h"
#include "tests/support/nccl_double/nccl_double.h"

namespace tactus::collective {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// What a transport said that the process has to end for, and how often.
struct Verdict {
  std::mutex mutex = {};
  std::vector<std::string> reasons = {};

  std::vector<std::string> Get() {
    const std::lock_guard lock(mutex);
    return reasons;
  }
  std::function<void(const std::string&)> Taker() {
    return [this](const std::string& reason) {
      const std::lock_guard lock(mutex);
      reasons.push_back(reason);
    };
  }
};

using NcclHangsTest = NcclMembers;

class NcclHangTest : public NcclMembers, public ::testing::WithParamInterface<const char*> {};

TEST_P(NcclHangTest, ACallThatHangsMeansThatTheProcessHasToEnd) {
  Verdict verdict;
  Connect(2, [&](NcclMeeting& meeting) {
    meeting.heartbeat = nullptr;
    meeting.abort_limit = Seconds(0.05);
    meeting.must_end = verdict.Taker();
  });
  nccl_double::HangCall(GetParam(), 1);
  const DeviceFloats a({1.0f});
  const auto handle = member(0).StartAllReduceSum(a.span());
  EXPECT_TRUE(Eventually([] { return nccl_double::Calls("ncclAllReduce") == 1; }));

  member(0).Abort("told to stop");

  const Completion completion = handle->Wait();
  EXPECT_EQ(completion.progress, Progress::kFailed);
  EXPECT_THAT(completion.reason,
              AllOf(HasSubstr("told to stop"), HasSubstr("the process has to end")));
  EXPECT_EQ(verdict.Get(), std::vector<std::string>{completion.reason});
  Leave(0);  // does not wait for what hangs
  EXPECT_EQ(nccl_double::Hanging(), 1);
  nccl_double::Release();
  EXPECT_TRUE(Eventually([] { return nccl_double::Communicators() == 1; }));
}

INSTANTIATE_TEST_SUITE_P(Calls, NcclHangTest, ::testing::Values("ncclAllReduce", "ncclCommAbort"));

TEST_F(NcclHangsTest, AnAbortThatHangsHoldsUpNoOther) {
  Verdict verdict;
  Connect(2, [&](NcclMeeting& meeting) {
    meeting.abort_limit = Seconds(meeting.rank == 0 ? 0.05 : 60);
    meeting.must_end = verdict.Taker();
  });
  nccl_double::HangCall("ncclCommAbort", 1);

  member(0).Abort("told to stop");
  EXPECT_TRUE(Eventually([] { return nccl_double::Hanging() == 1; }));
  member(1).Abort("told to stop");

  EXPECT_EQ(member(1).StartBarrier()->Wait().reason, "told to stop");
  EXPECT_THAT(member(0).StartBarrier()->Wait().reason, HasSubstr("the process has to end"));
  EXPECT_EQ(verdict.Get().size(), 1u);
  Leave(0);
  nccl_double::Release();
}

TEST_F(NcclHangsTest, AnInitWhoseAbortHangsMeansThatTheProcessHasToEnd) {
  Verdict verdict;
  nccl_double::HangAbort(0);
  Connect(3, [&](NcclMeeting& meeting) {
    if (meeting.rank == 0) {
      meeting.abort_limit = Seconds(0.05);
      meeting.must_end = verdict.Taker();
    }
    if (meeting.rank != 2) return;
    meeting.exchange = [exchange = meeting.exchange](const std::string& own) {
      exchange(own);
      return std::vector<std::string>();
    };
  });

  EXPECT_THAT(reason(0),
              AllOf(HasSubstr("a member has left"), HasSubstr("the process has to end")));
  EXPECT_EQ(verdict.Get(), std::vector<std::string>{reason(0)});
  EXPECT_THAT(reason(1), HasSubstr("a member has left"));
  nccl_double::Release();
}

// What NCCL says of an abort nobody believes: the stream has to be quiet.
TEST_F(NcclHangsTest, AnAbortThatFailsMeansThatTheProcessHasToEndOnlyWhereTheDeviceGoesOn) {
  Verdict verdict;
  Connect(2, [&](NcclMeeting& meeting) {
    meeting.heartbeat = nullptr;
    if (meeting.rank == 1) return;
    meeting.abort_limit = Seconds(0.05);
    meeting.must_end = verdict.Taker();
  });
  nccl_double::StallRank(1);
  const DeviceFloats a({1.0f}), b({2.0f});
  const auto first = member(0).StartAllReduceSum(a.span());
  const auto second = member(1).StartAllReduceSum(b.span());
  EXPECT_TRUE(Eventually([&] { return member(0).awaiting().collective; }));
  nccl_double::FailCall("ncclCommAbort", 1, ncclSystemError);

  member(0).Abort("told to stop");

  const Completion completion = first->Wait();
  EXPECT_EQ(completion.progress, Progress::kFailed);
  EXPECT_THAT(completion.reason, HasSubstr("the process has to end"));
  EXPECT_EQ(verdict.Get(), std::vector<std::string>{completion.reason});
  nccl_double::Release();  // what went on comes to its end
  EXPECT_EQ(second->Wait().progress, Progress::kDone);
}

}  // namespace
}  // namespace tactus::collective
