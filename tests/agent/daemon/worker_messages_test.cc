#include "agent/daemon/worker_messages.h"

#include <gtest/gtest.h>

namespace tactus::agent {
namespace {

TEST(WorkerMessagesTest, AReportIsReadInItsJsonForm) {
  const absl::StatusOr<tactus::v1::FromWorker> message = ParseFromWorker(
      R"({"report":{"round":"18446744073709551615","planVersion":"2","lossSum":"NaN","rank":3}})");

  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(message->report().round(), 18446744073709551615u);
  EXPECT_EQ(message->report().plan_version(), 2u);
  EXPECT_NE(message->report().loss_sum(), message->report().loss_sum());
  EXPECT_EQ(message->report().rank(), 3u);
}

TEST(WorkerMessagesTest, FieldsOfANewerWorkerAreIgnored) {
  EXPECT_TRUE(ParseFromWorker(R"({"ready":{"parameters":"1","colour":"red"},"size":2})").ok());
}

TEST(WorkerMessagesTest, WhatIsNoMessageIsRefused) {
  const std::string lines[] = {"",
                               "hello",
                               "[]",
                               "{}",
                               R"({"surprise":{}})",
                               R"({"ready":5})",
                               R"({"ready":{"parameters":"many"}})",
                               R"({"ready":{}} trailing)",
                               "{\"failed\":{\"message\":\"\xff\"}}",
                               std::string(100000, '{'),
                               R"({"failed":{"message":")" + std::string(2 << 20, 'x') + R"("}})"};
  for (const std::string& line : lines) {
    EXPECT_EQ(ParseFromWorker(line).status().code(), absl::StatusCode::kInvalidArgument)
        << line.substr(0, 60);
  }
}

TEST(WorkerMessagesTest, AMessageDownIsOneLine) {
  tactus::v1::ToWorker message;
  message.mutable_plan()->set_version(7);
  message.mutable_plan()->add_batch_sizes(3);
  message.mutable_plan()->set_reason("one\ntwo");

  const absl::StatusOr<std::string> line = FormatToWorker(message);

  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(*line, R"({"plan":{"version":"7","batchSizes":[3],"reason":"one\ntwo"}})");
}

}  // namespace
}  // namespace tactus::agent
