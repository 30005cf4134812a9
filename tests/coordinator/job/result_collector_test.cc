#include "coordinator/job/result_collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/coordinator/job/rig.h"

namespace tactus::job {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ResultCollectorTest, AllHaveFinishedWhenEachHas) {
  ResultCollector results(2);

  results.SetFinished(1, Finished(1));
  EXPECT_FALSE(results.AllFinished());
  results.SetFinished(0, Finished(0));

  EXPECT_TRUE(results.AllFinished());
  EXPECT_FALSE(results.OddRank().has_value());
}

TEST(ResultCollectorTest, DifferentParametersNameTheFirstThatDiffersFromRankZero) {
  ResultCollector results(3);
  FinishedMessage odd = Finished(1);
  odd.parameters_hash = 78;
  results.SetFinished(0, Finished(0));
  results.SetFinished(1, odd);
  results.SetFinished(2, Finished(2));

  EXPECT_EQ(results.OddRank(), 1u);
}

TEST(ResultCollectorTest, FilesMayArriveBeforeTheyAreNamed) {
  ResultCollector results(1);

  results.AddArtifact({.path = "model.safetensors", .size_bytes = 5});
  results.SetFinished(0, Finished(0));
  EXPECT_THAT(results.MissingFiles(), ElementsAre("model.pt"));
  results.AddArtifact({.path = "model.pt", .size_bytes = 9});

  EXPECT_THAT(results.MissingFiles(), IsEmpty());
}

TEST(ResultCollectorTest, UtilisationIsTheRateOverTheSumOfTheWorkersOwnSpeeds) {
  ResultCollector results(1);
  results.SetFinished(0, Finished(0));  // 288 samples in 2 s
  results.SetEvaluated({.loss = 1.5, .accuracy = 0.25, .samples = 100});
  results.AddArtifact({.path = "model.pt", .size_bytes = 9});
  results.AddArtifact({.path = "model.safetensors", .size_bytes = 5});

  const ResultRecord result = results.Make(160);

  EXPECT_DOUBLE_EQ(result.utilisation, 0.9);
  EXPECT_EQ(result.artifacts.front().size_bytes, 9u);
  EXPECT_EQ(result.validation_samples, 100u);
  EXPECT_EQ(result.samples, 288u);
  EXPECT_EQ(result.stop_reason, "3 rounds");
}

TEST(ResultCollectorTest, UnknownSpeedsGiveNoUtilisation) {
  ResultCollector results(1);
  FinishedMessage last = Finished(0);
  last.files.clear();
  results.SetFinished(0, last);

  EXPECT_EQ(results.Make(0).utilisation, 0);
  EXPECT_EQ(results.Make(160).validation_samples, 0u);
}

TEST(StartFromTest, ACheckpointInAResultComesBeforeItsWeightsAndThoseBeforeAnOlderCheckpoint) {
  JobRecord record{.progress = {.epoch = 2, .epoch_consumed = 5}};
  EXPECT_EQ(StartFrom(record), std::nullopt);

  record.checkpoint = CheckpointRecord{.sha256 = "old", .rounds = 3};
  EXPECT_EQ(StartFrom(record)->sha256, "old");

  record.result = ResultRecord{.artifacts = {{.path = "model.pt", .sha256 = "script"},
                                             {.path = kWeightsFile, .sha256 = "weights"}},
                               .rounds = 9};
  EXPECT_EQ(StartFrom(record)->sha256, "weights");
  EXPECT_EQ(StartFrom(record)->rounds, 0u) << "weights are no place to go on from";

  record.result->artifacts.push_back({.path = kCheckpointFile, .sha256 = "new"});
  EXPECT_EQ(StartFrom(record)->sha256, "new");
  EXPECT_EQ(StartFrom(record)->rounds, 9u);
  EXPECT_EQ(StartFrom(record)->epoch_consumed, 5u);

  record.result->artifacts = {{.path = kCheckpointFile}};  // of a version without hashes
  EXPECT_EQ(StartFrom(record)->sha256, "old");
}

}  // namespace
}  // namespace tactus::job
