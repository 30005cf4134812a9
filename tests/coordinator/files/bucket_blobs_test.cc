#include "coordinator/files/bucket_blobs.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "base/rng.h"
#include "metrics/coordinator_metrics.h"
#include "runtime/now.h"
#include "runtime/sha256.h"
#include "runtime/status.h"
#include "tests/support/bucket/bucket_process.h"

namespace tactus::service {
namespace {

using nlohmann::json;

constexpr job::WallTime kDay = BlobStore::kUnusedAge.count();

std::string HashOf(const std::string& content) { return runtime::Sha256Of(content); }
std::string KeyOf(const std::string& content) {
  return "state/" + BlobPath("blobs", HashOf(content));
}

std::string RandomBytes(Rng& rng, std::size_t size) {
  std::string bytes;
  while (bytes.size() < size) bytes += static_cast<char>(rng.Below(256));
  return bytes;
}

class BucketBlobsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { process_ = new support::BucketProcess; }
  static void TearDownTestSuite() { delete process_; }

  void SetUp() override {
    if (!process_->serves()) GTEST_SKIP() << "python3-botocore is not installed";
    process_->Clear();
  }
  void TearDown() override { Close(); }

  BucketBlobs::Options Options() const {
    return {.folder = folder_.File("blobs"),
            .bucket = {.place = "s3://test/state",
                       .endpoint = process_->endpoint(),
                       .keys = {.id = support::BucketProcess::kKeyId,
                                .secret = support::BucketProcess::kSecret},
                       .attempts = 3,
                       .backoff = {.initial = Seconds(0.001), .max = Seconds(0.01)},
                       .part_bytes = std::size_t{5} << 20},
            .retry = Seconds(0.01)};
  }
  void Open() {
    files_ = std::make_unique<runtime::ControlThread>();
    auto blobs = BucketBlobs::Open(Options());
    ASSERT_TRUE(blobs.ok()) << blobs.status();
    blobs_ = *std::move(blobs);
    blobs_->SetRemoved([this](const std::string& sha256) { removed_.insert(sha256); });
    blobs_->Start({.files = *files_,
                   .leads =
                       [this] {
                         removals_go_on_.wait();
                         return leads_.load();
                       },
                   .metrics = &metrics_});
  }
  // As a coordinator that is stopped.
  void Close() {
    if (blobs_ == nullptr) return;
    blobs_->Stop();
    blobs_->Join();
    files_->Stop();
    blobs_.reset();
  }

  // On the files' thread.
  template <typename Do>
  auto On(Do act) {
    std::optional<decltype(act())> result;
    files_->RunAndWait([&] { result.emplace(act()); });
    return *std::move(result);
  }
  template <typename Begin>
  absl::Status Await(Begin begin) {
    std::promise<absl::Status> done;
    files_->Post([&] { begin([&](const absl::Status& status) { done.set_value(status); }); });
    return done.get_future().get();
  }

  absl::Status Keep(const std::string& sha256) {
    return Await([&](auto done) { blobs_->Keep(sha256, done); });
  }
  absl::Status Commit(const std::string& content) {
    return On([&]() -> absl::Status {
      auto writer = blobs_->Write({.sha256 = HashOf(content), .size_bytes = content.size()});
      absl::Status status = writer.status();
      while (status.ok()) {
        const absl::StatusOr<bool> done = writer->CatchUp();
        status = done.status();
        if (done.ok() && *done) break;
      }
      if (status.ok()) status = writer->Append(content);
      return status.ok() ? writer->Commit().status() : status;
    });
  }
  absl::Status Put(const std::string& content) {
    const absl::Status status = Commit(content);
    return status.ok() ? Keep(HashOf(content)) : status;
  }

  absl::StatusOr<std::string> Get(const std::string& sha256, std::uint64_t offset = 0,
                                  std::size_t piece = 256u << 10) {
    std::unique_ptr<BlobReader> reader;
    const absl::Status found = On([&] {
      auto opened = blobs_->Read(sha256, offset);
      if (opened.ok()) reader = *std::move(opened);
      return opened.status();
    });
    if (!found.ok()) return found;
    std::string content;
    absl::Status status;
    while (status.ok()) {
      std::promise<absl::StatusOr<std::string>> took;
      files_->Post([&] {
        reader->Read(piece, [&](absl::StatusOr<std::string> bytes) { took.set_value(bytes); });
      });
      const absl::StatusOr<std::string> bytes = took.get_future().get();
      status = bytes.status();
      if (!bytes.ok() || bytes->empty()) break;
      EXPECT_LE(bytes->size(), piece);
      content += *bytes;
    }
    files_->RunAndWait([&] { reader.reset(); });
    if (!status.ok()) return status;
    return content;
  }
  bool IsComplete(const std::string& content) {
    return On([&] { return blobs_->Find(HashOf(content))->complete; });
  }

  static json Objects() { return process_->State()["objects"]; }
  static void Fail(json fault, int times) {
    fault["times"] = times;
    process_->Order({{"faults", {fault}}});
  }
  bool Says(const std::string& line) {
    return metrics::WriteText(*metrics_.registry()).find(line) != std::string::npos;
  }
  std::size_t FilesHere() const {
    std::size_t files = 0;
    std::error_code ignored;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(folder_.File("blobs"), ignored)) {
      files += entry.is_regular_file();
    }
    return files;
  }
  template <typename Condition>
  void Until(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    EXPECT_TRUE(condition());
  }

  static support::BucketProcess* process_;
  const TemporaryFolder folder_;
  std::atomic<bool> leads_ = true;
  std::promise<void> go_on_;
  std::shared_future<void> removals_go_on_ = [] {
    std::promise<void> at_once;
    at_once.set_value();
    return at_once.get_future().share();
  }();
  metrics::CoordinatorMetrics metrics_{"1"};
  std::set<std::string> removed_;  // files' thread
  std::unique_ptr<runtime::ControlThread> files_;
  std::unique_ptr<BucketBlobs> blobs_;
};

support::BucketProcess* BucketBlobsTest::process_ = nullptr;

TEST_F(BucketBlobsTest, WhatIsKeptIsInTheBucketAndInTheFolderNoMore) {
  Open();
  ASSERT_TRUE(Commit("hello world").ok());
  EXPECT_FALSE(IsComplete("hello world"));  // others may not name it yet
  EXPECT_EQ(Objects(), json::object());

  ASSERT_TRUE(Keep(HashOf("hello world")).ok());

  EXPECT_TRUE(IsComplete("hello world"));
  EXPECT_EQ(Objects(), (json{{KeyOf("hello world"), 11}}));
  EXPECT_EQ(FilesHere(), 0u);
  EXPECT_EQ(*Get(HashOf("hello world")), "hello world");
  EXPECT_EQ(*Get(HashOf("hello world"), 6, 2), "world");
  EXPECT_EQ(*Get(HashOf("hello world"), 11), "");
  EXPECT_TRUE(absl::IsOutOfRange(Get(HashOf("hello world"), 12).status()));
}

TEST_F(BucketBlobsTest, AnEmptyFileAndALargeOneAreFiles) {
  Open();
  Rng rng(1);
  const std::string large = RandomBytes(rng, (std::size_t{11} << 20) + 3);
  ASSERT_TRUE(Put("").ok());
  ASSERT_TRUE(Put(large).ok());

  EXPECT_EQ(*Get(HashOf("")), "");
  EXPECT_TRUE(*Get(HashOf(large)) == large);
  EXPECT_TRUE(*Get(HashOf(large), 5'000'001, 1u << 20) == large.substr(5'000'001));
}

TEST_F(BucketBlobsTest, WhatIsNotThereIsNotFound) {
  Open();
  const absl::Status status = Get(HashOf("a")).status();

  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(runtime::ReasonOf(status).reason, "BLOB_NOT_FOUND");
  EXPECT_TRUE(absl::IsUnavailable(Keep(HashOf("a"))));
  EXPECT_TRUE(absl::IsInvalidArgument(Get("../x").status()));
}

TEST_F(BucketBlobsTest, AnotherCoordinatorSeesWhatIsThere) {
  Open();
  ASSERT_TRUE(Put("shared").ok());
  Close();
  std::filesystem::remove_all(folder_.File("blobs"));

  Open();

  EXPECT_TRUE(IsComplete("shared"));
  EXPECT_EQ(*Get(HashOf("shared")), "shared");
}

TEST_F(BucketBlobsTest, WhatIsThereNeedsNoWritingAndIsLookedFor) {
  Open();
  ASSERT_TRUE(Put("hello").ok());

  EXPECT_TRUE(Put("hello").ok());
  process_->Order({{"remove", {KeyOf("hello")}}});
  EXPECT_TRUE(absl::IsUnavailable(Put("hello")));  // it is gone, and to be brought again
  EXPECT_FALSE(IsComplete("hello"));
  EXPECT_TRUE(Put("hello").ok());
  EXPECT_EQ(*Get(HashOf("hello")), "hello");
}

TEST_F(BucketBlobsTest, ABucketThatFailsIsWaitedForByWhoeverBrings) {
  Open();
  Fail({{"method", "PUT"}, {"kind", "status"}, {"status", 403}, {"code", "AccessDenied"}}, 1);

  const absl::Status refused = Put("hello");

  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_NE(refused.message().find("AccessDenied"), refused.message().npos);
  EXPECT_EQ(Objects(), json::object());
  EXPECT_TRUE(Put("hello").ok());  // what came is still here
  EXPECT_EQ(*Get(HashOf("hello")), "hello");
}

TEST_F(BucketBlobsTest, WhatLaysInTheFolderGoesToTheBucket) {
  FolderBlobs former(folder_.File("blobs"));
  for (const std::string content : {"one", "two", "three"}) {
    auto writer = former.Write({.sha256 = HashOf(content), .size_bytes = content.size()});
    ASSERT_TRUE(writer->Append(content).ok() && writer->Commit().ok());
  }
  Fail({{"method", "PUT"},
        {"key", "/blobs/"},
        {"kind", "status"},
        {"status", 503},
        {"code", "SlowDown"}},
       7);
  Open();
  EXPECT_TRUE(IsComplete("two"));  // jobs name it, wherever it lies, and wait for it
  EXPECT_TRUE(On([&] { return blobs_->Find(HashOf("two")); })->on_its_way);
  EXPECT_EQ(*Get(HashOf("two")), "two");

  Until([&] { return Objects().size() == 3 && FilesHere() == 0; });

  EXPECT_EQ(*Get(HashOf("two")), "two");
  EXPECT_FALSE(On([&] { return blobs_->Find(HashOf("two")); })->on_its_way);
}

TEST_F(BucketBlobsTest, ADamagedObjectIsNotGivenAwayAsWhole) {
  Open();
  ASSERT_TRUE(Put("hello").ok());
  process_->Order({{"damage", KeyOf("hello")}});

  const absl::Status status = Get(HashOf("hello")).status();

  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(runtime::ReasonOf(status).reason, "WRONG_CONTENT_HASH");
}

TEST_F(BucketBlobsTest, AReadThatBreaksIsTriedAgainAndOneThatKeepsBreakingEnds) {
  Open();
  Rng rng(2);
  const std::string content = RandomBytes(rng, 3u << 20);
  ASSERT_TRUE(Put(content).ok());
  json fault = {{"method", "GET"}, {"kind", "short"}, {"after", 1}};

  Fail(fault, 2);
  EXPECT_TRUE(*Get(HashOf(content)) == content);
  Fail(fault, 100);
  EXPECT_TRUE(absl::IsUnavailable(Get(HashOf(content)).status()));
}

TEST_F(BucketBlobsTest, WhatNobodyNamesForADayIsSwept) {
  Open();
  for (const char* content : {"named", "unnamed"}) ASSERT_TRUE(Put(content).ok());
  const job::WallTime now = runtime::WallNow();
  EXPECT_EQ(On([&] { return blobs_->Sweep({HashOf("named")}, now); }), 0u);

  EXPECT_EQ(On([&] { return blobs_->Sweep({HashOf("named")}, now + 2 * kDay); }), 1u);

  Until([&] { return On([&] { return removed_; }) == std::set<std::string>{HashOf("unnamed")}; });
  EXPECT_EQ(Objects(), (json{{KeyOf("named"), 5}}));
}

TEST_F(BucketBlobsTest, WhatNobodyNamesAnyMoreGoesUnlessItIsUsedOrHeld) {
  Open();
  for (const char* content : {"old", "young", "held", "read"}) ASSERT_TRUE(Put(content).ok());
  std::optional<BlobWriter> writer;
  std::unique_ptr<BlobReader> reader;
  const job::WallTime since = On([&] {
    writer.emplace(*blobs_->Write({.sha256 = HashOf("held"), .size_bytes = 4}));
    reader = *blobs_->Read(HashOf("read"), 0);
    const job::WallTime now = runtime::WallNow();
    EXPECT_TRUE(blobs_->Find(HashOf("young"))->complete);
    return now;
  });
  const std::set<std::string> all = {HashOf("old"), HashOf("young"), HashOf("held"), HashOf("read"),
                                     HashOf("never there")};

  EXPECT_EQ(On([&] { return blobs_->Remove(all, since); }),
            (std::set<std::string>{HashOf("young"), HashOf("held"), HashOf("read")}));
  Until([&] { return Objects().size() == 3; });
  files_->RunAndWait([&] {
    writer.reset();
    reader.reset();
  });

  EXPECT_EQ(On([&] { return blobs_->Remove(all, runtime::WallNow() + 1); }),
            std::set<std::string>{});
  Until([&] { return Objects().empty(); });
}

TEST_F(BucketBlobsTest, OneThatComesWhileItGoesIsThereAfterwards) {
  Open();
  Rng rng(3);
  for (int i = 0; i < 20; ++i) {
    const std::string content = RandomBytes(rng, 100);
    ASSERT_TRUE(Put(content).ok());
    std::promise<absl::Status> kept;
    files_->RunAndWait([&] {
      blobs_->Remove({HashOf(content)}, runtime::WallNow() + 1);
      EXPECT_FALSE(blobs_->Find(HashOf(content))->complete);
      auto writer = blobs_->Write({.sha256 = HashOf(content), .size_bytes = content.size()});
      ASSERT_TRUE(writer->Append(content).ok() && writer->Commit().ok());
      blobs_->Keep(HashOf(content), [&](const absl::Status& status) { kept.set_value(status); });
    });
    ASSERT_TRUE(kept.get_future().get().ok());
    EXPECT_TRUE(Objects().contains(KeyOf(content)));
    EXPECT_EQ(*Get(HashOf(content)), content);
  }
}

TEST_F(BucketBlobsTest, OneThatComesBeforeItsTurnToGoStaysAndWaitsForNoOther) {
  Open();
  std::set<std::string> all;
  for (const char* content : {"a", "b", "c", "d", "e"}) {
    ASSERT_TRUE(Put(content).ok());
    all.insert(HashOf(content));
  }
  const std::string last = *all.rbegin();
  removals_go_on_ = go_on_.get_future().share();
  On([&] { return blobs_->Remove(all, runtime::WallNow() + 1); });
  std::promise<absl::Status> kept;
  std::future<absl::Status> came = kept.get_future();
  files_->Post(
      [&] { blobs_->Keep(last, [&](const absl::Status& status) { kept.set_value(status); }); });

  const std::future_status before = came.wait_for(std::chrono::seconds(20));
  go_on_.set_value();

  EXPECT_EQ(before, std::future_status::ready);
  EXPECT_TRUE(came.get().ok());
  Until([&] { return Objects().size() == 1; });
  EXPECT_TRUE(On([&] { return blobs_->Find(last)->complete; }));
  EXPECT_FALSE(On([&] { return removed_; }).contains(last));
}

TEST_F(BucketBlobsTest, WhatIsAskedOfTheBucketAndWaitsForItIsCounted) {
  Open();
  Fail({{"kind", "status"}, {"method", "PUT"}, {"status", 503}, {"code", "SlowDown"}}, 1);
  ASSERT_TRUE(Put("one").ok());
  process_->Order({{"remove", {KeyOf("one")}}});
  EXPECT_TRUE(absl::IsNotFound(Get(HashOf("one")).status()));
  Fail({{"kind", "cut"}, {"method", "PUT"}}, 1'000'000);
  ASSERT_TRUE(Commit("two").ok());

  Close();
  Open();

  Until([&] { return Says("tactus_bucket_waiting_files 1\n"); });
  Until(
      [&] { return !Says("tactus_bucket_requests_total{method=\"PUT\",outcome=\"broken\"} 0\n"); });
  EXPECT_TRUE(Says("tactus_bucket_requests_total{method=\"PUT\",outcome=\"ok\"} 1\n"));
  EXPECT_TRUE(Says("tactus_bucket_requests_total{method=\"PUT\",outcome=\"busy\"} 1\n"));
  EXPECT_TRUE(Says("tactus_bucket_requests_total{method=\"GET\",outcome=\"absent\"} 1\n"));
  EXPECT_TRUE(Says("tactus_bucket_requests_total{method=\"GET\",outcome=\"refused\"} 0\n"));
  EXPECT_FALSE(Says("tactus_bucket_request_seconds_count{method=\"PUT\"} 0\n"));
  process_->Clear();
  Until([&] { return Says("tactus_bucket_waiting_files 0\n"); });
}

TEST_F(BucketBlobsTest, WhoDoesNotLeadRemovesNothing) {
  Open();
  ASSERT_TRUE(Put("unnamed").ok());
  leads_ = false;

  On([&] { return blobs_->Remove({HashOf("unnamed")}, runtime::WallNow() + 1); });

  Until([&] { return On([&] { return removed_; }).contains(HashOf("unnamed")); });
  EXPECT_TRUE(Objects().contains(KeyOf("unnamed")));
  leads_ = true;
  EXPECT_TRUE(Await([&](auto done) { blobs_->Refresh(done); }).ok());
  EXPECT_TRUE(IsComplete("unnamed"));
}

TEST_F(BucketBlobsTest, WhileAllIsKeptNothingGoes) {
  Open();
  ASSERT_TRUE(Put("unnamed").ok());
  const std::string sha256 = HashOf("unnamed");

  files_->RunAndWait([&] { blobs_->SetKeepAll(true); });
  EXPECT_EQ(On([&] { return blobs_->Remove({sha256}, runtime::WallNow() + 1); }),
            std::set<std::string>{sha256});
  EXPECT_EQ(On([&] { return blobs_->Sweep({}, runtime::WallNow() + 2 * kDay); }), 0u);
  files_->RunAndWait([&] { blobs_->SetKeepAll(false); });

  EXPECT_EQ(On([&] { return blobs_->Sweep({}, runtime::WallNow() + 2 * kDay); }), 1u);
}

TEST_F(BucketBlobsTest, ARefreshSeesWhatOthersDid) {
  Open();
  ASSERT_TRUE(Put("gone").ok());
  ASSERT_TRUE(Put("stays").ok());
  process_->Order({{"remove", {KeyOf("gone")}},
                   {"put", {{KeyOf("comes"), "comes"}, {"state/blobs/zz/no-hash", "x"}}}});

  EXPECT_TRUE(Await([&](auto done) { blobs_->Refresh(done); }).ok());

  EXPECT_FALSE(IsComplete("gone"));
  EXPECT_TRUE(IsComplete("stays"));
  EXPECT_TRUE(IsComplete("comes"));
  EXPECT_EQ(blobs_->count(), 2u);
}

TEST_F(BucketBlobsTest, TheSourceGivesAllOfABlobToABackup) {
  Open();
  Rng rng(4);
  const std::string content = RandomBytes(rng, (std::size_t{9} << 20) + 1);
  ASSERT_TRUE(Put(content).ok());
  const BlobStore::Fetch fetch = blobs_->Source();
  std::string fetched;

  ASSERT_TRUE(fetch(HashOf(content), [&](std::string_view bytes) {
                fetched += bytes;
                return absl::OkStatus();
              }).ok());

  EXPECT_TRUE(fetched == content);
  EXPECT_TRUE(
      absl::IsNotFound(fetch(HashOf("none"), [](std::string_view) { return absl::OkStatus(); })));
}

TEST_F(BucketBlobsTest, StopEndsWhatIsWaitedFor) {
  Open();
  Rng rng(5);
  ASSERT_TRUE(Put("there").ok());
  ASSERT_TRUE(Commit("waiting").ok());
  blobs_->Stop();

  EXPECT_TRUE(absl::IsUnavailable(Keep(HashOf("waiting"))));
  EXPECT_TRUE(absl::IsUnavailable(Get(HashOf("there")).status()));
}

// Uploads that break off anywhere, and a bucket that fails, cuts connections and does what it does
// not say it did; and now and then another coordinator in the place of this one. What was kept is
// there, whole; what is there is never wrong.
TEST_F(BucketBlobsTest, HoweverTheBucketFailsABlobThatIsKeptIsWhole) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Open();
    Rng rng(seed);
    const std::string content = RandomBytes(rng, rng.Below(200'000)) + std::to_string(seed);
    const char* const kinds[] = {"cut", "late", "short", "status"};
    json faults = json::array();
    for (int i = 0; i < 6; ++i) {
      faults.push_back({{"kind", kinds[rng.Below(4)]},
                        {"key", "/blobs/"},
                        {"status", 503},
                        {"code", "SlowDown"},
                        {"after", rng.Below(4)},
                        {"times", 1 + rng.Below(3)}});
    }
    process_->Order({{"faults", faults}});
    absl::Status status = absl::UnavailableError("");
    for (int attempts = 0; !status.ok(); ++attempts) {
      ASSERT_LT(attempts, 100) << "seed " << seed;
      status = Put(content);
      ASSERT_TRUE(status.ok() || absl::IsUnavailable(status)) << "seed " << seed << ": " << status;
      if (!status.ok() && rng.Below(3) == 0) {
        Close();
        if (rng.Below(2) == 0) std::filesystem::remove_all(folder_.File("blobs"));
        process_->Order({{"faults", json::array()}});
        Open();
      }
    }
    process_->Order({{"faults", json::array()}});
    EXPECT_EQ(Objects()[KeyOf(content)], content.size()) << "seed " << seed;
    EXPECT_TRUE(*Get(HashOf(content)) == content) << "seed " << seed;
    Close();
  }
}

}  // namespace
}  // namespace tactus::service
