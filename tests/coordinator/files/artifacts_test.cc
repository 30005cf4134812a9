#include "coordinator/files/artifacts.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "coordinator/shell/job_conversion.h"

namespace tactus::service {
namespace {

class ArtifactsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "tactus-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

TEST_F(ArtifactsTest, AFileIsReadInPiecesFromWhereItWasLeft) {
  std::ofstream(folder_ + "/model.pt") << "hello world";
  auto reader = ArtifactReader::Open(folder_, "model.pt");
  ASSERT_TRUE(reader.ok()) << reader.status();

  ASSERT_TRUE(reader->Skip(2).ok());

  EXPECT_EQ(*reader->Read(6), "llo wo");
  EXPECT_EQ(*reader->Read(6), "rld");
  EXPECT_EQ(*reader->Read(6), "");
  EXPECT_TRUE(reader->Skip(11).ok());
  EXPECT_TRUE(absl::IsOutOfRange(reader->Skip(12)));
  EXPECT_TRUE(absl::IsNotFound(ArtifactReader::Open(folder_, "nothing.pt").status()));
}

TEST_F(ArtifactsTest, LinksAndFoldersAreNotRead) {
  std::filesystem::create_symlink("/etc/passwd", folder_ + "/link");
  std::filesystem::create_directory(folder_ + "/folder");

  EXPECT_FALSE(ArtifactReader::Open(folder_, "link").ok());
  EXPECT_TRUE(absl::IsNotFound(ArtifactReader::Open(folder_, "folder").status()));
}

TEST_F(ArtifactsTest, ALinkOnTheWayLeadsNowhereAndAPipeIsNotWaitedFor) {
  std::filesystem::create_directory(folder_ + "/folder");
  std::ofstream(folder_ + "/folder/model.pt") << "hello";
  std::filesystem::create_symlink("folder", folder_ + "/way");
  ASSERT_EQ(::mkfifo((folder_ + "/pipe").c_str(), 0600), 0);

  EXPECT_TRUE(ArtifactReader::Open(folder_, "folder/model.pt").ok());
  EXPECT_TRUE(absl::IsPermissionDenied(ArtifactReader::Open(folder_, "way/model.pt").status()));
  EXPECT_TRUE(
      absl::IsPermissionDenied(ArtifactReader::Open(folder_ + "/folder", "../pipe").status()));
  EXPECT_TRUE(absl::IsNotFound(ArtifactReader::Open(folder_, "pipe").status()));
}

TEST(ArtifactPathTest, PathsThatLeaveTheResultAreRefused) {
  for (const char* path : {"", "/etc/passwd", "..", "../a", "a/../../b", "a/..", ".", "a/./b",
                           "a//b", "a/", "a b", "a\\b", "a\nb", "1/2/3/4/5/6/7/8/9"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckArtifactPath("path", path))) << path;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(CheckArtifactPath("path", std::string(256, 'a'))));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckArtifactPath("path", std::string("a\0b", 3))));
}

TEST(ArtifactPathTest, PathsWithinTheResultAreTaken) {
  for (const char* path : {"model.pt", "a/b/c.safetensors", "..a", "a..", "1/2/3/4/5/6/7/8"}) {
    EXPECT_TRUE(CheckArtifactPath("path", path).ok()) << path;
  }
}

TEST(JobNameTest, NamesAndIdsAloneAreTheSame) {
  EXPECT_EQ(*ParseJobName("name", "projects/default/jobs/a-1"), "a-1");
  EXPECT_EQ(*ParseJobName("name", "a-1"), "a-1");
  EXPECT_EQ(*ParseJobName("name", JobName("a-1")), "a-1");
}

TEST(JobNameTest, OtherNamesAreRefused) {
  for (const char* name :
       {"", "projects/other/jobs/a-1", "projects/default/jobs/", "A-1", "a/1", "../a"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseJobName("name", name).status())) << name;
  }
}

TEST(ProtoDurationTest, FractionsAndWhatIsOutOfRange) {
  EXPECT_EQ(ToProtoDuration(1.5).seconds(), 1);
  EXPECT_EQ(ToProtoDuration(1.5).nanos(), 500'000'000);
  EXPECT_EQ(ToProtoDuration(1e300).seconds(), 0);
}

}  // namespace
}  // namespace tactus::service
