#include "client/ask/simulated_question.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "client/ask/cluster_file.h"
#include "client/ask/curve_file.h"
#include "tests/client/fake_coordinator.h"
#include "tests/client/sample_history.h"
#include "tests/support/temporary_folder.h"

namespace tactus::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

// The job of sample_history.h on record at a coordinator.
class AskHistoryTest : public testing::Test {
 protected:
  AskHistoryTest() {
    coordinator_.job = RecordedJob();
    coordinator_.rounds = RecordedRounds();
    command_.from = "demo-1";
  }

  AskedQuestion Ask() {
    api::Client client({.server = coordinator_.address(), .request_timeout = Seconds(10)});
    return AskHistory(command_, client);
  }
  // Of a question that there must be.
  simulator::Scenario Scenario() {
    AskedQuestion asked = Ask();
    EXPECT_THAT(asked.errors, IsEmpty());
    if (!asked.question) return {};
    return asked.question->scenario(1);
  }

  const TemporaryFolder folder_;
  FakeCoordinator coordinator_;
  SimulateCommand command_;
};

TEST_F(AskHistoryTest, TheJobRunsOnWhatItsRoundsSay) {
  const simulator::Scenario scenario = Scenario();

  EXPECT_THAT(scenario.cluster.hosts, SizeIs(2));
  ASSERT_THAT(scenario.jobs, SizeIs(1));
  EXPECT_EQ(scenario.jobs[0].settings.name, "demo");
  EXPECT_EQ(scenario.jobs[0].settings.stop_rounds, 30u);
  EXPECT_EQ(scenario.jobs[0].learner->train_samples(), kRecordedEpochSamples);
}

// Batches of 20 + 20 take what the slower worker does: 80 ms, and 4 ms of transfer.
TEST_F(AskHistoryTest, TheModelIsHeldAgainstTheRecord) {
  const AskedQuestion asked = Ask();

  ASSERT_TRUE(asked.question && asked.question->fit);
  const FitSummary& fit = *asked.question->fit;
  EXPECT_EQ(fit.job, "demo-1");
  EXPECT_EQ(fit.rounds, 30u);
  EXPECT_NEAR(fit.recorded_samples_per_second, 40 / kRecordedRoundSeconds, 1e-6);
  EXPECT_NEAR(fit.modelled_samples_per_second, 40 / 0.084, 0.1 * 40 / 0.084);
}

TEST_F(AskHistoryTest, OverridesAreOfTheJobsSpecification) {
  command_.overrides = {{"stop.rounds", "7"}};
  EXPECT_EQ(Scenario().jobs[0].settings.stop_rounds, 7u);

  command_.overrides = {{"stop.rounds", "-7"}};
  EXPECT_THAT(Ask().errors, ElementsAre(StartsWith("job demo-1: stop.rounds: ")));
}

TEST_F(AskHistoryTest, TheJobTakesAllDevicesOfAChangedCluster) {
  command_.add = {"3xspeed=1"};
  EXPECT_EQ(Scenario().jobs[0].settings.workers_min, 5u);
  EXPECT_EQ(Scenario().jobs[0].settings.workers_max, 5u);

  command_.add = {};
  command_.remove = {"rank-1"};
  EXPECT_EQ(Scenario().jobs[0].settings.workers_max, 1u);
}

TEST_F(AskHistoryTest, TheCommandLineMaySayHowManyDevicesTheJobTakes) {
  command_.add = {"3xspeed=1"};
  command_.overrides = {{"workers.max", "4"}};

  const simulator::Scenario scenario = Scenario();

  EXPECT_EQ(scenario.jobs[0].settings.workers_min, 2u);
  EXPECT_EQ(scenario.jobs[0].settings.workers_max, 4u);
}

TEST_F(AskHistoryTest, AWrongChangeIsTheUsersMistake) {
  command_.remove = {"rank-2"};

  const AskedQuestion asked = Ask();

  EXPECT_FALSE(asked.question);
  EXPECT_EQ(asked.exit_code, ExitCode::kUsage);
  EXPECT_THAT(asked.errors, ElementsAre(HasSubstr("--remove: found \"rank-2\"")));
}

TEST_F(AskHistoryTest, AModelOverAMeshIsRefusedInALineThatSaysWhoKnows) {
  command_.overrides = {{"model.options.mesh", "{kind: 1d, devices: 2}"}};

  const AskedQuestion asked = Ask();

  EXPECT_FALSE(asked.question);
  EXPECT_THAT(asked.errors, ElementsAre(AllOf(StartsWith("job demo-1: model.options.mesh: "),
                                              HasSubstr("tactus layouts has what they cost"))));
}

TEST_F(AskHistoryTest, AJobWithTooFewRoundsIsSaidWithoutTheFirst) {
  coordinator_.rounds = RecordedRounds(3);

  EXPECT_THAT(Ask().errors, ElementsAre(StartsWith("job demo-1: has 2 rounds ")));
}

TEST_F(AskHistoryTest, ACoordinatorThatIsNotThereIsSaidWithItsCode) {
  coordinator_.Shutdown();

  EXPECT_EQ(Ask().exit_code, ExitCode::kUnavailable);
}

TEST_F(AskHistoryTest, AnotherLossModelReplacesTheRecordedOne) {
  command_.loss = "{noisy_quadratic: {initial_loss: 9}}";
  EXPECT_TRUE(Ask().question);

  command_.loss = "curve";
  EXPECT_THAT(Ask().errors, ElementsAre(StartsWith("loss.curve.file: is missing; ")));
  command_.loss = "{curve";
  EXPECT_THAT(Ask().errors, ElementsAre(StartsWith("--loss: line 1, ")));
}

TEST_F(AskHistoryTest, TheClusterIsWrittenAsItIsSimulated) {
  command_.cluster_output = folder_.path() + "/cluster.yaml";
  command_.add = {"speed=0.5"};

  ASSERT_TRUE(Ask().question);

  const ClusterFile file = ReadClusterFile(command_.cluster_output, "");
  ASSERT_THAT(file.errors, IsEmpty());
  EXPECT_THAT(file.cluster.hosts, SizeIs(3));
  const std::string curve = CurvePathBeside(command_.cluster_output);
  EXPECT_EQ(file.work.loss.curve().file(), curve);
  const auto points = ReadCurveFile(curve);
  ASSERT_TRUE(points.ok()) << points.status();
  EXPECT_THAT(*points, SizeIs(30));
}

TEST_F(AskHistoryTest, EveryFileThatCannotBeWrittenIsSaid) {
  command_.cluster_output = folder_.path() + "/none/cluster.yaml";

  const AskedQuestion asked = Ask();

  EXPECT_EQ(asked.exit_code, ExitCode::kFile);
  EXPECT_THAT(asked.errors,
              ElementsAre(StartsWith(command_.cluster_output + ": "),
                          StartsWith(CurvePathBeside(command_.cluster_output) + ": ")));
}

TEST_F(AskHistoryTest, NothingIsWrittenForAQuestionThatIsRefused) {
  command_.cluster_output = folder_.path() + "/cluster.yaml";
  command_.overrides = {{"workers", "{min: 3}"}};

  EXPECT_THAT(Ask().errors, ElementsAre("job demo-1: workers.min: found 3, the cluster has 2 "
                                        "devices"));
  EXPECT_FALSE(std::filesystem::exists(command_.cluster_output));
}

// ---- From files and from the seed.

TEST(AskFilesTest, ARandomScenarioNeedsNoFiles) {
  const AskedQuestion asked = AskFiles({.random = true});

  ASSERT_TRUE(asked.question);
  EXPECT_FALSE(asked.question->fit);
  EXPECT_EQ(asked.question->target_loss, std::nullopt);
  EXPECT_EQ(asked.question->scenario(5).seed, 5u);
}

TEST(AskFilesTest, TheTargetIsTheJobsLoss) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() + "/c.yaml")
      << "hosts: [{name: a, devices: [{sample_time: 1ms}]}]\nmodel: {parameters: 70}\n";
  std::ofstream(folder.path() + "/j.yaml") << "name: j\nmodel: {builtin: bytes-lm}\ndata: {text: "
                                              "t}\nstop: {train_loss: 1.5, rounds: 9}\n";

  const AskedQuestion asked =
      AskFiles({.cluster_file = folder.path() + "/c.yaml", .job_file = folder.path() + "/j.yaml"});

  ASSERT_THAT(asked.errors, IsEmpty());
  EXPECT_EQ(asked.question->target_loss, 1.5);
  const simulator::Scenario scenario = asked.question->scenario(3);
  EXPECT_EQ(scenario.seed, 3u);
  EXPECT_EQ(scenario.jobs[0].parameters, 70u);
}

}  // namespace
}  // namespace tactus::client
