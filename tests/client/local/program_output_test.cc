// What the programs of a run write, as it comes.

#include "client/local/program_output.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace tactus::client {
namespace {

class ProgramOutputTest : public testing::Test {
 protected:
  ProgramOutputTest()
      : folder_(std::filesystem::temp_directory_path() /
                ("tactus-output-" + std::to_string(::getpid()))),
        output_(folder_.string()) {}
  ~ProgramOutputTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories(folder_ / "jobs/train-1");
    std::ofstream(folder_ / "jobs/train-1" / file, std::ios::app | std::ios::binary) << text;
  }

  const std::filesystem::path folder_;
  ProgramOutput output_;
};

TEST_F(ProgramOutputTest, WholeLinesComeOnceBehindTheirWorker) {
  EXPECT_EQ(output_.TakeLines(), "") << "there is nothing yet";
  Write("worker-1.log", "one\ntw");
  EXPECT_EQ(output_.TakeLines(), "worker 1 | one\n");
  EXPECT_EQ(output_.TakeLines(), "");
  Write("worker-1.log", "o\n");
  Write("worker-12.log", "other\n");
  Write("summary.log", "of nobody\n");
  const std::string lines = output_.TakeLines();
  EXPECT_NE(lines.find("worker 1 | two\n"), std::string::npos) << lines;
  EXPECT_NE(lines.find("worker 12 | other\n"), std::string::npos) << lines;
  EXPECT_EQ(lines.find("nobody"), std::string::npos) << lines;
}

TEST_F(ProgramOutputTest, WhatIsNoWholeLineComesAtTheEnd) {
  Write("worker-1.log", "without a break");
  EXPECT_EQ(output_.TakeLines(), "");
  EXPECT_EQ(output_.TakeLines(true), "worker 1 | without a break\n");
  EXPECT_EQ(output_.TakeLines(true), "");
}

TEST_F(ProgramOutputTest, OfAProgressBarTheLastStateIsSeenAndNothingSteersTheTerminal) {
  Write("worker-1.log", "  1 %\r 50 %\r100 %\r\n");
  EXPECT_EQ(output_.TakeLines(), "worker 1 | 100 %\n");
  Write("worker-1.log", "\x1b[2Jgone\n");
  EXPECT_EQ(output_.TakeLines().find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace tactus::client
