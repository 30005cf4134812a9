#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "coordinator/shell/change_waiters.h"
#include "coordinator/shell/request_index.h"

namespace tactus::service {
namespace {

using ::testing::ElementsAre;

constexpr JobId kJob{1};

Instant At(double seconds) { return Instant() + Seconds(seconds); }

// Waiters that write down who was woken.
class ChangeWaitersTest : public testing::Test {
 protected:
  bool Add(int call, const std::string& etag, double until, JobId job = kJob) {
    return waiters_.Add({.call = &calls_.at(static_cast<std::size_t>(call)),
                         .job = job,
                         .etag = etag,
                         .until = At(until),
                         .wake = [this, call] { woken_.push_back(call); }});
  }

  ChangeWaiters waiters_;
  std::vector<char> calls_ = std::vector<char>(ChangeWaiters::kWaitersMax + 1);
  std::vector<int> woken_;
};

TEST_F(ChangeWaitersTest, AChangeWakesThoseWhoseEtagItIsNot) {
  ASSERT_TRUE(Add(0, "1", 30));
  ASSERT_TRUE(Add(1, "2", 30));
  ASSERT_TRUE(Add(2, "1", 30, JobId{2}));

  waiters_.Changed(kJob, "2");
  EXPECT_THAT(woken_, ElementsAre(0));
  waiters_.Changed(kJob, "3");

  EXPECT_THAT(woken_, ElementsAre(0, 1));
  EXPECT_EQ(waiters_.size(), 1u);
}

TEST_F(ChangeWaitersTest, TimeWakesInItsOrder) {
  ASSERT_TRUE(Add(0, "1", 30));
  ASSERT_TRUE(Add(1, "1", 10));
  EXPECT_EQ(waiters_.next(), At(10));

  waiters_.Expire(At(9));
  EXPECT_THAT(woken_, ElementsAre());
  waiters_.Expire(At(10));
  EXPECT_THAT(woken_, ElementsAre(1));
  EXPECT_EQ(waiters_.next(), At(30));
  waiters_.Expire(At(100));

  EXPECT_THAT(woken_, ElementsAre(1, 0));
  EXPECT_FALSE(waiters_.next().has_value());
}

TEST_F(ChangeWaitersTest, WhoLeftIsNotWoken) {
  ASSERT_TRUE(Add(0, "1", 30));

  waiters_.Remove(&calls_[0]);
  waiters_.Remove(&calls_[1]);
  waiters_.Changed(kJob, "2");
  waiters_.Expire(At(100));

  EXPECT_THAT(woken_, ElementsAre());
  EXPECT_EQ(waiters_.size(), 0u);
}

TEST_F(ChangeWaitersTest, AJobThatIsGoneWakesAll) {
  ASSERT_TRUE(Add(0, "1", 30));
  ASSERT_TRUE(Add(1, "2", 30));

  waiters_.Gone(kJob);

  EXPECT_THAT(woken_, testing::UnorderedElementsAre(0, 1));
}

TEST_F(ChangeWaitersTest, SoManyWaitAndNoMore) {
  for (std::size_t i = 0; i < ChangeWaiters::kWaitersMax; ++i) {
    ASSERT_TRUE(Add(static_cast<int>(i), "1", 30));
  }

  EXPECT_FALSE(Add(ChangeWaiters::kWaitersMax, "1", 30));
  waiters_.Remove(&calls_[0]);
  EXPECT_TRUE(Add(ChangeWaiters::kWaitersMax, "1", 30));
}

job::JobRecord Record(const std::string& name) {
  job::JobRecord record;
  record.name = name;
  return record;
}

TEST(RequestIndexTest, CallsWithOneRequestGetTheFirstOnesJob) {
  RequestIndex index;
  std::vector<std::string> answers;
  const auto answer = [&answers](const absl::StatusOr<job::JobRecord>& record) {
    answers.push_back(record.ok() ? record->name : "error");
  };

  EXPECT_EQ(index.Begin("r", answer), RequestIndex::Place::kFirst);
  EXPECT_EQ(index.Begin("r", answer), RequestIndex::Place::kBehind);
  EXPECT_EQ(index.Begin("s", answer), RequestIndex::Place::kFirst);
  EXPECT_EQ(index.Recent("r"), nullptr);
  index.End("r", Record("a-1"));

  EXPECT_THAT(answers, ElementsAre("a-1", "a-1"));
  ASSERT_NE(index.Recent("r"), nullptr);
  EXPECT_EQ(*index.Recent("r"), "a-1");
}

TEST(RequestIndexTest, ARequestThatFailedIsNotRemembered) {
  RequestIndex index;
  int errors = 0;
  index.Begin("r", [&errors](const absl::StatusOr<job::JobRecord>& record) {
    errors += record.ok() ? 0 : 1;
  });

  index.End("r", absl::UnavailableError("disk"));

  EXPECT_EQ(errors, 1);
  EXPECT_EQ(index.Recent("r"), nullptr);
  EXPECT_EQ(index.Begin("r", [](const absl::StatusOr<job::JobRecord>&) {}),
            RequestIndex::Place::kFirst);
}

TEST(RequestIndexTest, WaitersOfOneRequestAreBounded) {
  RequestIndex index;
  const auto ignore = [](const absl::StatusOr<job::JobRecord>&) {};
  for (std::size_t i = 0; i < RequestIndex::kWaitersMax; ++i) index.Begin("r", ignore);

  EXPECT_EQ(index.Begin("r", ignore), RequestIndex::Place::kFull);
  EXPECT_EQ(index.Begin("s", ignore), RequestIndex::Place::kFirst);
}

TEST(RequestIndexTest, TheOldestAreForgotten) {
  RequestIndex index;
  for (std::size_t i = 0; i <= RequestIndex::kRecentMax; ++i) {
    index.Begin(std::to_string(i), [](const absl::StatusOr<job::JobRecord>&) {});
    index.End(std::to_string(i), Record("a"));
  }

  EXPECT_EQ(index.Recent("0"), nullptr);
  EXPECT_NE(index.Recent("1"), nullptr);
  index.Forget("1");
  EXPECT_EQ(index.Recent("1"), nullptr);
}

}  // namespace
}  // namespace tactus::service
