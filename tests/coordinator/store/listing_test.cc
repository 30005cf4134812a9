// Filters and orders of ListJobs, against a plain second implementation.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "base/rng.h"
#include "coordinator/store/job_filter.h"
#include "coordinator/store/store.h"
#include "tests/coordinator/store/any_store.h"
#include "tests/coordinator/store/sample_records.h"

namespace tactus::store {
namespace {

// Jobs that have much in common.
std::vector<job::JobRecord> RandomJobs(std::uint64_t count, Rng& rng) {
  std::vector<job::JobRecord> jobs;
  for (std::uint64_t id = 1; id <= count; ++id) {
    job::JobRecord record = SmallJob(id);
    record.name = std::string(1, static_cast<char>('a' + rng.Below(26))) + std::to_string(id);
    record.state = static_cast<job::JobState>(rng.Below(9));
    record.settings.priority = static_cast<std::int32_t>(rng.Below(5)) - 2;
    record.create_time = static_cast<job::WallTime>(rng.Below(20)) * 1'000'000'000;
    record.update_time = static_cast<job::WallTime>(rng.Below(20));
    if (rng.Below(2) == 0) record.labels["team"] = rng.Below(2) == 0 ? "a" : "b";
    jobs.push_back(record);
  }
  return jobs;
}

bool Holds(Comparison comparison, auto found, auto asked) {
  switch (comparison) {
    case Comparison::kEqual:
      return found == asked;
    case Comparison::kNotEqual:
      return found != asked;
    case Comparison::kLess:
      return found < asked;
    case Comparison::kLessOrEqual:
      return found <= asked;
    case Comparison::kGreater:
      return found > asked;
    case Comparison::kGreaterOrEqual:
      return found >= asked;
  }
  return false;
}

bool Matches(const JobCondition& condition, const job::JobRecord& record) {
  const auto label = record.labels.find(condition.label);
  switch (condition.field) {
    case JobField::kState:
      return Holds(condition.comparison, static_cast<std::int64_t>(record.state), condition.number);
    case JobField::kName:
      return Holds(condition.comparison, record.name, condition.text);
    case JobField::kPriority:
      return Holds(condition.comparison, std::int64_t{record.settings.priority}, condition.number);
    case JobField::kCreateTime:
      return Holds(condition.comparison, record.create_time, condition.number);
    default:
      return Holds(condition.comparison, label == record.labels.end() ? "" : label->second,
                   condition.text);
  }
}

std::vector<std::string> Expected(std::vector<job::JobRecord> jobs, const JobQuery& query) {
  const JobOrder order = *ParseJobOrder(query.order_by);
  const auto key = [&](const job::JobRecord& record) {
    std::int64_t number = record.create_time;
    if (order.field == JobField::kPriority) number = record.settings.priority;
    if (order.field == JobField::kUpdateTime) number = record.update_time;
    if (order.field == JobField::kName) number = 0;
    return std::tuple(number, order.field == JobField::kName ? record.name : "", record.id);
  };
  std::sort(jobs.begin(), jobs.end(), [&](const auto& a, const auto& b) {
    return order.descending ? key(b) < key(a) : key(a) < key(b);
  });
  std::vector<std::string> names;
  const std::vector<JobCondition> conditions = *ParseJobFilter(query.filter);
  for (const job::JobRecord& record : jobs) {
    bool all = true;
    for (const JobCondition& condition : conditions) {
      all = all && Matches(condition, record);
    }
    if (all) names.push_back(record.name);
  }
  return names;
}

// All pages of a listing.
std::vector<std::string> Listed(Store& store, JobQuery query) {
  std::vector<std::string> names;
  do {
    const absl::StatusOr<Page<job::JobRecord>> page = store.ListJobs(query);
    EXPECT_TRUE(page.ok()) << page.status();
    if (!page.ok()) return names;
    EXPECT_LE(page->items.size(), static_cast<std::size_t>(query.page_size));
    for (const job::JobRecord& record : page->items) names.push_back(record.name);
    query.page_token = page->next;
  } while (!query.page_token.empty());
  return names;
}

TEST(ListingOracleTest, FiltersAndOrdersAgreeWithAPlainSearch) {
  const std::string comparisons[] = {"state=RUNNING",     "state!=QUEUED",
                                     "priority=0",        "priority!=-1",
                                     "priority<1",        "priority>=-1",
                                     "priority<=0",       "priority>-2",
                                     "labels.team=a",     "labels.team!=a",
                                     "labels.team=''",    "labels.nobody=''",
                                     "name!=a1",          "create_time>=1970-01-01T00:00:07Z",
                                     "state=PAUSED",      "create_time<1970-01-01T00:00:12Z",
                                     "name=projects/x",   "create_time=1970-01-01T00:00:03Z",
                                     "labels.nobody=yes", "create_time!=1970-01-01T00:00:03Z"};
  const std::string orders[] = {"",         "create_time",   "name",        "name desc",
                                "priority", "priority desc", "update_time", "update_time desc"};
  Rng rng(11);
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  const std::vector<job::JobRecord> jobs = RandomJobs(200, rng);
  ASSERT_TRUE(store->Write({.jobs = jobs}).ok());
  std::size_t found = 0;
  for (int i = 0; i < 1000; ++i) {
    JobQuery query{.page_size = 1 + static_cast<int>(rng.Below(90)),
                   .order_by = orders[rng.Below(std::size(orders))]};
    for (std::uint64_t n = rng.Below(4); n > 0; --n) {
      query.filter +=
          (query.filter.empty() ? "" : " AND ") + comparisons[rng.Below(std::size(comparisons))];
    }

    const std::vector<std::string> listed = Listed(*store, query);

    ASSERT_EQ(listed, Expected(jobs, query)) << query.filter << " by " << query.order_by;
    found += listed.size();
  }
  EXPECT_GT(found, 10000u);
}

TEST(ListingTest, AJobIsListedByWhatItWasChangedTo) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");
  job::JobRecord record = SmallJob(1);
  ASSERT_TRUE(store->Write({.jobs = {record}}).ok());
  record.state = job::JobState::kPaused;
  record.settings.priority = 9;
  record.labels["team"] = "a";

  ASSERT_TRUE(store->Write({.jobs = {record}}).ok());

  EXPECT_EQ(Listed(*store, {.filter = "state=PAUSED AND priority=9 AND labels.team=a"}).size(), 1u);
  EXPECT_EQ(Listed(*store, {.filter = "state=QUEUED"}).size(), 0u);
  EXPECT_EQ(Listed(*store, {.filter = "labels.team=''"}).size(), 0u);
}

TEST(ListingTest, WhatIsWrongIsSaidByField) {
  const std::unique_ptr<Store> store = OpenOrDie(":memory:");

  EXPECT_TRUE(
      std::string(store->ListJobs({.filter = "x=1"}).status().message()).starts_with("filter: "));
  EXPECT_TRUE(
      std::string(store->ListJobs({.order_by = "x"}).status().message()).starts_with("order_by: "));
  EXPECT_TRUE(std::string(store->ListJobs({.page_token = "x"}).status().message())
                  .starts_with("page_token: "));
}

}  // namespace
}  // namespace tactus::store
