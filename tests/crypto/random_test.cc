#include "crypto/random.h"

#include <array>
#include <set>

#include "gtest/gtest.h"

namespace tactus::crypto {
namespace {

TEST(RandomTest, NoTwoAreAlike) {
  std::set<std::array<std::byte, 16>> seen;
  for (int i = 0; i < 1000; ++i) {
    std::array<std::byte, 16> bytes = {};
    ASSERT_TRUE(FillRandom(bytes));
    EXPECT_TRUE(seen.insert(bytes).second);
  }
}

}  // namespace
}  // namespace tactus::crypto
