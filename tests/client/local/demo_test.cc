#include "client/local/demo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/support/temporary_folder.h"

namespace tactus::client {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(DemoTest, ItsTextHasEverySumOnceInWords) {
  const std::string text = DemoText();
  std::set<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.insert(line);

  EXPECT_EQ(lines.size(), 100u * 100u);
  EXPECT_EQ(std::ranges::count(text, '\n'), 100 * 100);
  EXPECT_THAT(lines, ::testing::IsSupersetOf({"nought and nought make nought",
                                              "twelve and thirty make forty-two",
                                              "fifty and fifty make a hundred",
                                              "ninety-nine and ninety-nine make a hundred and "
                                              "ninety-eight"}));
}

constexpr char kEqual[] = R"({"rounds": 100, "samples": 12800, "train_seconds": 12.8,
                             "train_loss": 2.5, "validation": {"loss": 2.25}})";
constexpr char kBySpeed[] = R"({"rounds": 1100, "samples": 50000, "train_seconds": 12.5,
                                "train_loss": 1.5, "validation": {"loss": 1.25}})";

TEST(DemoTest, TwoSummariesStandSideBySide) {
  const absl::StatusOr<std::string> table = CompareSummaries(kEqual, kBySpeed);

  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(*table,
            "                 EQUAL   BY SPEED\n"
            "rounds           100     1,100\n"
            "samples/s        1,000   4,000\n"
            "training loss    2.5000  1.5000\n"
            "validation loss  2.2500  1.2500\n");
}

TEST(DemoTest, ASummaryWithoutANumberIsSaidToBeThat) {
  EXPECT_EQ(CompareSummaries(kEqual, R"({"rounds": 1, "samples": 1})").status().message(),
            "summary.json: /train_seconds is no number");
  EXPECT_EQ(CompareSummaries("", kBySpeed).status().message(),
            "summary.json: /samples is no number");
}

TEST(DemoTest, AFolderWithFilesIsLeftAlone) {
  const TemporaryFolder folder;
  std::ofstream(folder.File("mine")) << "text";
  ::testing::internal::CaptureStderr();

  const ExitCode code = Demo({.output_folder = folder.path()}, {}, Screen({}));

  EXPECT_EQ(code, ExitCode::kConflict);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("has files; allowed is a folder that is new or empty"));
}

TEST(DemoTest, ARunThatCannotBeStartedEndsIt) {
  const TemporaryFolder folder;
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();

  const ExitCode code = Demo({.output_folder = folder.File("kept")},
                             {.binary_folder = folder.File("nowhere")}, Screen({}));

  EXPECT_EQ(code, ExitCode::kGeneric);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("nowhere/tactus: cannot be started: No such file"));
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), StartsWith("A small language model"));
}

}  // namespace
}  // namespace tactus::client
