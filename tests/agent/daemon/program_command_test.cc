// How a program of a user's is found, and where its files stand.

#include "agent/daemon/program_command.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tactus::agent {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

class ProgramCommandTest : public testing::Test {
 protected:
  ProgramCommandTest()
      : folder_(std::filesystem::temp_directory_path() /
                ("tactus-program-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_ / "bin");
    std::filesystem::create_directories(folder_ / "job");
    Write("bin/tool", 0700);
    Write("own", 0700);
    Write("text", 0600);
  }
  ~ProgramCommandTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, mode_t mode) {
    std::ofstream(folder_ / name) << name;
    ::chmod((folder_ / name).c_str(), mode);
  }
  tactus::v1::Program ProgramOf(const std::vector<std::string>& words) const {
    tactus::v1::Program program;
    for (const std::string& word : words) program.add_command(word);
    program.set_directory(folder_);
    return program;
  }
  absl::StatusOr<ProgramCommand> Prepare(const tactus::v1::Program& program) const {
    return PrepareProgram(program, place_, {"PATH=/none:" + (folder_ / "bin").string()});
  }

  const std::filesystem::path folder_;
  ProgramPlace place_{.job_folder = folder_ / "job"};
};

TEST_F(ProgramCommandTest, TheFirstWordIsFoundAsAShellFindsIt) {
  const absl::StatusOr<ProgramCommand> of_path = Prepare(ProgramOf({"tool", "own"}));
  ASSERT_TRUE(of_path.ok()) << of_path.status();
  EXPECT_THAT(of_path->arguments, ElementsAre((folder_ / "bin/tool").string(), "own"));
  EXPECT_EQ(of_path->directory, folder_.string());

  const absl::StatusOr<ProgramCommand> of_folder = Prepare(ProgramOf({"./own"}));
  ASSERT_TRUE(of_folder.ok()) << of_folder.status();
  EXPECT_THAT(of_folder->arguments, ElementsAre((folder_ / "own").string()));
}

TEST_F(ProgramCommandTest, WhatCannotBeRunIsSaid) {
  EXPECT_THAT(std::string(Prepare(ProgramOf({"own"})).status().message()),
              HasSubstr("program.command: 'own' is no program"))
      << "a shell would not look beside itself";
  EXPECT_FALSE(Prepare(ProgramOf({"./text"})).ok());
  EXPECT_FALSE(Prepare(ProgramOf({})).ok());
  tactus::v1::Program elsewhere = ProgramOf({"tool"});
  elsewhere.set_directory("/no/such/folder");
  EXPECT_THAT(std::string(Prepare(elsewhere).status().message()),
              HasSubstr("program.directory: '/no/such/folder' is no folder"));
}

TEST_F(ProgramCommandTest, FilesStandInOneFolderOfTheJobs) {
  tactus::v1::Program program = ProgramOf({"./parts/own", "x"});
  program.clear_directory();
  program.add_files(folder_ / "own");
  program.add_names("parts/own");
  program.add_files(folder_ / "text");
  program.add_names("text");
  const absl::StatusOr<ProgramCommand> command = Prepare(program);
  ASSERT_TRUE(command.ok()) << command.status();

  EXPECT_THAT(command->directory, HasSubstr((folder_ / "job/program-").string()));
  EXPECT_THAT(command->arguments[0], EndsWith("/parts/own"));
  EXPECT_TRUE(std::filesystem::exists(command->directory + "/text"));
  EXPECT_EQ(Prepare(program)->directory, command->directory) << "once for all workers";
}

TEST_F(ProgramCommandTest, NoNameLeadsOutOfTheFolder) {
  for (const char* name : {"../out", "/out", "a/../../out", ""}) {
    tactus::v1::Program program = ProgramOf({"tool"});
    program.clear_directory();
    program.add_files(folder_ / "text");
    program.add_names(name);
    EXPECT_EQ(Prepare(program).status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
}

}  // namespace
}  // namespace tactus::agent
