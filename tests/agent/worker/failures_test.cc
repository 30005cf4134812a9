#include "agent/worker/failures.h"

#include "agent/data/field_error.h"
#include "gtest/gtest.h"

namespace tactus::worker {
namespace {

TEST(FailuresTest, WhatAnotherTryMayNotMeetIsTransient) {
  for (const absl::Status& status :
       {absl::UnavailableError(""), absl::DataLossError(""), absl::AbortedError("")}) {
    EXPECT_TRUE(FailureOf(status).transient) << status;
  }
  for (const absl::Status& status : {absl::InvalidArgumentError(""), absl::NotFoundError(""),
                                     absl::ResourceExhaustedError(""), absl::InternalError("")}) {
    EXPECT_FALSE(FailureOf(status).transient) << status;
    EXPECT_TRUE(FailureOf(OfTheNode(status)).transient) << status;
  }
}

TEST(FailuresTest, TheFieldIsBesideTheWords) {
  const life::Failure failure =
      FailureOf(data::AtField("data.idx", absl::NotFoundError("images: no such file")));

  EXPECT_EQ(failure.field, "data.idx");
  EXPECT_EQ(failure.message, "images: no such file");
  EXPECT_FALSE(failure.of_group);
}

TEST(FailuresTest, ACheckpointOfWhichTheFileIsDamagedIsToBlameItself) {
  EXPECT_EQ(FailureOf(Unreadable(absl::DataLossError("its end is missing"))).field, "checkpoint");
  EXPECT_EQ(FailureOf(Unreadable(absl::NotFoundError("no such file"))).field, "");
}

TEST(FailuresTest, AGroupFellApartWhereItIsUnavailableAlone) {
  EXPECT_TRUE(InGroup(absl::UnavailableError("rank 2 is gone")).of_group);
  EXPECT_FALSE(InGroup(absl::DataLossError("a shard ended early")).of_group);
}

}  // namespace
}  // namespace tactus::worker
