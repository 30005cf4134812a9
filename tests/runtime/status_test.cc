#include "runtime/status.h"

#include <grpcpp/support/status.h>
#include <gtest/gtest.h>

#include <vector>

namespace tactus::runtime {
namespace {

TEST(StatusTest, EveryCodeComesBackAsItWent) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status sent(static_cast<absl::StatusCode>(code), "what: 7");

    const absl::Status received = FromGrpc(ToGrpc(sent));

    EXPECT_EQ(received.code(), sent.code()) << code;
    EXPECT_EQ(received.message(), sent.message()) << code;
  }
}

TEST(StatusTest, OkHasNeitherMessageNorDetails) {
  EXPECT_TRUE(ToGrpc(absl::OkStatus()).ok());
  EXPECT_TRUE(FromGrpc(grpc::Status::OK).ok());
}

TEST(StatusTest, FieldViolationsCrossTheWireInOrder) {
  const std::vector<FieldViolation> violations = {{"name", "is missing"},
                                                  {"stop.epochs", "found 0, allowed is 1 or more"}};

  const absl::Status received = FromGrpc(ToGrpc(InvalidFields(violations)));

  EXPECT_TRUE(absl::IsInvalidArgument(received));
  EXPECT_EQ(received.message(), "name: is missing; stop.epochs: found 0, allowed is 1 or more");
  EXPECT_EQ(FieldViolations(received), violations);
  EXPECT_EQ(ReasonOf(received).reason, "INVALID_FIELDS");
}

TEST(StatusTest, AReasonKeepsItsMetadata) {
  const absl::Status sent = WithReason(absl::NotFoundError("jobs/x: not found"),
                                       {.reason = "JOB_NOT_FOUND", .metadata = {{"job", "x"}}});

  const ErrorReason received = ReasonOf(FromGrpc(ToGrpc(sent)));

  EXPECT_EQ(received.reason, "JOB_NOT_FOUND");
  EXPECT_EQ(received.metadata.at("job"), "x");
}

TEST(StatusTest, DetailsThatAreNotOursAreLeftOut) {
  const grpc::Status wire(grpc::StatusCode::ABORTED, "stale", "\xff\xff not a message");

  const absl::Status received = FromGrpc(wire);

  EXPECT_TRUE(absl::IsAborted(received));
  EXPECT_TRUE(FieldViolations(received).empty());
  EXPECT_EQ(ReasonOf(received).reason, "");
}

TEST(StatusTest, LongMessagesAndDetailsFitATrailer) {
  std::vector<FieldViolation> violations(200, {"data.text", std::string(100, 'x')});

  const grpc::Status wire = ToGrpc(InvalidFields(violations));

  EXPECT_LE(wire.error_message().size() + wire.error_details().size(), 8192u + 4096u);
  EXPECT_EQ(wire.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST(StatusTest, EveryErrorLeavesWithAReason) {
  EXPECT_EQ(ReasonOf(FromGrpc(ToGrpc(absl::NotFoundError("x")))).reason, "NOT_FOUND");
  EXPECT_EQ(
      ReasonOf(FromGrpc(ToGrpc(WithReason(absl::NotFoundError("x"), {.reason = "MINE"})))).reason,
      "MINE");
}

TEST(StatusTest, WhatPassesSaysWhenToTryAgain) {
  EXPECT_EQ(RetryDelayOf(FromGrpc(ToGrpc(absl::UnavailableError("x")))), Seconds(1));
  EXPECT_EQ(RetryDelayOf(FromGrpc(ToGrpc(absl::ResourceExhaustedError("x")))), Seconds(1));
  EXPECT_EQ(RetryDelayOf(FromGrpc(ToGrpc(WithRetry(absl::UnavailableError("x"), Seconds(2.5))))),
            Seconds(2.5));
  EXPECT_FALSE(RetryDelayOf(FromGrpc(ToGrpc(absl::NotFoundError("x")))).has_value());
}

}  // namespace
}  // namespace tactus::runtime
