#include "coordinator/store/job_numbers.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "coordinator/store/store.h"
#include "tests/coordinator/store/any_store.h"
#include "tests/coordinator/store/sample_records.h"
#include "tests/support/temporary_folder.h"

namespace tactus::store {
namespace {

TEST(JobNumbersTest, EachNameCountsForItself) {
  JobNumbers numbers;

  EXPECT_EQ(numbers.Next("shakespeare"), "shakespeare-1");
  EXPECT_EQ(numbers.Next("cifar"), "cifar-1");
  EXPECT_EQ(numbers.Next("shakespeare"), "shakespeare-2");
  EXPECT_EQ(numbers.Next("cifar-1"), "cifar-1-1");
  EXPECT_EQ(numbers.Next("cifar"), "cifar-2");
}

TEST(JobNumbersTest, WhatIsNotKnownBeginsAboveTheFloor) {
  JobNumbers numbers({.floor = 7, .last = {{"a-", 2}}});

  EXPECT_EQ(numbers.Next("a"), "a-3");
  EXPECT_EQ(numbers.Next("b"), "b-8");
}

TEST(JobNumbersTest, OfTooManyNamesNoneIsGivenAgain) {
  JobNumbers::Given given{.last = {{"a-", 41}}};
  for (std::size_t i = 1; i < JobNumbers::kNamesMax; ++i) given.last["b" + std::to_string(i)] = 1;
  JobNumbers numbers(std::move(given));

  EXPECT_EQ(numbers.Next("new"), "new-42");
  EXPECT_EQ(numbers.Next("a"), "a-42");
}

TEST(StoredNumbersTest, AStoreKnowsTheHighestOfEachNameWhateverWasDeleted) {
  const TemporaryFolder folder;
  {
    const std::unique_ptr<Store> store = OpenOrDie(folder.File("db"));
    job::JobRecord other = SmallJob(3);
    other.name = "a-b-17";
    ASSERT_TRUE(store->Write({.jobs = {SmallJob(1), SmallJob(2), other}}).ok());
    ASSERT_TRUE(store->DeleteJob(JobId{2}).ok());
    ASSERT_TRUE(store->DeleteJob(JobId{3}).ok());
  }

  const auto given = OpenOrDie(folder.File("db"))->Numbers();

  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_EQ(given->floor, 0u);
  EXPECT_EQ(given->last, (std::map<std::string, std::uint64_t>{{"job-", 2}, {"a-b-", 17}}));
}

}  // namespace
}  // namespace tactus::store
