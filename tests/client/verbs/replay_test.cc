#include "client/verbs/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "client/cli/answer.h"
#include "coordinator/tape/tape_writer.h"
#include "tests/support/temporary_folder.h"

namespace tactus::client {
namespace {

using ::testing::HasSubstr;

tape::Replayed Sample() {
  return {.header = {.program_version = "1.2.3"},
          .events = 1200,
          .actions = 34,
          .jobs = 2,
          .rounds = 400,
          .plans_adopted = 3,
          .length = Seconds(125),
          .end = tape::EndReason::kClean};
}

tape::Replayed Different() {
  tape::Replayed replayed = Sample();
  replayed.end.reset();
  replayed.difference = {
      .event = 1200,
      .time = Seconds(1.5),
      .words = "ticked",
      .difference = {.place = "action 1, wake_at: time", .expected = "5", .found = "6"}};
  return replayed;
}

TEST(ReplayTextTest, TheTableSaysWhatTheTapeHolds) {
  EXPECT_EQ(ReplayText(Sample(), OutputFormat::kTable),
            "EVENTS         1,200\n"
            "ACTIONS        34\n"
            "JOBS           2\n"
            "ROUNDS         400\n"
            "PLANS ADOPTED  3\n"
            "LENGTH         2m 05s\n"
            "END            clean\n"
            "WRITTEN BY     1.2.3\n"
            "DIFFERENCE     none\n");
}

TEST(ReplayTextTest, ADifferenceStandsWithItsEventAndField) {
  const std::string text = ReplayText(Different(), OutputFormat::kTable);

  EXPECT_THAT(text, HasSubstr("END            not reached\n"));
  EXPECT_THAT(text, HasSubstr("\nevent 1,200 at 1.50 s (ticked)\naction 1, wake_at: time\n"
                              "EXPECTED  5\nFOUND     6\n"));
}

TEST(ReplayTextTest, TheJsonIsOneObject) {
  const auto same = nlohmann::json::parse(ReplayText(Sample(), OutputFormat::kJson));
  EXPECT_EQ(same["rounds"], 400);
  EXPECT_DOUBLE_EQ(same["length_seconds"].get<double>(), 125.0);
  EXPECT_TRUE(same["difference"].is_null());

  const auto different = nlohmann::json::parse(ReplayText(Different(), OutputFormat::kJson));
  EXPECT_EQ(different["difference"]["event"], 1200);
  EXPECT_EQ(different["difference"]["place"], "action 1, wake_at: time");
}

class ReplayTest : public testing::Test {
 protected:
  ReplayTest() {
    absl::StatusOr<tape::TapeWriter> tape = tape::TapeWriter::Create(path_, {});
    EXPECT_TRUE(tape.ok() && tape->Add(tape::Start{}).ok() &&
                tape->Add(tape::Step{.event = job::Ticked{}}).ok());
    EXPECT_TRUE(tape->Flush().ok());
  }

  ExitCode Code(const std::string& path, bool allow_cut = false) const {
    std::vector<std::string> words = {"replay", path};
    if (allow_cut) words.emplace_back("--allow-cut");
    return Answer(words, {}, Screen({}));
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/it.tape";
};

TEST_F(ReplayTest, ACutTapeIsBadInputUnlessAllowed) {
  EXPECT_EQ(Code(path_), ExitCode::kUsage);
  EXPECT_EQ(Code(path_, true), ExitCode::kOk);
}

TEST_F(ReplayTest, TheFormatIsChosen) {
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(Answer({"replay", path_, "--allow-cut", "-o", "json"}, {}, Screen({})), ExitCode::kOk);

  const std::string out = ::testing::internal::GetCapturedStdout();

  EXPECT_EQ(nlohmann::json::parse(out)["events"], 1);
}

TEST_F(ReplayTest, WhatIsNoTapeIsBadInput) {
  std::ofstream(folder_.path() + "/job.yaml") << "name: demo\n";

  EXPECT_EQ(Code(folder_.path() + "/job.yaml"), ExitCode::kUsage);
  EXPECT_EQ(Code(folder_.path()), ExitCode::kUsage);
  EXPECT_EQ(Code(folder_.path() + "/absent"), ExitCode::kUsage);
}

TEST_F(ReplayTest, ADifferenceHasAnExitCodeOfItsOwn) {
  absl::StatusOr<tape::TapeWriter> tape = tape::TapeWriter::Create(path_, {});
  ASSERT_TRUE(tape.ok() && tape->Add(tape::Start{}).ok());
  ASSERT_TRUE(tape->Add(tape::Step{.actions = {job::WakeAt{}}}).ok() && tape->Close().ok());

  EXPECT_EQ(Code(path_), ExitCode::kGeneric);
}

}  // namespace
}  // namespace tactus::client
