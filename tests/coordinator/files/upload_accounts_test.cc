#include "coordinator/files/upload_accounts.h"

#include <gtest/gtest.h>

#include <fstream>

#include "coordinator/access/bounds.h"
#include "coordinator/files/folder_blobs.h"
#include "runtime/now.h"
#include "runtime/sha256.h"
#include "tests/support/temporary_folder.h"

namespace tactus::service {
namespace {

constexpr std::uint64_t kFileBytes = 4096;

class UploadAccountsTest : public testing::Test {
 protected:
  UploadAccountsTest() { Open(); }
  void Open() {
    blobs_ = std::make_unique<FolderBlobs>(folder_.path() + "/blobs");
    accounts_ = std::make_unique<UploadAccounts>(
        *blobs_, UploadAccounts::Options{.path = Path(), .bytes_max = 100'000});
  }
  std::string Path() const { return folder_.path() + "/uploads"; }

  // As an upload does it.
  absl::Status Upload(const std::string& who, const std::string& content, std::uint64_t said = 0) {
    const std::string sha256 = runtime::Sha256Of(content);
    const std::uint64_t bytes = said == 0 ? content.size() : said;
    absl::Status status = accounts_->Charge(who, sha256, bytes);
    if (!status.ok()) return status;
    absl::StatusOr<BlobWriter> writer = blobs_->Write({.sha256 = sha256, .size_bytes = bytes});
    accounts_->Settle(sha256);
    if (!writer.ok()) return writer.status();
    status = writer->Append(content);
    return status.ok() ? writer->Commit().status() : status;
  }

  TemporaryFolder folder_;
  std::unique_ptr<FolderBlobs> blobs_;
  std::unique_ptr<UploadAccounts> accounts_;
};

TEST_F(UploadAccountsTest, WhoHasAsMuchAsIsAllowedIsRefusedAndOthersAreNot) {
  ASSERT_TRUE(Upload("user/alice", std::string(60'000, 'a')).ok());

  const absl::Status refused = Upload("user/alice", std::string(40'000, 'b'));

  EXPECT_EQ(access::BoundOf(refused), access::Bound::kUploadBytes) << refused;
  EXPECT_NE(refused.message().find("user/alice"), std::string::npos);
  EXPECT_TRUE(Upload("user/bob", std::string(40'000, 'b')).ok());
  EXPECT_TRUE(Upload("user/alice", std::string(60'000, 'a')).ok());  // it is there
  EXPECT_TRUE(Upload("user/alice", std::string(40'000, 'b')).ok());  // bob's, which she may name
  EXPECT_EQ(accounts_->BytesOf("user/alice"), 60'000 + kFileBytes);
}

TEST_F(UploadAccountsTest, ARestartForgetsNobodysAndWhatIsRemovedMakesRoom) {
  ASSERT_TRUE(Upload("user/alice", std::string(60'000, 'a')).ok());
  ASSERT_TRUE(Upload("user/bob", std::string(10'000, 'b')).ok());
  std::ofstream(Path(), std::ios::app) << "half a li";
  Open();
  EXPECT_EQ(accounts_->BytesOf("user/alice"), 60'000 + kFileBytes);

  const std::string bobs = runtime::Sha256Of(std::string(10'000, 'b'));
  blobs_->Sweep({bobs}, runtime::WallNow() + 2 * BlobStore::kUnusedAge.count());

  EXPECT_EQ(accounts_->BytesOf("user/alice"), 0u);
  EXPECT_EQ(accounts_->BytesOf("user/bob"), 10'000 + kFileBytes);
  Open();
  EXPECT_EQ(accounts_->BytesOf("user/alice"), 0u);
  EXPECT_EQ(accounts_->BytesOf("user/bob"), 10'000 + kFileBytes);
}

TEST_F(UploadAccountsTest, WhatComesInPartCountsWhole) {
  ASSERT_FALSE(Upload("user/alice", "the first bytes", 80'000).ok());

  EXPECT_EQ(accounts_->BytesOf("user/alice"), 80'000 + kFileBytes);
  EXPECT_FALSE(Upload("user/alice", std::string(30'000, 'b')).ok());
}

TEST_F(UploadAccountsTest, WhoSaysLessAtFirstPaysWhenTheySayMore) {
  ASSERT_FALSE(Upload("user/alice", std::string(90'000, 'a'), 1).ok());
  EXPECT_EQ(accounts_->BytesOf("user/alice"), 1 + kFileBytes);

  EXPECT_TRUE(Upload("user/alice", std::string(90'000, 'a')).ok());

  EXPECT_EQ(accounts_->BytesOf("user/alice"), 90'000 + kFileBytes);
  // Nor on another's account.
  ASSERT_FALSE(Upload("user/bob", std::string(99'000, 'b'), 1).ok());
  EXPECT_FALSE(Upload("user/carol", std::string(99'000, 'b')).ok());
}

TEST_F(UploadAccountsTest, OfContentThatWasAnotherNothingIsLeft) {
  const std::string sha256 = runtime::Sha256Of("one");
  ASSERT_TRUE(accounts_->Charge("user/alice", sha256, 3).ok());
  {
    absl::StatusOr<BlobWriter> writer = blobs_->Write({.sha256 = sha256, .size_bytes = 3});
    ASSERT_TRUE(writer.ok() && writer->Append("two").ok());
    ASSERT_FALSE(writer->Commit().ok());
  }
  EXPECT_EQ(accounts_->BytesOf("user/alice"), 0u);
}

TEST_F(UploadAccountsTest, AnUploadThatIsRefusedOtherwiseIsOnNobodysAccount) {
  ASSERT_TRUE(accounts_->Charge("user/alice", runtime::Sha256Of("one"), 3).ok());
  accounts_->Settle(runtime::Sha256Of("one"));
  EXPECT_EQ(accounts_->BytesOf("user/alice"), 0u);
}

}  // namespace
}  // namespace tactus::service
