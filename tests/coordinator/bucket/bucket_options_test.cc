#include "coordinator/bucket/bucket_options.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/support/temporary_folder.h"

namespace tactus::bucket {
namespace {

std::string Wrong(const BucketOptions& options) {
  return std::string(options.Validate().message());
}

TEST(BucketOptionsTest, APlaceIsABucketAndPerhapsAPrefix) {
  for (const char* place : {"s3://abc", "s3://a.b-c/", "s3://abc/p", "s3://abc/p/q_r.s-T/"}) {
    EXPECT_TRUE(BucketOptions{.place = place}.Validate().ok()) << place;
  }
  EXPECT_EQ(PlaceOf({.place = "s3://abc"}).prefix, "");
  EXPECT_EQ(PlaceOf({.place = "s3://abc/p/q/"}).prefix, "p/q/");
  EXPECT_EQ(PlaceOf({.place = "s3://abc/p"}).bucket, "abc");
  for (const char* place :
       {"abc", "s3:/abc", "s3://", "s3://ab", "s3://ABC", "s3://-abc", "s3://abc/p//q",
        "s3://abc/../q", "s3://abc/p q", "s3://abc/p?q", "https://abc"}) {
    EXPECT_TRUE(Wrong({.place = place}).starts_with("blobs: found \"")) << place;
  }
}

TEST(BucketOptionsTest, AnEndpointIsASchemeAndAHost) {
  for (const char* endpoint :
       {"https://minio.example", "http://127.0.0.1:9000", "https://[::1]:9"}) {
    EXPECT_EQ(Wrong({.place = "s3://abc", .endpoint = endpoint}), "") << endpoint;
  }
  for (const char* endpoint : {"minio:9000", "ftp://x", "https://", "https://a/b", "https://a b",
                               "http://a:0", "https://u:p@h"}) {
    EXPECT_TRUE(Wrong({.place = "s3://abc", .endpoint = endpoint}).starts_with("blobs-endpoint: "))
        << endpoint;
  }
  EXPECT_TRUE(Wrong({.place = "s3://abc", .region = "eu central"}).starts_with("blobs-region: "));
  EXPECT_TRUE(
      Wrong({.endpoint = "https://h"}).starts_with("blobs-endpoint: found without --blobs"));
  EXPECT_EQ(EndpointOf({.place = "s3://abc", .region = "eu-west-1"}),
            "https://s3.eu-west-1.amazonaws.com");
  EXPECT_TRUE(IsExposed({.place = "s3://abc", .endpoint = "http://minio:9000"}));
  EXPECT_FALSE(IsExposed({.place = "s3://abc", .endpoint = "http://127.0.0.1:9000"}));
  EXPECT_FALSE(IsExposed({.place = "s3://abc"}));
}

TEST(BucketOptionsTest, KeysAreReadFromAFileThatOthersMayNotRead) {
  const TemporaryFolder folder;
  const std::string path = folder.File("keys");
  const BucketOptions options = {.place = "s3://abc", .keys_file = path};
  const auto write = [&](const std::string& text, mode_t mode) {
    std::ofstream(path) << text;
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
  };

  EXPECT_TRUE(absl::IsNotFound(KeysOf(options).status()));
  write(
      "[other]\naws_access_key_id = no\n[default]\n  aws_access_key_id=ID\r\n"
      "aws_secret_access_key = a=b/c+d\naws_session_token = T\n[more]\naws_session_token=no\n",
      0600);
  const absl::StatusOr<Keys> keys = KeysOf(options);
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(keys->id, "ID");
  EXPECT_EQ(keys->secret, "a=b/c+d");
  EXPECT_EQ(keys->token, "T");
  write("aws_access_key_id = ID\n", 0600);
  EXPECT_TRUE(absl::IsFailedPrecondition(KeysOf(options).status()));
  write("aws_access_key_id = ID\naws_secret_access_key = s3cr3t\n", 0644);
  const absl::Status open = KeysOf(options).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(open));
  EXPECT_EQ(open.message().find("s3cr3t"), open.message().npos);
}

TEST(BucketOptionsTest, WithoutAFileTheyAreThoseOfTheEnvironment) {
  EXPECT_EQ(KeysOf({.place = "s3://abc", .keys = {.id = "ID", .secret = "S"}})->secret, "S");

  const absl::Status none = KeysOf({.place = "s3://abc", .keys = {.id = "ID"}}).status();

  EXPECT_TRUE(absl::IsFailedPrecondition(none));
  EXPECT_NE(none.message().find("AWS_SECRET_ACCESS_KEY"), none.message().npos);
}

}  // namespace
}  // namespace tactus::bucket
