#include "coordinator/job/failure_inquiry.h"

#include <gtest/gtest.h>

#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

Finding Sign(std::uint64_t worker, Evidence evidence, const std::string& reason) {
  return {.worker = WorkerId{worker}, .evidence = evidence, .reason = reason};
}

TEST(FailureInquiryTest, ADeathExplainsMoreThanWhatTheOthersSayAboutIt) {
  FailureInquiry inquiry;

  inquiry.Add(Sign(1, Evidence::kConsequence, "lost its group"), At(1));
  EXPECT_FALSE(inquiry.Conclusive());
  inquiry.Add(Sign(2, Evidence::kSignal, "killed"), At(2));

  EXPECT_TRUE(inquiry.Conclusive());
  EXPECT_EQ(inquiry.Best().reason, "killed");
  EXPECT_EQ(inquiry.opened(), At(1));
}

TEST(FailureInquiryTest, TheEarliestOfEqualSignsCounts) {
  FailureInquiry inquiry;

  inquiry.Add(Sign(2, Evidence::kExit, "second worker"), At(1));
  inquiry.Add(Sign(1, Evidence::kExit, "first worker"), At(1));

  EXPECT_EQ(inquiry.Best().reason, "second worker");
  EXPECT_FALSE(inquiry.Conclusive());
}

TEST(FailureInquiryTest, AWithdrawnSignClosesTheInquiryAndANewOneOpensItAnew) {
  FailureInquiry inquiry;
  inquiry.Add(Sign(1, Evidence::kAbsence, "missing"), At(1));

  inquiry.Withdraw(WorkerId{1});
  EXPECT_FALSE(inquiry.open());

  inquiry.Add(Sign(2, Evidence::kAbsence, "missing too"), At(5));
  EXPECT_EQ(inquiry.opened(), At(5));
}

TEST(FailureInquiryTest, OnlyAWorkersOwnWordsMakeItHeard) {
  FailureInquiry inquiry;
  inquiry.Add(Sign(1, Evidence::kAbsence, "missing"), At(1));
  inquiry.Add(Sign(2, Evidence::kConsequence, "lost its group"), At(1));

  EXPECT_FALSE(inquiry.Heard(WorkerId{1}));
  EXPECT_TRUE(inquiry.Heard(WorkerId{2}));
}

TEST(FailureInquiryTest, OnlyWhatAWorkerSaysOfTheJobIsTheJobsOwn) {
  const MemberRecord member{.worker = {1}, .node = "a"};

  EXPECT_TRUE(FindingOf(member, FailedMessage{.message = "diverged"}).own);
  EXPECT_FALSE(FindingOf(member, FailedMessage{.message = "no device", .transient = true}).own);
  EXPECT_FALSE(FindingOf(member, FailedMessage{.message = "closed", .lost_generation = 1}).own);
  EXPECT_FALSE(FindingOf(member, Departure(WorkerExited{.worker = {1}, .exit_code = 1})).own);
  EXPECT_FALSE(FindingOf(member, Departure(NodeLost{.node = "a"})).own);
}

}  // namespace
}  // namespace tactus::job
