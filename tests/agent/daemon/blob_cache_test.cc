// The cache against a real gRPC server that breaks off, waits and lies.

#include "agent/daemon/blob_cache.h"

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/rng.h"
#include "runtime/now.h"
#include "tests/agent/daemon/await.h"
#include "tests/agent/daemon/fake_coordinator.h"
#include "tests/agent/daemon/programs.h"
#include "tests/support/temporary_folder.h"

namespace tactus::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Path = absl::StatusOr<std::string>;

class BlobCacheTest : public testing::Test {
 protected:
  ~BlobCacheTest() override {
    control_.RunAndWait([this] { cache_.reset(); });
    control_.Stop();
  }

  void Make(std::uint64_t bytes_max = 1u << 30) {
    control_.RunAndWait([&] {
      cache_.reset();
      cache_ = std::make_unique<BlobCache>(
          control_, grpc::CreateChannel(coordinator_.address(), grpc::InsecureChannelCredentials()),
          BlobCache::Options{.folder = folder_.path(),
                             .bytes_max = bytes_max,
                             .backoff = {.initial = Seconds(0.001), .max = Seconds(0.01)}});
    });
  }

  std::uint64_t Fetch(const std::string& sha256, Once<Path>& path) {
    std::uint64_t pin = 0;
    control_.RunAndWait(
        [&] { pin = cache_->Fetch(sha256, [&path](const Path& found) { path.Set(found); }); });
    return pin;
  }
  Path FetchAndWait(const std::string& sha256) {
    Once<Path> path;
    pin_ = Fetch(sha256, path);
    return path.Await().value_or(absl::DeadlineExceededError("no answer"));
  }
  void Release(std::uint64_t pin) {
    control_.RunAndWait([&] { cache_->Release(pin); });
  }
  void SetAge(const std::string& file, std::chrono::hours age) {
    std::filesystem::last_write_time(folder_.File(file),
                                     std::filesystem::file_time_type::clock::now() - age);
  }
  std::size_t Sweep() {
    std::size_t removed = 0;
    control_.RunAndWait([&] { removed = cache_->Sweep(runtime::WallNow()); });
    return removed;
  }
  FakeArtifacts& artifacts() { return coordinator_.artifacts(); }

  TemporaryFolder folder_;
  FakeCoordinator coordinator_{{}};
  runtime::ControlThread control_;
  std::unique_ptr<BlobCache> cache_;
  std::uint64_t pin_ = 0;  // of the last FetchAndWait
};

TEST_F(BlobCacheTest, ABlobIsFetchedOnceAndFoundAfterwards) {
  Make();
  const std::string sha256 = artifacts().Add("weights");

  const Path first = FetchAndWait(sha256);
  Make();
  const Path second = FetchAndWait(sha256);

  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(*first, folder_.File(sha256));
  EXPECT_EQ(ReadFile(*first), "weights");
  EXPECT_EQ(second, first);
  EXPECT_THAT(artifacts().AwaitDownloads(1), ElementsAre(0));
}

TEST_F(BlobCacheTest, ATransferThatBreaksGoesOnWhereItWas) {
  Make();
  std::string content;
  for (int i = 0; i < 9000; ++i) content += static_cast<char>('a' + i % 23);
  const std::string sha256 = artifacts().Add(content);
  artifacts().BreakNext({2500, 0, 3000});

  const Path path = FetchAndWait(sha256);

  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(ReadFile(*path), content);
  EXPECT_THAT(artifacts().AwaitDownloads(4), ElementsAre(0, 2500, 2500, 5500));
}

TEST_F(BlobCacheTest, TransfersBrokenAnywhereGiveTheWholeFile) {
  Make();
  Rng rng(7);
  for (int round = 0; round < 20; ++round) {
    std::string content;
    for (std::uint64_t i = rng.Below(20'000); i > 0; --i) {
      content += static_cast<char>(rng.Below(256));
    }
    content += std::to_string(round);
    std::vector<std::size_t> breaks;
    for (std::uint64_t i = rng.Below(6); i > 0; --i) breaks.push_back(rng.Below(9'000));
    artifacts().BreakNext(breaks);

    const Path path = FetchAndWait(artifacts().Add(content));

    artifacts().BreakNext({});
    ASSERT_TRUE(path.ok()) << "round " << round << ": " << path.status();
    EXPECT_EQ(ReadFile(*path), content) << "round " << round;
  }
}

TEST_F(BlobCacheTest, WhatAnEarlierAgentLeftIsGoneOnWith) {
  const std::string sha256 = artifacts().Add("weights of a model");
  std::ofstream(folder_.File(sha256 + ".part")) << "weights ";
  Make();

  EXPECT_EQ(ReadFile(*FetchAndWait(sha256)), "weights of a model");
  EXPECT_THAT(artifacts().AwaitDownloads(1), ElementsAre(8));
}

TEST_F(BlobCacheTest, ADamagedBeginningIsThrownAwayAndFetchedAgain) {
  const std::string sha256 = artifacts().Add("weights of a model");
  for (const std::string damaged : {"WEIGHTS ", "longer than what is to come by far"}) {
    std::filesystem::remove(folder_.File(sha256));
    std::ofstream(folder_.File(sha256 + ".part")) << damaged;
    Make();

    const Path path = FetchAndWait(sha256);

    ASSERT_TRUE(path.ok()) << path.status();
    EXPECT_EQ(ReadFile(*path), "weights of a model");
  }
}

TEST_F(BlobCacheTest, WhatChangedOnTheDiskIsFetchedAgain) {
  Make();
  const std::string sha256 = artifacts().Add("weights");
  ASSERT_TRUE(FetchAndWait(sha256).ok());
  Release(pin_);
  std::ofstream(folder_.File(sha256)) << "wEights";

  const Path path = FetchAndWait(sha256);

  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(ReadFile(*path), "weights");
  EXPECT_THAT(artifacts().AwaitDownloads(2), ElementsAre(0, 0));
}

TEST_F(BlobCacheTest, TroubleOfTheFolderIsNotTheCoordinatorsWord) {
  Make();
  const std::string sha256 = artifacts().Add("weights");
  std::filesystem::remove_all(folder_.path());

  const absl::Status status = FetchAndWait(sha256).status();

  EXPECT_FALSE(status.ok());
  EXPECT_FALSE(absl::IsNotFound(status) || absl::IsDataLoss(status)) << status;
  std::filesystem::create_directories(folder_.path());
}

TEST_F(BlobCacheTest, AWrongContentIsNeverHandedOut) {
  Make();
  const std::string sha256(64, 'a');
  artifacts().AddWrong(sha256, "something else");

  const Path path = FetchAndWait(sha256);

  EXPECT_TRUE(absl::IsDataLoss(path.status())) << path.status();
  EXPECT_THAT(std::string(path.status().message()), HasSubstr("sha256:" + sha256));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  EXPECT_EQ(artifacts().AwaitDownloads(5).size(), 5u);
}

TEST_F(BlobCacheTest, WhatTheCoordinatorDoesNotHaveAndWhatIsNoHashAreSaidAtOnce) {
  Make();

  EXPECT_TRUE(absl::IsNotFound(FetchAndWait(std::string(64, 'a')).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(FetchAndWait("../../etc/passwd").status()));
  EXPECT_EQ(artifacts().AwaitDownloads(1).size(), 1u);
}

TEST_F(BlobCacheTest, TwoWhoWantABlobShareATransfer) {
  Make();
  const std::string sha256 = artifacts().Add("weights");
  artifacts().Shut();
  Once<Path> first, second;
  Fetch(sha256, first);
  Fetch(sha256, second);
  artifacts().AwaitDownloads(1);

  artifacts().Open();

  EXPECT_EQ(ReadFile(**first.Await()), "weights");
  EXPECT_EQ(*second.Await(), *first.Await());
  EXPECT_EQ(artifacts().AwaitDownloads(1).size(), 1u);
}

TEST_F(BlobCacheTest, ATransferThatNobodyWantsAnyMoreIsBrokenOffAndCanBeWantedAgain) {
  Make();
  const std::string sha256 = artifacts().Add("weights");
  artifacts().Shut();
  Once<Path> given_up, wanted;
  const std::uint64_t pin = Fetch(sha256, given_up);
  artifacts().AwaitDownloads(1);

  Release(pin);
  Fetch(sha256, wanted);
  artifacts().AwaitDownloads(2);
  artifacts().Open();

  ASSERT_TRUE(wanted.Await().has_value());
  EXPECT_EQ(ReadFile(**wanted.Await()), "weights");
  control_.RunAndWait([] {});
  bool called = false;
  control_.RunAndWait([&] { called = given_up.IsSet(); });
  EXPECT_FALSE(called);
}

TEST_F(BlobCacheTest, WhatNobodyUsedForLongGoesAndWhatIsUsedStays) {
  Make();
  const std::string used = artifacts().Add("used");
  const std::string released = artifacts().Add("released");
  const std::string old = artifacts().Add("old");
  for (const std::string& sha256 : {old, released, used}) {
    ASSERT_TRUE(FetchAndWait(sha256).ok());
    if (sha256 != used) Release(pin_);
    SetAge(sha256, std::chrono::hours(25));
  }
  std::ofstream(folder_.File(std::string(64, 'b') + ".part")) << "beginning";
  SetAge(std::string(64, 'b') + ".part", std::chrono::hours(25));
  ASSERT_TRUE(FetchAndWait(released).ok());
  SetAge(released, std::chrono::hours(25));
  Release(pin_);

  EXPECT_EQ(Sweep(), 2u);

  EXPECT_TRUE(std::filesystem::exists(folder_.File(used)));
  EXPECT_TRUE(std::filesystem::exists(folder_.File(released)));
  EXPECT_FALSE(std::filesystem::exists(folder_.File(old)));
  EXPECT_FALSE(std::filesystem::exists(folder_.File(std::string(64, 'b') + ".part")));
  // The sweep has seen that it is used, for the next agent to know.
  Make();
  EXPECT_EQ(Sweep(), 0u);
}

TEST_F(BlobCacheTest, AShutdownDoesNotWaitForALongBeginningToBeHashed) {
  const std::string sha256 = artifacts().Add("weights");
  const std::string part = folder_.File(sha256 + ".part");
  std::ofstream(part) << "x";
  std::filesystem::resize_file(part, std::uint64_t{1} << 40);  // a hole: hours of hashing
  Make();
  Once<Path> never;
  Fetch(sha256, never);

  control_.RunAndWait([this] { cache_.reset(); });

  EXPECT_FALSE(never.IsSet());
  EXPECT_EQ(std::filesystem::file_size(part), std::uint64_t{1} << 40);
}

TEST_F(BlobCacheTest, WhatWasUsedLongestAgoGoesAndWhatIsPinnedStays) {
  Make(2500);
  const std::string a = artifacts().Add(std::string(1000, 'a'));
  const std::string b = artifacts().Add(std::string(1000, 'b'));
  const std::string c = artifacts().Add(std::string(1000, 'c'));
  const std::string d = artifacts().Add(std::string(1000, 'd'));
  ASSERT_TRUE(FetchAndWait(a).ok());  // pinned to the end
  ASSERT_TRUE(FetchAndWait(b).ok());
  Release(pin_);
  ASSERT_TRUE(FetchAndWait(c).ok());
  Release(pin_);

  ASSERT_TRUE(FetchAndWait(d).ok());

  EXPECT_TRUE(std::filesystem::exists(folder_.File(a)));
  EXPECT_FALSE(std::filesystem::exists(folder_.File(b)));
  EXPECT_FALSE(std::filesystem::exists(folder_.File(c)));
  EXPECT_TRUE(std::filesystem::exists(folder_.File(d)));
}

}  // namespace
}  // namespace tactus::agent
