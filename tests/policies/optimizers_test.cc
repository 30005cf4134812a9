#include "policies/optimizers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tactus::policies {
namespace {

TEST(OptimizersTest, AllButSgdBendTheGradient) {
  ASSERT_EQ(Optimizers().front().name, "sgd");
  for (const OptimizerRow& row : Optimizers()) {
    EXPECT_EQ(IsPreconditioned(row.name), row.name != "sgd") << row.name;
    EXPECT_EQ(BendingOf(row.name), row.bending);
  }
}

TEST(OptimizersTest, NothingThatIsDerivedForSgdIsDoneWithAnUnknownOne) {
  EXPECT_TRUE(IsPreconditioned("rprop"));
  EXPECT_EQ(BendingOf("rprop"), "");
}

}  // namespace
}  // namespace tactus::policies
