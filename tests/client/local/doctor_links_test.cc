#include "client/local/doctor_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/status.h"

namespace tactus::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

v1::ListNodesResponse Fleet(const std::vector<std::string>& names) {
  v1::ListNodesResponse nodes;
  for (const std::string& name : names) {
    nodes.add_nodes()->set_name("nodes/" + name);
    nodes.mutable_nodes()->rbegin()->set_connected(true);
  }
  return nodes;
}

LinkFound Found(const std::string& from, const std::string& to, double bytes_per_second,
                double milliseconds = 0.2) {
  v1::ProbeLinkResponse response;
  response.set_bytes_per_second(bytes_per_second);
  response.mutable_round_trip()->set_nanos(static_cast<int>(milliseconds * 1e6));
  return {.from = from, .to = to, .found = response};
}

TEST(DoctorLinksTest, EachNodeSendsOnceAndIsSentToOnce) {
  EXPECT_THAT(LinksToProbe(Fleet({"a", "b", "c"})),
              ElementsAre(Pair("a", "b"), Pair("b", "c"), Pair("c", "a")));
  EXPECT_THAT(LinksToProbe(Fleet({"a", "b"})), ElementsAre(Pair("a", "b"), Pair("b", "a")));
  EXPECT_THAT(LinksToProbe(Fleet({"a"})), IsEmpty());
  v1::ListNodesResponse gone = Fleet({"a", "b", "c"});
  gone.mutable_nodes(1)->set_connected(false);
  EXPECT_THAT(LinksToProbe(gone), ElementsAre(Pair("a", "c"), Pair("c", "a")));
  std::vector<std::string> many;
  for (int i = 0; i < 1000; ++i) many.push_back("n" + std::to_string(i));
  EXPECT_EQ(LinksToProbe(Fleet(many)).size(), kLinkNodesMax);
}

TEST(DoctorLinksTest, LinksThatAreWellAreOneLine) {
  EXPECT_EQ(FormatFindings(JudgeLinks(
                {Found("a", "b", 1.1e9), Found("b", "c", 1.0e9), Found("c", "a", 1.2e9)})),
            "ok  links  3 links measured, 953.7 MiB/s to 1.1 GiB/s\n");
  EXPECT_EQ(FormatFindings(JudgeLinks({})),
            "ok  links  none to measure: fewer than two agents are connected\n");
}

TEST(DoctorLinksTest, WhatIsWrongWithOneIsALineWithWhatToDo) {
  LinkFound closed = Found("d", "a", 0);
  closed.found->set_error("nodes/d: nobody listens");
  LinkFound busy = {.from = "e",
                    .to = "a",
                    .found = runtime::WithReason(absl::FailedPreconditionError("job x trains"),
                                                 {.reason = "NODE_HAS_WORKERS"})};
  const std::vector<Finding> findings =
      JudgeLinks({Found("a", "b", 1e9), Found("b", "c", 1e8), Found("c", "d", 1e9), closed, busy});

  ASSERT_EQ(findings.size(), 4u);
  EXPECT_THAT(findings[0].found, HasSubstr("3 links measured"));
  EXPECT_EQ(findings[1].subject, "link b to c");
  EXPECT_EQ(findings[1].grade, Grade::kLook);
  EXPECT_THAT(findings[1].found, HasSubstr("0.20 ms there and back, where the middle of all is"));
  EXPECT_EQ(findings[2].grade, Grade::kBad);
  EXPECT_THAT(findings[2].advice, HasSubstr("open the ports between the nodes"));
  EXPECT_EQ(findings[3].found, "not measured: job x trains");
  EXPECT_THAT(findings[3].advice, HasSubstr("--while-training"));
}

TEST(DoctorLinksTest, OnlyOfABusyNodeIsItSaidThatTrainingMayGoOn) {
  const LinkFound gone = {
      .from = "a", .to = "b", .found = absl::FailedPreconditionError("nodes/a: has no agent")};
  EXPECT_EQ(JudgeLinks({gone})[0].advice, "");
}

TEST(DoctorLinksTest, WhoMayNotMeasureIsToldSoAndNothingElseIs) {
  const auto status = [](const absl::Status& said) {
    return RefusalOf({.from = "a", .to = "b", .found = said});
  };
  EXPECT_TRUE(absl::IsPermissionDenied(status(absl::PermissionDeniedError("for admins"))));
  EXPECT_TRUE(absl::IsUnauthenticated(status(absl::UnauthenticatedError("expired"))));
  EXPECT_TRUE(status(absl::UnavailableError("gone")).ok());
  EXPECT_TRUE(RefusalOf(Found("a", "b", 1e9)).ok());
}

TEST(DoctorLinksTest, NodesBeyondTheMostAreCounted) {
  std::vector<std::string> many;
  for (std::size_t i = 0; i < kLinkNodesMax + 3; ++i) many.push_back("n" + std::to_string(i));
  EXPECT_EQ(NodesLeftOut(Fleet(many)), 3u);
  EXPECT_EQ(NodesLeftOut(Fleet({"a", "b"})), 0u);

  EXPECT_THAT(FormatFindings(JudgeLinks({Found("a", "b", 1e9)}, 3)),
              HasSubstr("3 nodes left out, as 64 are looked at"));
}

TEST(DoctorLinksTest, ASlowLinkAndAFarOneAreTold) {
  EXPECT_THAT(
      FormatFindings(JudgeLinks({Found("a", "b", 1e6), Found("b", "a", 1e9, 40)})),
      HasSubstr("look  link a to b  976.6 KiB/s, 0.20 ms there and back: rounds that wait"));
  EXPECT_EQ(JudgeLinks({Found("a", "b", 1e9, 40), Found("b", "a", 1e9)}).size(), 2u);
}

}  // namespace
}  // namespace tactus::client
