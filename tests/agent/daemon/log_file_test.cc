#include "agent/daemon/log_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/utf8.h"
#include "tests/agent/daemon/programs.h"
#include "tests/support/temporary_folder.h"

namespace tactus::agent {
namespace {

TEST(LogFileTest, WhatIsAppendedIsInTheFileAndInTheTail) {
  const TemporaryFolder folder;
  LogFile log(folder.File("log"));

  log.Append("one\n");
  log.Append("two\n");

  EXPECT_EQ(ReadFile(folder.File("log")), "one\ntwo\n");
  EXPECT_EQ(log.Tail(), "one\ntwo\n");
}

TEST(LogFileTest, AFullFileIsPutAsideAndOnlyOneIsKept) {
  const TemporaryFolder folder;
  LogFile log(folder.File("log"), 10);

  log.Append("aaaaaaaaaabbbbbbbbbbccc");

  EXPECT_EQ(ReadFile(folder.File("log")), "ccc");
  EXPECT_EQ(ReadFile(folder.File("log.1")), "bbbbbbbbbb");
  EXPECT_FALSE(std::filesystem::exists(folder.File("log.1.1")));
}

TEST(LogFileTest, AnExistingFileIsContinuedWithinItsBound) {
  const TemporaryFolder folder;
  LogFile(folder.File("log"), 10).Append("12345678");
  LogFile log(folder.File("log"), 10);

  log.Append("90x");

  EXPECT_EQ(ReadFile(folder.File("log.1")), "1234567890");
  EXPECT_EQ(ReadFile(folder.File("log")), "x");
}

TEST(LogFileTest, AFullFileThatCannotBePutAsideDoesNotGrow) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.File("log.1/in the way"));
  LogFile log(folder.File("log"), 10);

  log.Append("aaaaaaaaaabbb");
  log.Append("ccc");

  EXPECT_EQ(ReadFile(folder.File("log")), "aaaaaaaaaa");
  EXPECT_TRUE(log.Tail().ends_with("ccc"));
}

TEST(LogFileTest, TheTailIsBoundedAndBeginsAtACharacter) {
  const TemporaryFolder folder;
  LogFile log(folder.File("log"));
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "\xc3\xa4";
  log.Append(text + "end");

  EXPECT_LE(log.Tail().size(), LogFile::kTailBytesMax);
  EXPECT_TRUE(log.Tail().ends_with("end"));
  EXPECT_EQ(runtime::ToUtf8(log.Tail()), log.Tail());
}

TEST(LogFileTest, ADiskThatRefusesCostsTheFileButNotTheTail) {
  LogFile log("/proc/none/log");

  log.Append("said");

  EXPECT_EQ(log.Tail(), "said");
}

}  // namespace
}  // namespace tactus::agent
