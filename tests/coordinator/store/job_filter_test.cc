#include "coordinator/store/job_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "coordinator/job/records.h"

namespace tactus::store {
namespace {

std::vector<JobCondition> Parsed(const std::string& filter) {
  const auto conditions = ParseJobFilter(filter);
  EXPECT_TRUE(conditions.ok()) << filter << ": " << conditions.status();
  return conditions.ok() ? *conditions : std::vector<JobCondition>{};
}

std::string Refusal(const std::string& filter) {
  const auto conditions = ParseJobFilter(filter);
  EXPECT_EQ(conditions.status().code(), absl::StatusCode::kInvalidArgument) << filter;
  return std::string(conditions.status().message());
}

TEST(JobFilterTest, NothingAsksForEveryJob) {
  EXPECT_TRUE(Parsed("").empty());
  EXPECT_TRUE(Parsed("  \t ").empty());
}

TEST(JobFilterTest, ComparisonsAreJoinedByAnd) {
  const auto conditions = Parsed("state=RUNNING AND labels.team = 'vision 2' AND priority>=-5");

  ASSERT_EQ(conditions.size(), 3u);
  EXPECT_EQ(conditions[0].field, JobField::kState);
  EXPECT_EQ(conditions[0].comparison, Comparison::kEqual);
  EXPECT_EQ(conditions[0].number, static_cast<std::int64_t>(job::JobState::kRunning));
  EXPECT_EQ(conditions[1].field, JobField::kLabel);
  EXPECT_EQ(conditions[1].label, "team");
  EXPECT_EQ(conditions[1].text, "vision 2");
  EXPECT_EQ(conditions[2].field, JobField::kPriority);
  EXPECT_EQ(conditions[2].comparison, Comparison::kGreaterOrEqual);
  EXPECT_EQ(conditions[2].number, -5);
}

TEST(JobFilterTest, EveryStateIsKnownWithAndWithoutItsPrefix) {
  const char* names[] = {"QUEUED", "STARTING",  "RUNNING",    "STOPPING", "SUCCEEDED",
                         "FAILED", "CANCELLED", "SUSPENDING", "PAUSED"};
  for (std::int64_t state = 0; state < 9; ++state) {
    EXPECT_EQ(Parsed(std::string("state=") + names[state])[0].number, state);
    EXPECT_EQ(Parsed(std::string("state!=JOB_STATE_") + names[state])[0].number, state);
  }
}

TEST(JobFilterTest, ValuesMayBeQuotedAndEscaped) {
  EXPECT_EQ(Parsed(R"(labels.a="x \"y\" \\ 'z'")")[0].text, R"(x "y" \ 'z')");
  EXPECT_EQ(Parsed("labels.a=''")[0].text, "");
  EXPECT_EQ(Parsed("labels.\"team = x\"!=\"\xc3\xa9\"")[0].label, "team = x");
  EXPECT_EQ(Parsed("labels.example.org/a-b=c")[0].label, "example.org/a-b");
  EXPECT_EQ(Parsed("name=projects/default/jobs/a-3")[0].text, "a-3");
}

TEST(JobFilterTest, TimesAreThoseOfRfc3339) {
  EXPECT_EQ(Parsed("create_time > 1970-01-01T00:00:01Z")[0].number, 1'000'000'000);
  EXPECT_EQ(Parsed("create_time<\"2026-01-31T09:30:00.25+01:00\"")[0].number,
            1'769'848'200'250'000'000);
}

TEST(JobFilterTest, AnErrorSaysWhereWhatAndWhatIsAllowed) {
  EXPECT_EQ(Refusal("colour=red"),
            "filter: at 1: found 'colour=red'; allowed: state, name, priority, create_time and "
            "labels.KEY (KEY quoted where it has other characters)");
  EXPECT_EQ(Refusal("state = BUSY"),
            "filter: at 9: found 'BUSY'; allowed: QUEUED, STARTING, RUNNING, SUSPENDING, PAUSED, "
            "STOPPING, SUCCEEDED, FAILED, CANCELLED");
  EXPECT_EQ(Refusal("state<RUNNING"), "filter: at 6: found '<RUNNING'; allowed: = and !=");
  EXPECT_EQ(Refusal("priority"), "filter: at 9: found the end; allowed: =, !=, <, <=, > and >=");
  EXPECT_EQ(Refusal("priority=1001"),
            "filter: at 10: found '1001'; allowed: whole numbers from -1000 to 1000");
  EXPECT_EQ(Refusal("name="), "filter: at 6: found the end; allowed: a value, bare or quoted");
  EXPECT_EQ(Refusal("name=a OR name=b"),
            "filter: at 8: found 'OR'; allowed: AND and another comparison, or the end");
  EXPECT_EQ(Refusal("name=\"a"), "filter: at 6: found a quote that is not closed");
  EXPECT_EQ(Refusal("create_time=yesterday"),
            "filter: at 13: found 'yesterday'; allowed: times as in RFC 3339, such as "
            "2026-01-31T09:30:00Z");
  EXPECT_EQ(Refusal("name='a\nb'"), "filter: at 8: found a control character; none is allowed");
}

TEST(JobFilterTest, OtherThingsAreRefused) {
  for (const char* filter :
       {"name", "=a", "AND", "name=a AND", "name=a name=b", "labels.=a", "labels.''=a", "(name=a)",
        "name==a", "name:a", "priority=1.5", "priority=", "state=running", "update_time=1",
        "name=a AND AND name=b", "not name=a", "name=a)", "name=a\x01", "\x80=1"}) {
    EXPECT_TRUE(Refusal(filter).starts_with("filter: at ")) << filter;
  }
}

TEST(JobFilterTest, LengthAndNumberAreBounded) {
  std::string sixteen = "name!=a";
  for (int i = 1; i < 16; ++i) sixteen += " AND name!=a";

  EXPECT_EQ(Parsed(sixteen).size(), 16u);
  EXPECT_NE(Refusal(sixteen + " AND name!=a").find("more than 16 comparisons"), std::string::npos);
  EXPECT_EQ(Parsed("name=" + std::string(1019, 'a')).size(), 1u);
  EXPECT_EQ(Refusal("name=" + std::string(1020, 'a')), "filter: found 1025 bytes; allowed: 1024");
  EXPECT_EQ(Refusal(std::string(10 << 20, 'x')), "filter: found 10485760 bytes; allowed: 1024");
}

TEST(JobFilterPropertyTest, RandomTextIsParsedOrRefusedInPrintableWords) {
  const std::string pieces[] = {"state",
                                "name",
                                "labels.",
                                "labels.a",
                                "priority",
                                "create_time",
                                "=",
                                "!=",
                                "<",
                                ">=",
                                " ",
                                "AND",
                                " AND ",
                                "\"",
                                "'",
                                "\\",
                                "RUNNING",
                                "-7",
                                "2026-01-31T09:30:00Z",
                                "x",
                                "\t"};
  Rng rng(7);
  int parsed = 0;
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string filter;
    for (std::uint64_t n = rng.Below(12); n > 0; --n) {
      const std::uint64_t which = rng.Below(std::size(pieces) + 1);
      filter += which < std::size(pieces) ? pieces[which]
                                          : std::string(1, static_cast<char>(rng.Below(256)));
    }
    const auto conditions = ParseJobFilter(filter);
    ++(conditions.ok() ? parsed : refused);
    for (const char c : std::string(conditions.status().message())) {
      ASSERT_TRUE(c >= ' ' && c <= '~') << "iteration " << i << ": " << conditions.status();
    }
  }
  EXPECT_GT(parsed, 100);
  EXPECT_GT(refused, 1000);
}

TEST(JobOrderTest, NamesAFieldAndADirection) {
  const auto expect = [](const std::string& order_by, JobField field, bool descending) {
    const auto order = ParseJobOrder(order_by);
    ASSERT_TRUE(order.ok()) << order.status();
    EXPECT_EQ(order->field, field) << order_by;
    EXPECT_EQ(order->descending, descending) << order_by;
  };
  expect("", JobField::kCreateTime, true);
  expect("  ", JobField::kCreateTime, true);
  expect("create_time", JobField::kCreateTime, false);
  expect("create_time desc", JobField::kCreateTime, true);
  expect(" name ", JobField::kName, false);
  expect("priority   desc", JobField::kPriority, true);
  expect("update_time asc", JobField::kUpdateTime, false);
}

TEST(JobOrderTest, AnythingElseIsRefused) {
  for (const char* order_by :
       {"state", "name,priority", "desc", "name down", "name desc desc", "\n"}) {
    const auto order = ParseJobOrder(order_by);
    EXPECT_EQ(order.status().code(), absl::StatusCode::kInvalidArgument) << order_by;
  }
  EXPECT_EQ(std::string(ParseJobOrder("state").status().message()),
            "order_by: found 'state'; allowed: create_time, name, priority and update_time, one of "
            "them, then \" desc\" where wanted");
}

TEST(JobFilterTest, TimesOfDay) {
  const auto time = [](const std::string& text) {
    return Parsed("create_time>'" + text + "'")[0].number;
  };
  EXPECT_EQ(time("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(time("2000-02-29T12:00:00z"), 951'825'600'000'000'000);
  EXPECT_EQ(time("2000-02-29t12:00:00.000000001Z"), 951'825'600'000'000'001);
  EXPECT_EQ(time("2000-02-29T06:30:00-05:30"), 951'825'600'000'000'000);
  EXPECT_EQ(time("2026-01-31T09:29:60Z"), time("2026-01-31T09:30:00Z"));
  EXPECT_EQ(time("2200-12-31T23:59:59Z"), 7'289'654'399'000'000'000);
}

TEST(JobFilterTest, WhatIsNoTimeOfDay) {
  for (const char* text : {"",
                           "2026",
                           "2026-01-31",
                           "2026-01-31T09:30:00",
                           "2026-01-31 09:30:00Z",
                           "2026-02-30T09:30:00Z",
                           "2026-13-01T00:00:00Z",
                           "2026-01-31T24:00:00Z",
                           "2026-01-31T09:60:00Z",
                           "2026-01-31T09:30:61Z",
                           "2026-01-31T09:30:00.Z",
                           "2026-01-31T09:30:00.1234567890Z",
                           "2026-01-31T09:30:00+1:00",
                           "1969-12-31T23:59:59Z",
                           "2201-01-01T00:00:00Z",
                           "2026-01-31T09:30:00Zx",
                           "-026-01-31T09:30:00Z",
                           "2026-1-31T09:30:00Z",
                           "2026-01-31T09:30:00+01",
                           " 2026-01-31T09:30:00Z",
                           "infinite-future"}) {
    EXPECT_THAT(Refusal("create_time>'" + std::string(text) + "'"),
                testing::HasSubstr("times as in RFC 3339"));
  }
}

}  // namespace
}  // namespace tactus::store
