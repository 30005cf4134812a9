#include "agent/worker/training_curves.h"

#include <sys/wait.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "agent/worker/event_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tactus::worker {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class CurvesTest : public testing::Test {
 protected:
  CurvesTest() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "curves_" + info->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~CurvesTest() override { std::filesystem::remove_all(folder_); }

  // What the independent reader finds in the file.
  std::vector<std::string> Read(const std::string& file) {
    const std::filesystem::path script =
        std::filesystem::path(__FILE__).parent_path() / "read_event_file.py";
    const std::string found = folder_ + "/found";
    const std::string command =
        "/usr/bin/python3 " + script.string() + " " + folder_ + "/" + file + " > " + found;
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    std::ifstream lines(found);
    std::vector<std::string> read;
    for (std::string line; std::getline(lines, line);) read.push_back(line);
    return read;
  }

  std::string folder_;
};

TEST(Crc32cTest, IsThatOfThePublishedVectors) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);  // RFC 3720, B.4
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(Crc32c(""), 0u);
}

policies::Plan PlanOf(std::uint64_t version, std::vector<std::uint32_t> batch_sizes) {
  return {.version = version, .batch_sizes = std::move(batch_sizes), .reason = "worker 1 is slow"};
}

policies::Report ReportOf(std::uint64_t round, std::uint64_t plan_version) {
  return {.round = round,
          .plan_version = plan_version,
          .round_seconds = 0.25,
          .gradient_norm2_global = 9,
          .samples_global = 48,
          .loss_mean_global = 2.5,
          .contributors = 2,
          .samples_gradient_norm2 = 48 * 20.0,
          .gradient_samples = 48,
          .orthogonality = 0.5,
          .learning_rate = 0.125};
}

TEST_F(CurvesTest, ARoundsValuesAreReadBackUnderTheirTags) {
  absl::StatusOr<TrainingCurves> curves = TrainingCurves::Open(folder_, "{\n}", 1'700'000'000.5);
  ASSERT_TRUE(curves.ok()) << curves.status();

  ASSERT_TRUE(curves->Add(ReportOf(300, 7), PlanOf(7, {32, 16}), Seconds(3), 1'700'000'001).ok());

  EXPECT_THAT(curves->name(), HasSubstr("tensorboard/events.out.tfevents.1700000000."));
  const std::vector<std::string> found = Read(curves->name());
  for (const std::string line :
       {"0 job text 11", "300 train/loss 2.5", "300 train/learning_rate 0.125",
        "300 train/gradient_norm 3", "300 adapt/global_batch 48", "300 adapt/period 1",
        "300 adapt/batch/0 32", "300 adapt/batch/1 16", "300 adapt/orthogonality 0.5",
        "300 time/round_seconds 0.25", "300 plan text 20"}) {
    EXPECT_THAT(found, Contains(line));
  }
}

TEST_F(CurvesTest, RoundsCloseTogetherAreThinnedButANewPlanIsAlwaysThere) {
  absl::StatusOr<TrainingCurves> curves = TrainingCurves::Open(folder_, "job", 1);
  ASSERT_TRUE(curves.ok()) << curves.status();
  for (std::uint64_t round = 0; round < 100; ++round) {
    const std::uint64_t version = round < 33 ? 1 : 2;
    ASSERT_TRUE(curves
                    ->Add(ReportOf(round, version), PlanOf(version, {48}),
                          Seconds(0.02 * static_cast<double>(round)), 2)
                    .ok());
  }

  const std::vector<std::string> found = Read(curves->name());

  std::vector<std::string> losses;
  for (const std::string& line : found) {
    if (line.find("train/loss") != std::string::npos) {
      losses.push_back(line.substr(0, line.find(' ')));
    }
  }
  EXPECT_EQ(losses, (std::vector<std::string>{"0", "25", "33", "58", "83"}));
}

TEST_F(CurvesTest, TheNoiseScaleComesOnlyFromWhatTellsIt) {
  for (const double samples : {48.0, 0.0}) {
    absl::StatusOr<TrainingCurves> curves = TrainingCurves::Open(folder_, "job", 1);
    ASSERT_TRUE(curves.ok()) << curves.status();
    for (std::uint64_t round = 0; round < 20; ++round) {
      policies::Report report = ReportOf(round, 1);
      report.gradient_samples = samples;
      const Duration trained = Seconds(static_cast<double>(round));
      ASSERT_TRUE(curves->Add(report, PlanOf(1, {24, 24}), trained, 2).ok());
    }
    // v = (48 * 20 - 48 * 9) / (2 - 1), |mu|^2 = 9 - v / 48: below zero, as noise dominates.
    const auto noise = Contains(HasSubstr("adapt/noise_scale"));
    const std::vector<std::string> found = Read(curves->name());
    if (samples > 0) {
      EXPECT_THAT(found, noise);
    } else {
      EXPECT_THAT(found, Not(noise));
    }
    std::filesystem::remove_all(folder_ + "/tensorboard");
  }
}

TEST_F(CurvesTest, AFolderThatCannotBeIsToldAndAFullDiskEndsTheCurves) {
  std::ofstream(folder_ + "/tensorboard") << "a file";
  EXPECT_FALSE(TrainingCurves::Open(folder_, "job", 1).ok());

  const absl::StatusOr<EventFile> none = EventFile::Open("/proc/self/none", 1);
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("/proc/self/none"));
}

TEST_F(CurvesTest, TensorboardReadsItWhereItIsInstalled) {
  absl::StatusOr<TrainingCurves> curves = TrainingCurves::Open(folder_, "job", 1);
  ASSERT_TRUE(curves.ok()) << curves.status();
  ASSERT_TRUE(curves->Add(ReportOf(5, 1), PlanOf(1, {48}), Seconds(1), 2).ok());
  const std::string script =
      "import sys\n"
      "try: from tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n"
      "except ImportError: sys.exit(77)\n"
      "events = EventAccumulator('" +
      folder_ +
      "/tensorboard').Reload()\n"
      "loss = events.Scalars('train/loss')[0]\n"
      "text = events.Tensors('job')[0].tensor_proto.string_val[0]\n"
      "sys.exit(0 if (loss.step, loss.value, text) == (5, 2.5, b'    job') else 1)\n";
  std::ofstream(folder_ + "/read.py") << script;
  const int status = std::system(("python3 " + folder_ + "/read.py 2> /dev/null").c_str());
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "Python has no tensorboard (pip install it)";

  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(CurvesTest, AValidationHasItsTagsAndAccuracyWhereThereIsOne) {
  absl::StatusOr<TrainingCurves> curves = TrainingCurves::Open(folder_, "{}", 1'700'000'000);
  ASSERT_TRUE(curves.ok()) << curves.status();

  ASSERT_TRUE(curves->AddValidation({.rounds = 40, .loss = 1.5, .accuracy = 0.25}, 1).ok());
  ASSERT_TRUE(curves->AddValidation({.rounds = 80, .loss = 1.25}, 2).ok());

  const std::vector<std::string> found = Read(curves->name());
  for (const std::string line :
       {"40 validation/loss 1.5", "40 validation/accuracy 0.25", "80 validation/loss 1.25"}) {
    EXPECT_THAT(found, Contains(line));
  }
  EXPECT_THAT(found, Not(Contains(HasSubstr("80 validation/accuracy"))));
}

}  // namespace
}  // namespace tactus::worker
