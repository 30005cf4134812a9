#include "client/ask/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "coordinator/tape/replay.h"
#include "tests/support/temporary_folder.h"

namespace tactus::client {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kCluster = R"(hosts:
  - name: fast
    devices: [{samples_per_second: 1000, noise: {sigma: 0.1}}]
  - name: slow
    link: {rate: 100mbit}
    devices: [{samples_per_second: 250, noise: {sigma: 0.1}}]
model: {load_time: 1s, conclude_time: 1s}
)";

constexpr const char* kJob = R"(name: trial
model: {builtin: bytes-lm}
data: {text: corpus.txt}
stop: {rounds: 60}
workers: {min: 2}
)";

std::string Content(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

// What a command printed and how it ended.
struct Told {
  ExitCode code = ExitCode::kOk;
  std::string output{};
  std::string messages{};
};

class SimulateTest : public testing::Test {
 protected:
  SimulateTest() {
    Write("cluster.yaml", kCluster);
    Write("job.yaml", kJob);
    command_.cluster_file = At("cluster.yaml");
    command_.job_file = At("job.yaml");
  }

  std::string At(const std::string& name) const { return folder_.path() + "/" + name; }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(At(name)) << text;
  }

  Told Run() const {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    Told told{.code = Simulate(command_, Screen({}))};
    told.output = testing::internal::GetCapturedStdout();
    told.messages = testing::internal::GetCapturedStderr();
    return told;
  }

  const TemporaryFolder folder_;
  SimulateCommand command_;
};

TEST_F(SimulateTest, AJobThatSucceedsIsReported) {
  const Told told = Run();

  EXPECT_EQ(told.code, ExitCode::kOk);
  EXPECT_EQ(told.messages, "");
  EXPECT_THAT(told.output, HasSubstr(" succeeded\n"));
  EXPECT_THAT(told.output, HasSubstr(" 60 rounds completed\n"));
  EXPECT_THAT(told.output, HasSubstr("shares follow the speeds"));
}

TEST_F(SimulateTest, EqualFilesAndSeedsGiveEqualBytes) {
  command_.output = OutputFormat::kJson;
  command_.curve_file = At("curve.csv");
  command_.trace_file = At("trace.json");
  command_.tape_file = At("it.tape");
  const auto all = [this] {
    const std::string output = Run().output;
    return output + Content(command_.curve_file) + Content(command_.trace_file) +
           Content(command_.tape_file);
  };

  const std::string first = all();
  const std::string second = all();
  command_.seed = 2;
  const std::string other = all();

  EXPECT_TRUE(first == second);  // too long to be printed
  EXPECT_TRUE(first != other);
}

TEST_F(SimulateTest, TheCurveHasALineARound) {
  command_.curve_file = At("curve.csv");

  Run();

  const std::string curve = Content(command_.curve_file);
  EXPECT_THAT(curve, StartsWith("seconds,round,samples,loss,loss_smoothed,plan\n"));
  EXPECT_EQ(std::count(curve.begin(), curve.end(), '\n'), 61);
}

TEST_F(SimulateTest, TheCurveOfOneRunIsTheLossOfAnother) {
  command_.curve_file = At("curve.csv");
  Run();
  command_.loss = "{curve: {file: curve.csv}}";
  command_.curve_file = At("again.csv");

  const Told told = Run();

  EXPECT_EQ(told.code, ExitCode::kOk) << told.messages;
  EXPECT_THAT(Content(command_.curve_file), StartsWith("seconds,round,samples,loss"));
}

TEST_F(SimulateTest, TheTapesOfACoordinatorThatRestartsReplayWithoutDifference) {
  Write("cluster.yaml",
        std::string(kCluster) + "faults: [{at: 3s, crash_coordinator: true, for: 1s}]\n");
  command_.tape_file = At("it.tape");

  EXPECT_EQ(Run().code, ExitCode::kOk);

  for (const std::string& path : {At("it.tape"), At("it.tape.2")}) {
    const auto replayed = tape::Replay(path, {});
    ASSERT_TRUE(replayed.ok()) << replayed.status();
    EXPECT_GT(replayed->events, 0u);
    EXPECT_FALSE(replayed->difference.has_value());
  }
}

TEST_F(SimulateTest, SeveralSeedsAreATable) {
  command_.seed = 5;
  command_.count = 3;

  const Told told = Run();

  EXPECT_EQ(told.code, ExitCode::kOk);
  EXPECT_THAT(told.output, HasSubstr("\n5       succeeded"));
  EXPECT_THAT(told.output, HasSubstr("\n7       succeeded"));
  EXPECT_THAT(told.output, HasSubstr("\nmedian "));
  EXPECT_THAT(told.output, HasSubstr("\nspread "));
}

TEST_F(SimulateTest, TheTimeToTheJobsOwnLossIsReported) {
  command_.overrides = {{"stop.train_loss", "2.2"}, {"stop.rounds", "2000"}};
  EXPECT_THAT(Run().output, HasSubstr("time to loss 2.2  "));

  command_.target_loss = 2.25;
  EXPECT_THAT(Run().output, HasSubstr("time to loss 2.25  "));
}

TEST_F(SimulateTest, TheLossOnValidationSamplesIsReportedWhereItIsAskedFor) {
  command_.output = OutputFormat::kJson;
  EXPECT_THAT(Run().output, HasSubstr("\"validation\": []"));

  command_.validate_every = Seconds(1);
  EXPECT_THAT(Run().output, HasSubstr("\"rounds\": 0,\n          \"samples\": 0"));
}

TEST_F(SimulateTest, AJobThatFailsIsToldApart) {
  Write("cluster.yaml", std::string(kCluster) +
                            "faults: [{at: 3s, crash: slow/cpu:0}, {at: 3s, crash: fast/cpu:0}]\n");
  command_.overrides = {{"retries", "0"}};

  const Told told = Run();

  EXPECT_EQ(told.code, ExitCode::kJobFailed);
  EXPECT_THAT(told.output, HasSubstr(" failed\n"));
}

TEST_F(SimulateTest, AJobThatIsNotOverInTimeIsSaidWithTheCommandThatRepeatsIt) {
  // No job can be written down, so this one waits beyond the end of the simulation.
  Write("cluster.yaml", std::string(kCluster) + "faults: [{at: 0s, disk_full: true}]\n");
  command_.seed = 9;
  command_.loss = "noisy_quadratic";
  command_.overrides = {{"stop.time", "1h"}, {"workers", "{min: 2}"}};

  const Told told = Run();

  EXPECT_EQ(told.code, ExitCode::kTimedOut);
  EXPECT_THAT(told.messages, HasSubstr("tactus: the limit of virtual time, 30 days, was reached"));
  EXPECT_THAT(told.messages, HasSubstr("again: tactus simulate " + command_.cluster_file + " " +
                                       command_.job_file +
                                       " --seed 9 --loss noisy_quadratic --set stop.time=1h --set "
                                       "'workers={min: 2}'\n"));
}

TEST_F(SimulateTest, AJobFromStandardInputIsNamedWhereItsFileWouldStand) {
  Write("cluster.yaml", std::string(kCluster) + "faults: [{at: 0s, disk_full: true}]\n");
  std::istringstream job(kJob);
  std::streambuf* const input = std::cin.rdbuf(job.rdbuf());
  command_.job_file = "-";
  const Told told = Run();
  std::cin.rdbuf(input);

  EXPECT_THAT(told.messages, HasSubstr(" again, with the job file from standard input: tactus "
                                       "simulate " +
                                       command_.cluster_file + " - --seed 1\n"));
}

TEST_F(SimulateTest, WhatIsWrongWithAFileIsALineEach) {
  Write("cluster.yaml", "hosts: [{name: a, link: {rate: -5mbit}, devices: []}]\n");

  const Told told = Run();

  EXPECT_EQ(told.code, ExitCode::kUsage);
  EXPECT_EQ(told.output, "");
  EXPECT_EQ(told.messages,
            "tactus: " + command_.cluster_file +
                ": hosts[0].link.rate: '-5mbit' is not a rate of 1kbit or more, such as 100mbit or "
                "1gbit (line 1)\ntactus: " +
                command_.cluster_file +
                ": hosts[0].devices: found 0 items, allowed are 1 or more (line 1)\n");
}

TEST_F(SimulateTest, TheJobFileIsHeldToTheServersRules) {
  command_.overrides = {{"optimizer.sgd.momentum", "2"}};

  const Told told = Run();

  EXPECT_EQ(told.code, ExitCode::kUsage);
  EXPECT_THAT(told.messages,
              HasSubstr("job.yaml: optimizer.sgd.momentum: found 2, allowed is 0 to below 1"));
}

TEST_F(SimulateTest, AJobThatNeverFitsIsRefused) {
  command_.overrides = {{"workers.min", "3"}};
  EXPECT_THAT(Run().messages,
              HasSubstr("job.yaml: workers.min: found 3, the cluster has 2 devices\n"));

  command_.overrides = {{"workers.device", "cuda"}};
  EXPECT_THAT(Run().messages,
              HasSubstr("job.yaml: workers.min: found 2, the cluster has 0 cuda devices\n"));
}

TEST_F(SimulateTest, DataThatAPerceptronNeedsAreTheJobFiles) {
  command_.loss = "perceptron";

  EXPECT_THAT(Run().messages, HasSubstr("job.yaml: data.text: "));
}

TEST_F(SimulateTest, FilesThatCannotBeWrittenAreSaidBeforeAnythingIsSimulated) {
  command_.curve_file = At("none/curve.csv");
  command_.trace_file = "/dev/null";
  command_.tape_file = folder_.path();

  const Told told = Run();

  EXPECT_EQ(told.code, ExitCode::kFile);
  EXPECT_EQ(told.output, "");
  EXPECT_EQ(told.messages, "tactus: " + command_.curve_file +
                               ": cannot be made: No such file or directory\n"
                               "tactus: /dev/null: cannot be written: not a regular file\n"
                               "tactus: " +
                               folder_.path() + ": cannot be written: not a regular file\n");
}

TEST_F(SimulateTest, ARandomScenarioFollowsFromTheSeedAlone) {
  command_ = {.random = true, .seed = 5, .output = OutputFormat::kJson};

  const Told first = Run();
  const Told second = Run();
  command_.seed = 6;
  const Told other = Run();

  EXPECT_EQ(first.code, ExitCode::kOk) << first.messages;
  EXPECT_TRUE(first.output == second.output);
  EXPECT_TRUE(first.output != other.output);
}

TEST_F(SimulateTest, SeveralRandomScenariosAreATable) {
  command_ = {.random = true, .seed = 5, .count = 3};

  const Told told = Run();

  EXPECT_EQ(told.code, ExitCode::kOk) << told.messages;
  EXPECT_THAT(told.output, StartsWith("SEED "));
  EXPECT_THAT(told.output, HasSubstr("\n7 "));
}

}  // namespace
}  // namespace tactus::client
