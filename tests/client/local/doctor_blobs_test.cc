#include "client/local/doctor_blobs.h"

#include <gtest/gtest.h>

namespace tactus::client {
namespace {

const bucket::BucketOptions kOptions = {.place = "s3://models/tactus",
                                        .endpoint = "https://minio.example"};

TEST(DoctorBlobsTest, ABucketThatDoesAllIsWell) {
  const Finding finding = JudgeBlobs(kOptions, bucket::Bucket::Probed{.seconds = 0.0421});

  EXPECT_EQ(finding.grade, Grade::kOk);
  EXPECT_EQ(finding.subject, "blobs");
  EXPECT_EQ(finding.found,
            "s3://models/tactus at https://minio.example took, gave back and removed an object "
            "within 43 ms");
}

TEST(DoctorBlobsTest, ClocksThatDriftAreSaidBeforeTheyHurt) {
  const Finding behind =
      JudgeBlobs(kOptions, bucket::Bucket::Probed{.seconds = 0.01, .clock_seconds = -300});

  EXPECT_EQ(behind.grade, Grade::kLook);
  EXPECT_NE(behind.found.find("clock is 300 s behind the server's"), std::string::npos)
      << behind.found;
  EXPECT_EQ(
      JudgeBlobs(kOptions, bucket::Bucket::Probed{.seconds = 0.01, .clock_seconds = 20}).grade,
      Grade::kOk);
}

TEST(DoctorBlobsTest, SlownessAndClearTextAreLookedAt) {
  bucket::BucketOptions plain = kOptions;
  plain.endpoint = "http://minio.example:9000";

  EXPECT_EQ(JudgeBlobs(kOptions, bucket::Bucket::Probed{.seconds = 3}).grade, Grade::kLook);
  EXPECT_EQ(JudgeBlobs(plain, bucket::Bucket::Probed{.seconds = 0.1}).grade, Grade::kLook);
}

TEST(DoctorBlobsTest, WhatFailsIsBadAndSaysWhy) {
  const Finding finding = JudgeBlobs(kOptions, absl::PermissionDeniedError("blobs: no\x1b way"));

  EXPECT_EQ(finding.grade, Grade::kBad);
  EXPECT_EQ(finding.found.find('\x1b'), std::string::npos);
  EXPECT_TRUE(absl::IsInvalidArgument(LookAtBlobs({.place = "models"}).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(LookAtBlobs(kOptions).status()));  // no keys
}

}  // namespace
}  // namespace tactus::client
