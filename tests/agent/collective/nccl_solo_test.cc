// What of the NCCL transport needs neither a device nor NCCL.

#include <string>
#include <vector>

#include "agent/collective/in_process.h"
#include "agent/collective/nccl_transport.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tactus::collective {
namespace {

using ::testing::HasSubstr;

NcclMeeting MeetingOf(int size) {
  NcclMeeting meeting;
  meeting.size = size;
  meeting.exchange = [](const std::string& own) { return std::vector<std::string>{own}; };
  meeting.now = [] { return Instant(Seconds(7)); };
  return meeting;
}

TEST(NcclSoloTest, AGroupOfOneIsDoneAtOnce) {
  ConnectedTransport connected = ConnectNccl(MeetingOf(1));
  ASSERT_NE(connected.transport, nullptr) << connected.reason;
  std::vector<float> buffer = {1.0f, 2.0f};

  const Completion completion = connected.transport->StartAllReduceSum(buffer)->Wait();

  EXPECT_EQ(completion.progress, Progress::kDone);
  EXPECT_EQ(completion.finished, Instant(Seconds(7)));
  EXPECT_EQ(completion.at, Instant(Seconds(7)));
  EXPECT_EQ(buffer, (std::vector<float>{1.0f, 2.0f}));
  connected.transport->Abort("told to stop");
  EXPECT_EQ(connected.transport->StartBarrier()->Poll(), Progress::kFailed);
  EXPECT_EQ(connected.transport->StartBarrier()->Wait().reason, "told to stop");
}

TEST(NcclSoloTest, AGroupOfOneThatIsGivenUpIsNone) {
  NcclMeeting meeting = MeetingOf(1);
  meeting.exchange = [](const std::string&) { return std::vector<std::string>(); };

  EXPECT_THAT(ConnectNccl(std::move(meeting)).reason, HasSubstr("given up"));
}

TEST(NcclSoloTest, ADeviceThatIsNotThereIsAReasonAndNoCrash) {
  NcclMeeting meeting = MeetingOf(2);
  meeting.device = 1'000'000;
  meeting.signals = std::move(MakeInProcessGroup(2, meeting.now).front());

  const ConnectedTransport connected = ConnectNccl(std::move(meeting));

  EXPECT_EQ(connected.transport, nullptr);
  EXPECT_NE(connected.reason, "");
}

}  // namespace
}  // namespace tactus::collective
