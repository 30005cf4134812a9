#include "coordinator/bucket/bucket.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "base/rng.h"
#include "runtime/now.h"
#include "runtime/sha256.h"
#include "tests/support/bucket/bucket_process.h"

namespace tactus::bucket {
namespace {

using nlohmann::json;

std::string RandomBytes(std::uint64_t seed, std::size_t size) {
  Rng rng(seed);
  std::string bytes;
  while (bytes.size() < size) bytes += static_cast<char>(rng.Below(256));
  return bytes;
}

// A server that holds each signature against botocore's, and fails as it is told.
class BucketTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { process_ = new support::BucketProcess; }
  static void TearDownTestSuite() { delete process_; }

  void SetUp() override {
    if (!process_->serves()) GTEST_SKIP() << "python3-botocore is not installed";
    process_->Clear();
  }

  static BucketOptions Options() {
    return {
        .place = "s3://test/some/prefix",
        .endpoint = process_->endpoint(),
        .keys = {.id = support::BucketProcess::kKeyId, .secret = support::BucketProcess::kSecret},
        .attempts = 4,
        .backoff = {.initial = Seconds(0.001), .max = Seconds(0.01)},
        .silence = Seconds(2),
        .part_bytes = std::size_t{5} << 20};
  }
  static std::unique_ptr<Bucket> Open(const BucketOptions& options) {
    auto bucket = Bucket::Open(options);
    EXPECT_TRUE(bucket.ok()) << bucket.status();
    return *std::move(bucket);
  }

  static void Fail(json fault, int times = 1) {
    fault["times"] = times;
    process_->Order({{"faults", {fault}}});
  }
  static json Refuse(const char* method, int status, const char* code) {
    return {{"method", method}, {"kind", "status"}, {"status", status}, {"code", code}};
  }

  Bucket::File Make(const std::string& content) const {
    const std::string path = folder_.File("file");
    std::ofstream(path, std::ios::binary) << content;
    return {.path = path, .size_bytes = content.size(), .sha256 = runtime::Sha256Of(content)};
  }
  static json Objects() { return process_->State()["objects"]; }

  static support::BucketProcess* process_;
  const TemporaryFolder folder_;
};

support::BucketProcess* BucketTest::process_ = nullptr;

TEST_F(BucketTest, WhatIsPutIsReadListedAndRemoved) {
  const auto bucket = Open(Options());
  const std::string content = RandomBytes(1, 100'000);
  ASSERT_TRUE(bucket->Put("a/one", content).ok());
  ASSERT_TRUE(bucket->Put("a/none", "").ok());
  ASSERT_TRUE(bucket->Put("b/other", "x").ok());
  EXPECT_EQ(Objects(), (json{{"some/prefix/a/none", 0},
                             {"some/prefix/a/one", 100'000},
                             {"some/prefix/b/other", 1}}));

  EXPECT_EQ(*bucket->Get("a/one", {.offset = 0, .count = content.size()}), content);
  EXPECT_EQ(*bucket->Get("a/one", {.offset = 99'000, .count = 1000}), content.substr(99'000));
  EXPECT_EQ(*bucket->SizeOf("a/one"), 100'000u);
  std::vector<std::string> keys;
  ASSERT_TRUE(bucket->List("a/", [&](const auto& found) { keys.push_back(found.key); }).ok());
  EXPECT_EQ(keys, (std::vector<std::string>{"a/none", "a/one"}));
  EXPECT_TRUE(bucket->Remove("a/one").ok());
  EXPECT_TRUE(bucket->Remove("a/one").ok());
  EXPECT_TRUE(absl::IsNotFound(bucket->SizeOf("a/one").status()));
  EXPECT_TRUE(absl::IsNotFound(bucket->Get("a/one", {.offset = 0, .count = 1}).status()));
}

TEST_F(BucketTest, WhoeverPutsANewObjectFirstHasPutIt) {
  const auto bucket = Open(Options());
  // Done, and its answer is lost: what is asked again finds its own.
  Fail({{"method", "PUT"}, {"kind", "late"}}, 1);
  EXPECT_TRUE(bucket->PutNew("key", "one").ok());
  EXPECT_TRUE(bucket->PutNew("key", "two").ok());
  EXPECT_EQ(*bucket->Get("key", {.offset = 0, .count = 3}), "one");
  // A server that does not know the condition.
  Fail({{"method", "PUT"}, {"kind", "status"}, {"status", 501}, {"code", "NotImplemented"}}, 1);
  EXPECT_TRUE(bucket->PutNew("other", "old").ok());
  EXPECT_EQ(*bucket->Get("other", {.offset = 0, .count = 3}), "old");
  Fail({{"method", "PUT"}, {"kind", "status"}, {"status", 403}, {"code", "AccessDenied"}}, 1);
  EXPECT_TRUE(absl::IsPermissionDenied(bucket->PutNew("third", "x")));
}

TEST_F(BucketTest, AListingHasAllPages) {
  const auto bucket = Open(Options());
  json objects = json::object();
  for (int i = 100; i < 150; ++i) objects["some/prefix/k" + std::to_string(i)] = "x";
  process_->Order({{"page", 7}, {"put", objects}});
  std::vector<std::string> keys;

  ASSERT_TRUE(bucket->List("k", [&](const auto& found) { keys.push_back(found.key); }).ok());

  ASSERT_EQ(keys.size(), 50u);
  EXPECT_EQ(keys.front(), "k100");
  EXPECT_EQ(keys.back(), "k149");
}

TEST_F(BucketTest, ALargeFileGoesInPartsAndIsThereWhenAllAre) {
  const auto bucket = Open(Options());
  const std::string content = RandomBytes(2, (std::size_t{12} << 20) + 5);

  ASSERT_TRUE(bucket->PutFile("large", Make(content)).ok());

  EXPECT_EQ(Objects(), (json{{"some/prefix/large", content.size()}}));
  EXPECT_EQ(process_->State()["uploads"], json::array());
  EXPECT_EQ(*bucket->Get("large", {.offset = 7'000'000, .count = 5'000'000}),
            content.substr(7'000'000, 5'000'000));
}

TEST_F(BucketTest, OneThatBreaksOffLeavesNothing) {
  const auto bucket = Open(Options());
  json fault = Refuse("PUT", 403, "AccessDenied");
  fault["after"] = 2;
  Fail(fault);

  const absl::Status status = bucket->PutFile("large", Make(RandomBytes(2, std::size_t{12} << 20)));

  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_EQ(Objects(), json::object());
  EXPECT_EQ(process_->State()["uploads"], json::array());
}

TEST_F(BucketTest, AFileThatIsNotWhatItWasIsNotSent) {
  const auto bucket = Open(Options());
  for (const std::size_t size : {std::size_t{1000}, std::size_t{11} << 20}) {
    Bucket::File file = Make(RandomBytes(3, size));
    file.sha256 = runtime::Sha256Of("something else");
    EXPECT_TRUE(absl::IsDataLoss(bucket->PutFile("x", file)));
    file = Make(RandomBytes(3, size));
    file.size_bytes += 1;
    EXPECT_TRUE(absl::IsDataLoss(bucket->PutFile("x", file)));
  }
  EXPECT_EQ(Objects(), json::object());
  EXPECT_EQ(process_->State()["uploads"], json::array());
}

TEST_F(BucketTest, WhatMayPassIsTriedAgain) {
  const auto bucket = Open(Options());
  const std::string content = RandomBytes(4, 50'000);
  const json faults[] = {
      Refuse("PUT", 500, "InternalError"),  Refuse("PUT", 503, "SlowDown"),
      {{"method", "PUT"}, {"kind", "cut"}}, {{"method", "PUT"}, {"kind", "late"}},
      {{"method", "GET"}, {"kind", "cut"}}, {{"method", "GET"}, {"kind", "short"}},
      Refuse("GET", 503, "SlowDown"),       Refuse("GET", 429, "TooManyRequests")};
  for (const json& fault : faults) {
    for (const int times : {1, 3}) {
      Fail(fault, times);
      EXPECT_TRUE(bucket->Put("x", content).ok()) << fault;
      EXPECT_EQ(*bucket->Get("x", {.offset = 0, .count = content.size()}), content) << fault;
    }
  }
}

// Such an object is what its user put there, whatever it looks like.
TEST_F(BucketTest, AnObjectThatReadsLikeARefusalIsAnObject) {
  const auto bucket = Open(Options());
  const std::string bytes = "<Error><Code>SlowDown</Code></Error>";
  ASSERT_TRUE(bucket->Put("odd", bytes).ok());

  const absl::StatusOr<std::string> read = bucket->Get("odd", {.offset = 0, .count = bytes.size()});

  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, bytes);
}

TEST_F(BucketTest, WhatDoesNotPassEndsInOneLine) {
  const auto bucket = Open(Options());
  Fail(Refuse("PUT", 503, "SlowDown"), 100);

  const absl::Status slow = bucket->Put("x", "y");

  EXPECT_TRUE(absl::IsUnavailable(slow));
  EXPECT_EQ(slow.message(), "blobs: s3://test/some/prefix at " + process_->endpoint() +
                                ": PUT some/prefix/x was answered with 503 SlowDown (refused by "
                                "the test); tried 4 times");
  Fail({{"method", "GET"}, {"kind", "short"}}, 100);
  process_->Order({{"put", {{"some/prefix/x", "some bytes"}}}});
  const absl::Status cut = bucket->Get("x", {.offset = 0, .count = 10}).status();
  EXPECT_TRUE(absl::IsUnavailable(cut)) << cut;
  EXPECT_NE(cut.message().find("tried 4 times"), cut.message().npos);
}

TEST_F(BucketTest, AnUploadWhoseEndWasNotHeardOfIsWhole) {
  const auto bucket = Open(Options());
  const std::string content = RandomBytes(5, std::size_t{11} << 20);
  json fault = {{"method", "POST"}, {"kind", "late"}, {"key", "uploadId="}};
  Fail(fault);

  EXPECT_TRUE(bucket->PutFile("large", Make(content)).ok());

  EXPECT_EQ(Objects(), (json{{"some/prefix/large", content.size()}}));
}

TEST_F(BucketTest, WrongKeysClocksAndBucketsAreSaid) {
  BucketOptions options = Options();
  options.keys.secret = "wrong";
  EXPECT_NE(Open(options)->Probe().status().message().find("SignatureDoesNotMatch"),
            std::string::npos);
  options = Options();
  options.keys.id = "NOBODY";
  EXPECT_TRUE(absl::IsPermissionDenied(Open(options)->Probe().status()));
  options = Options();
  options.place = "s3://absent";
  const absl::Status absent = Open(options)->Probe().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(absent));
  EXPECT_NE(absent.message().find("404 NoSuchBucket"), absent.message().npos);
  options = Options();
  options.region = "eu-west-1";
  EXPECT_NE(Open(options)->Probe().status().message().find("--blobs-region"), std::string::npos);
  process_->Order({{"clock", -2000}});
  const absl::Status clock = Open(Options())->Probe().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(clock)) << clock;
  EXPECT_NE(clock.message().find("ahead of the server's"), clock.message().npos) << clock;
}

TEST_F(BucketTest, NobodyThereIsSaidAfterSomeAttempts) {
  BucketOptions options = Options();
  options.endpoint = "http://127.0.0.1:1";

  const absl::Status status = Open(options)->Probe().status();

  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_NE(status.message().find("tried 3 times"), status.message().npos) << status;
}

TEST_F(BucketTest, AProbeLeavesNothingAndKnowsHowFarClocksAreApart) {
  process_->Order({{"clock", 100}});

  const auto probed = Open(Options())->Probe();

  ASSERT_TRUE(probed.ok()) << probed.status();
  EXPECT_NEAR(probed->clock_seconds, -100, 5);
  EXPECT_EQ(Objects(), json::object());
}

TEST_F(BucketTest, PartsThatNobodyWillEndAreRemovedWhenTheyAreOld) {
  const auto bucket = Open(Options());
  process_->Order({{"begin",
                    {{"some/prefix/blobs/old", 90'000},
                     {"some/prefix/blobs/young", 60},
                     {"another/old", 90'000}}}});

  EXPECT_EQ(*bucket->RemoveOldParts("blobs/", std::chrono::hours(24)), 1u);

  EXPECT_EQ(process_->State()["uploads"], (json{"another/old", "some/prefix/blobs/young"}));
}

TEST_F(BucketTest, StopEndsWhatIsUnderWayAndWhatComes) {
  BucketOptions options = Options();
  options.backoff = {.initial = Seconds(100), .max = Seconds(100)};
  const auto bucket = Open(options);
  Fail(Refuse("PUT", 503, "SlowDown"), 100);
  absl::Status status;
  std::thread waiting([&] { status = bucket->Put("x", "y"); });
  while (process_->State()["requests"].value("PUT", 0) == 0) std::this_thread::yield();

  bucket->Stop();
  waiting.join();

  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_TRUE(absl::IsCancelled(bucket->Put("x", "y")));
}

TEST_F(BucketTest, KeysOfAFileMayChange) {
  BucketOptions options = Options();
  options.keys_file = folder_.File("keys");
  const auto write = [&](const std::string& secret) {
    std::ofstream(options.keys_file)
        << "aws_access_key_id = AKTEST\naws_secret_access_key = " << secret << "\n";
    std::filesystem::permissions(options.keys_file, std::filesystem::perms::owner_all);
  };
  write("former");
  const auto bucket = Open(options);
  EXPECT_TRUE(absl::IsPermissionDenied(bucket->Put("x", "y")));

  write(support::BucketProcess::kSecret);

  EXPECT_TRUE(bucket->Put("x", "y").ok());
}

}  // namespace
}  // namespace tactus::bucket
