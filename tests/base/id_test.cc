#include "base/id.h"

#include <gtest/gtest.h>

#include <map>
#include <type_traits>

namespace tactus {
namespace {

TEST(IdTest, StartsAtZero) { EXPECT_EQ(JobId{}.value, 0u); }

TEST(IdTest, IsOrderedByItsValue) {
  EXPECT_EQ(JobId{3}, JobId{3});
  EXPECT_NE(JobId{3}, JobId{4});
  EXPECT_LT(JobId{3}, JobId{4});
  EXPECT_GT(JobId{~0ULL}, JobId{0});
}

TEST(IdTest, IdsOfDifferentThingsCannotBeMixed) {
  static_assert(!std::is_convertible_v<JobId, WorkerId>);
  static_assert(!std::is_convertible_v<WorkerId, JobId>);
  static_assert(!std::is_convertible_v<JobId, std::uint64_t>);
  static_assert(!std::is_same_v<JobId, WorkerId>);
}

TEST(IdTest, IsAKeyOfOrderedContainers) {
  std::map<WorkerId, int> ranks;

  ranks[WorkerId{9}] = 1;
  ranks[WorkerId{2}] = 0;

  EXPECT_EQ(ranks.begin()->first, WorkerId{2});
  EXPECT_EQ(ranks.at(WorkerId{9}), 1);
}

}  // namespace
}  // namespace tactus
