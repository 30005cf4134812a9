#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "coordinator/shell/outbox.h"

namespace tactus::service {
namespace {

using ::testing::ElementsAre;

agent::v1::ToAgent Stop(std::uint64_t worker) {
  agent::v1::ToAgent message;
  message.mutable_stop_worker()->set_worker_id(worker);
  return message;
}

std::vector<std::uint64_t> SendAll(Outbox& outbox) {
  std::vector<std::uint64_t> sequences;
  while (const agent::v1::ToAgent* message = outbox.Next())
    sequences.push_back(message->sequence());
  return sequences;
}

TEST(OutboxTest, MessagesAreNumberedFromOneAndSentOnce) {
  Outbox outbox;
  ASSERT_TRUE(outbox.Append(Stop(1)));
  ASSERT_TRUE(outbox.Append(Stop(2)));

  EXPECT_THAT(SendAll(outbox), ElementsAre(1, 2));
  EXPECT_THAT(SendAll(outbox), ElementsAre());
}

TEST(OutboxTest, ANewStreamGetsAgainWhatWasNotAcknowledged) {
  Outbox outbox;
  for (std::uint64_t i = 1; i <= 4; ++i) ASSERT_TRUE(outbox.Append(Stop(i)));
  SendAll(outbox);
  outbox.Acknowledge(1);

  outbox.Rewind(2);
  ASSERT_TRUE(outbox.Append(Stop(5)));

  EXPECT_THAT(SendAll(outbox), ElementsAre(3, 4, 5));
}

TEST(OutboxTest, ARestartGoesOnBehindWhatTheAgentRemembers) {
  Outbox outbox;
  ASSERT_TRUE(outbox.Append(Stop(1)));

  outbox.Restart(17);
  ASSERT_TRUE(outbox.Append(Stop(2)));

  EXPECT_THAT(SendAll(outbox), ElementsAre(18));
}

TEST(OutboxTest, AFullBoxRefuses) {
  Outbox outbox;
  for (std::size_t i = 0; i < Outbox::kMessagesMax; ++i) ASSERT_TRUE(outbox.Append(Stop(i)));

  EXPECT_FALSE(outbox.Append(Stop(0)));
  EXPECT_EQ(outbox.size(), Outbox::kMessagesMax);
}

}  // namespace
}  // namespace tactus::service
