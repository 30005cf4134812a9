#include "coordinator/job/wording.h"

#include <gtest/gtest.h>

#include <chrono>

namespace tactus::job {
namespace {

TEST(WordingTest, ManyWorkersAreCounted) {
  std::vector<MemberRecord> members;
  for (std::uint64_t i = 1; i <= 6; ++i) {
    members.push_back({.worker = WorkerId{i}, .node = "n" + std::to_string(i)});
  }

  EXPECT_EQ(WorkerNames({members[0]}), "worker 1 on node n1");
  EXPECT_EQ(WorkerNames(members),
            "worker 1 on node n1, worker 2 on node n2, worker 3 on node n3, worker 4 on node n4 "
            "and 2 more");
}

TEST(WordingTest, CountsAgreeWithTheirNouns) {
  EXPECT_EQ(DeviceCount(1, DeviceKind::kCuda), "1 cuda device");
  EXPECT_EQ(DeviceCount(3, DeviceKind::kAny), "3 devices");
  EXPECT_EQ(WorkerCount(1), "1 worker");
}

TEST(WordingTest, DurationsUseTheUnitThatFits) {
  EXPECT_EQ(DurationWords(std::chrono::minutes(10)), "10 minutes");
  EXPECT_EQ(DurationWords(std::chrono::seconds(90)), "90 seconds");
  EXPECT_EQ(DurationWords(std::chrono::seconds(60)), "1 minute");
}

TEST(WordingTest, SignalsHaveNamesWhereTheyAreCommon) {
  EXPECT_EQ(SignalWords(9), "signal 9 (SIGKILL)");
  EXPECT_EQ(SignalWords(42), "signal 42");
}

TEST(WordingTest, TheLastLineIsTheLastOneThatIsNotBlank) {
  EXPECT_EQ(LastLine("first\n  second  \n\n \t\n"), "second");
  EXPECT_EQ(LastLine("only"), "only");
  EXPECT_EQ(LastLine(" \n\n"), "");
  EXPECT_EQ(LastLine(""), "");
  EXPECT_EQ(LastLine(std::string(500, 'x')).size(), 200u);
}

}  // namespace
}  // namespace tactus::job
