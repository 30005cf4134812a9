#include "coordinator/shell/mesh_secrets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

namespace tactus::service {
namespace {

class MeshSecretsTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  const std::string folder_ = testing::TempDir() + "/mesh-secrets-" + std::to_string(::getpid());
  const std::string file_ = folder_ + "/mesh-key";
};

TEST_F(MeshSecretsTest, EveryGenerationOfEveryJobHasItsOwn) {
  const absl::StatusOr<MeshSecrets> secrets = MeshSecrets::Open(folder_);
  ASSERT_TRUE(secrets.ok()) << secrets.status();
  std::set<std::string> seen;
  for (const char* const job : {"a-1", "a-11", "a", "b-1"}) {
    for (std::uint64_t generation = 0; generation < 120; ++generation) {
      const std::string secret = secrets->SecretOf(job, generation);
      EXPECT_EQ(secret.size(), 32u);
      EXPECT_TRUE(seen.insert(secret).second) << job << " " << generation;
    }
  }
}

TEST_F(MeshSecretsTest, ACoordinatorThatIsRestartedTellsTheSame) {
  const std::string before = MeshSecrets::Open(folder_)->SecretOf("a-1", 7);

  EXPECT_EQ(MeshSecrets::Open(folder_)->SecretOf("a-1", 7), before);
}

TEST_F(MeshSecretsTest, AnotherFolderHasOthers) {
  const std::string before = MeshSecrets::Open(folder_)->SecretOf("a-1", 7);
  std::filesystem::remove(file_);

  EXPECT_NE(MeshSecrets::Open(folder_)->SecretOf("a-1", 7), before);
}

TEST_F(MeshSecretsTest, TheKeyIsItsUsersAlone) {
  ASSERT_TRUE(MeshSecrets::Open(folder_).ok());
  struct stat found {};
  ASSERT_EQ(::stat(file_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
  ASSERT_EQ(::chmod(file_.c_str(), 0644), 0);

  EXPECT_EQ(MeshSecrets::Open(folder_).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(MeshSecretsTest, AKeyOfAnotherLengthIsNone) {
  std::ofstream(file_) << "short";
  ASSERT_EQ(::chmod(file_.c_str(), 0600), 0);

  const absl::Status status = MeshSecrets::Open(folder_).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("found 5 bytes"));
}

}  // namespace
}  // namespace tactus::service
