#include "coordinator/tape/tape_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/coordinator/tape/tape_fixture.h"

namespace tactus::tape {
namespace {

// 2026-05-14 10:11:12.345678901 UTC.
constexpr job::WallTime kNow = 1'778'753'472'345'678'901;

class TapeFolderTest : public TapeTest {};

TEST_F(TapeFolderTest, TapesAreNamedByTheTimeInUtc) {
  const absl::StatusOr<std::string> path = MakeTapePath(Path("tapes"), kNow);

  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*path, Path("tapes") + "/2026-05-14T10-11-12.345Z.tape");
  EXPECT_TRUE(std::filesystem::is_directory(Path("tapes")));
}

TEST_F(TapeFolderTest, TheNewestTapesAreKeptAndNothingElseIsRemoved) {
  std::ofstream(Path("notes.txt")) << "mine";
  std::string last;
  for (int minute = 0; minute < 20; ++minute) {
    last = *MakeTapePath(folder_, kNow + minute * 60'000'000'000);
    std::ofstream(last) << minute;
  }

  std::size_t tapes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    if (entry.path().extension() == ".tape") ++tapes;
  }
  EXPECT_EQ(tapes, kTapesMax);
  EXPECT_TRUE(std::filesystem::exists(Path("notes.txt")));
  EXPECT_EQ(*NewestTape(folder_), last);
  EXPECT_FALSE(std::filesystem::exists(*MakeTapePath(Path("other"), kNow)));
}

TEST_F(TapeFolderTest, AFolderWithoutTapesIsSaid) {
  EXPECT_EQ(NewestTape(folder_).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(NewestTape(Path("absent")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(MakeTapePath("/proc/nowhere", kNow).ok());
}

}  // namespace
}  // namespace tactus::tape
