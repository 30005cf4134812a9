#include "client/cli/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace tactus::client {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<std::string> Candidates(const std::vector<std::string>& words) {
  return Complete(CommandTree(), words);
}

TEST(CompletionTest, VerbsComeFirst) {
  EXPECT_THAT(Candidates({"can"}), ElementsAre(StartsWith("cancel\t")));
  EXPECT_THAT(Candidates({""}), Contains(StartsWith("submit\t")));
  EXPECT_THAT(Candidates({}), Contains(StartsWith("get\t")));
  EXPECT_THAT(Candidates({"--server", "h:1", "can"}), ElementsAre(StartsWith("cancel\t")));
}

TEST(CompletionTest, NounsFollowTheirVerb) {
  EXPECT_THAT(Candidates({"get", "no"}), ElementsAre(StartsWith("nodes\t"), StartsWith("node\t")));
  EXPECT_THAT(
      Candidates({"config", ""}),
      ElementsAre(StartsWith("show\t"), StartsWith("get-contexts\t"), StartsWith("use-context\t")));
}

TEST(CompletionTest, NamesAreLeftToTheCoordinator) {
  EXPECT_THAT(Candidates({"cancel", ""}), ElementsAre("@jobs"));
  EXPECT_THAT(Candidates({"cancel", "demo-1", ""}), IsEmpty());
  EXPECT_THAT(Candidates({"delete", "demo-1", ""}), ElementsAre("@jobs"));
  EXPECT_THAT(Candidates({"drain", "--wait", ""}), ElementsAre("@nodes"));
  EXPECT_THAT(Candidates({"--context", ""}), ElementsAre("@contexts"));
  EXPECT_THAT(Candidates({"submit", "jo"}), ElementsAre("@files"));
}

TEST(CompletionTest, WhatTakesNamesOrANounIsCompletedWithBoth) {
  EXPECT_THAT(Candidates({"delete", ""}), ElementsAre("@jobs", StartsWith("node\t")));
  EXPECT_THAT(Candidates({"delete", "node", ""}), ElementsAre("@nodes"));
}

TEST(CompletionTest, OptionsAreThoseOfTheVerbAndOfAll) {
  const auto candidates = Candidates({"logs", "demo-1", "--"});

  EXPECT_THAT(candidates, Contains(StartsWith("--rank\t")));
  EXPECT_THAT(candidates, Contains(StartsWith("--server\t")));
  EXPECT_THAT(candidates, Not(Contains(StartsWith("--discard"))));
}

TEST(CompletionTest, ValuesAreThoseAllowed) {
  EXPECT_THAT(Candidates({"get", "jobs", "-o", ""}),
              ElementsAre("table", "wide", "json", "yaml", "name"));
  EXPECT_THAT(Candidates({"update", "demo-1", "--freeze", "b"}), ElementsAre("batch"));
  EXPECT_THAT(Candidates({"completion", ""}), ElementsAre("bash", "zsh", "fish"));
  EXPECT_THAT(Candidates({"get", "jobs", "--limit", ""}), IsEmpty());
}

// Runs `command` with `file`; nothing when there is no such shell here.
int Check(const std::string& shell, const std::string& arguments) {
  if (std::system(("command -v " + shell + " >/dev/null").c_str()) != 0) return 0;
  return std::system((shell + " " + arguments).c_str());
}

TEST(CompletionTest, TheShellsAcceptTheirScripts) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/script";

  std::ofstream(file) << CompletionScript("bash");
  EXPECT_EQ(Check("bash", "-n " + file), 0);
  std::ofstream(file) << CompletionScript("zsh");
  EXPECT_EQ(Check("zsh", "-n " + file), 0);
  std::ofstream(file) << CompletionScript("fish");
  EXPECT_EQ(Check("fish", "--no-execute " + file), 0);
}

// With a stand-in for the program that says what a coordinator would.
TEST(CompletionTest, BashFillsInNames) {
  const TemporaryFolder folder;
  const std::string program = folder.path() + "/tactus";
  std::ofstream(program) << "#!/bin/sh\n"
                            "case \"$1\" in\n"
                            "__complete) echo @jobs ;;\n"
                            "get) printf 'demo-1\\ndemo-2\\nother-1\\n' ;;\n"
                            "esac\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const std::string script = folder.path() + "/script";
  std::ofstream(script) << CompletionScript("bash")
                        << "COMP_WORDS=(tactus cancel de)\nCOMP_CWORD=2\n_tactus\n"
                           "[[ \"${COMPREPLY[*]}\" == 'demo-1 demo-2' ]]\n";

  const std::string command = "PATH=" + folder.path() + ":$PATH bash " + script;

  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
}  // namespace tactus::client
