// What is told to whoever submits more than is taken.

#include <gtest/gtest.h>

#include "tests/coordinator/server_fixture.h"

namespace tactus::service {
namespace {

class QueueFullTest : public ServerFixture {
 protected:
  void SetUp() override {
    options_.unfinished_jobs = 2;
    ServerFixture::SetUp();
  }
};

TEST_F(QueueFullTest, MoreJobsThanAreAllowedAreRefusedUntilOneIsOver) {
  ASSERT_TRUE(Create(SmallSpec()).ok());
  ASSERT_TRUE(Create(SmallSpec()).ok());

  const absl::Status refused = Create(SmallSpec()).status();

  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_EQ(runtime::ReasonOf(refused).reason, "QUEUE_FULL");
  EXPECT_EQ(runtime::ReasonOf(refused).metadata.at("limit"), "2");
  EXPECT_EQ(runtime::RetryDelayOf(refused), std::chrono::seconds(60));
  ASSERT_TRUE(Cancel("small-1").ok());
  EXPECT_TRUE(Create(SmallSpec()).ok());
}

}  // namespace
}  // namespace tactus::service
