#include "coordinator/files/disk_floor.h"

#include <gtest/gtest.h>
#include <sys/statvfs.h>

#include "coordinator/access/bounds.h"
#include "tests/support/temporary_folder.h"

namespace tactus::service {
namespace {

std::uint64_t FreeBytes(const std::string& folder) {
  struct statvfs system {};
  EXPECT_EQ(::statvfs(folder.c_str(), &system), 0);
  return system.f_bavail * system.f_frsize;
}

TEST(DiskFloorTest, BelowItNothingComesAndTheRefusalHasTheNumbers) {
  const TemporaryFolder folder;
  const std::uint64_t half = FreeBytes(folder.path()) / 2;
  const DiskFloor floor(folder.path(), half);

  EXPECT_TRUE(floor.Admit("upload", 0).ok());
  EXPECT_TRUE(floor.Admit("upload", half / 2).ok());
  const absl::Status wanted = floor.Admit("upload", half * 3 / 2);
  const absl::Status below = DiskFloor(folder.path(), half * 4).Admit("job", 0);

  for (const absl::Status& refused : {wanted, below}) {
    EXPECT_EQ(access::BoundOf(refused), access::Bound::kDisk) << refused;
    EXPECT_NE(refused.message().find("MiB left"), std::string::npos) << refused;
  }
  EXPECT_NE(wanted.message().find(std::to_string(half * 3 / 2 >> 20) + " MiB more"),
            std::string::npos)
      << wanted;
  EXPECT_TRUE(below.message().find("job: the coordinator's disk has ") == 0) << below;
}

TEST(DiskFloorTest, NumbersThatNoDiskHasOverflowNothing) {
  const TemporaryFolder folder;
  EXPECT_FALSE(DiskFloor(folder.path(), UINT64_MAX).Admit("upload", UINT64_MAX).ok());
  EXPECT_FALSE(DiskFloor(folder.path(), 0).Admit("upload", UINT64_MAX).ok());
  EXPECT_TRUE(DiskFloor(folder.path(), 0).Admit("upload", 0).ok());
}

TEST(DiskFloorTest, ByItselfItIsASmallPartOfTheDisk) {
  const TemporaryFolder folder;
  const std::uint64_t floor = DiskFloor(folder.path(), std::nullopt).floor_bytes();
  EXPECT_GT(floor, 0u);
  EXPECT_LE(floor, std::uint64_t{1} << 30);
  EXPECT_EQ(DiskFloor("/nowhere", std::nullopt).floor_bytes(), 0u);
  EXPECT_TRUE(DiskFloor("/nowhere", std::nullopt).Admit("job", 0).ok());
}

}  // namespace
}  // namespace tactus::service
