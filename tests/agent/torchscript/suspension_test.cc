// Workers that are suspended, and others that go on from their checkpoint.

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/torchscript/group_of_workers.h"

namespace tactus::torchscript {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class WorkerSuspensionTest : public testing::Test {
 protected:
  WorkerSuspensionTest()
      : folder_(MakeFolder("suspension")), spec_(TinySpec(WriteCorpus(folder_, 40000))) {
    spec_["stop"] = {{"rounds", "300"}};
  }
  ~WorkerSuspensionTest() override { std::filesystem::remove_all(folder_); }

  GroupSetting Setting(std::vector<std::uint32_t> batch_sizes, const std::string& out) const {
    std::filesystem::create_directories(folder_ + "/" + out);
    return {.spec = spec_,
            .batch_sizes = std::move(batch_sizes),
            .output_directory = folder_ + "/" + out};
  }

  std::vector<WorkerOutcome> RunSuspended(std::vector<std::uint32_t> batch_sizes,
                                          const std::string& out) const {
    GroupSetting setting = Setting(std::move(batch_sizes), out);
    setting.stop = {{"reason", "paused"}, {"suspend", true}};
    setting.stop_after = 5;
    return RunGroup(setting);
  }

  std::vector<WorkerOutcome> RunFrom(const std::string& before,
                                     std::vector<std::uint32_t> batch_sizes,
                                     const std::string& out) const {
    GroupSetting setting = Setting(std::move(batch_sizes), out);
    setting.checkpoint = folder_ + "/" + before + "/checkpoint.safetensors";
    return RunGroup(setting);
  }

  std::string Weights(const std::string& out) const {
    std::ifstream file(folder_ + "/" + out + "/model.safetensors", std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    return bytes.str();
  }

  const std::string folder_;
  json spec_;
};

TEST_F(WorkerSuspensionTest, AGroupGoesOnBitForBit) {
  spec_["optimizer"] = {{"adam", {{"learningRate", 0.001}}}};
  const auto whole = RunGroup(Setting({5, 3}, "whole"));
  ASSERT_TRUE(whole[0].ok) << whole[0].error;

  const auto first = RunSuspended({5, 3}, "first");

  for (const WorkerOutcome& worker : first) {
    ASSERT_TRUE(worker.ok) << worker.error;
    EXPECT_EQ(worker.First("finished")["suspended"], true);
    EXPECT_EQ(worker.First("finished")["parametersHash"],
              first[0].First("finished")["parametersHash"]);
    EXPECT_TRUE(worker.First("evaluated").is_null());
  }
  EXPECT_EQ(first[0].First("finished")["files"], json({"checkpoint.safetensors"}));
  EXPECT_EQ(first[1].First("finished")["files"], json::array());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/first/model.pt"));
  const std::uint64_t rounds = std::stoull(first[0].First("finished")["rounds"].get<std::string>());
  ASSERT_GE(rounds, 6u);
  ASSERT_LT(rounds, 300u);

  const auto second = RunFrom("first", {5, 3}, "second");

  ASSERT_TRUE(second[0].ok) << second[0].error;
  const json finished = second[0].First("finished");
  EXPECT_EQ(finished["suspended"], false);
  EXPECT_EQ(finished["rounds"], "300");
  EXPECT_EQ(finished["samplesGlobal"], whole[0].First("finished")["samplesGlobal"]);
  EXPECT_EQ(finished["parametersHash"], whole[0].First("finished")["parametersHash"]);
  EXPECT_EQ(second[0].All("report").front()["round"], std::to_string(rounds));
  EXPECT_EQ(second[0].First("evaluated")["loss"], whole[0].First("evaluated")["loss"]);
  EXPECT_GT(Weights("whole").size(), 1000u);
  EXPECT_TRUE(Weights("second") == Weights("whole"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/second/checkpoint.safetensors"));
}

TEST_F(WorkerSuspensionTest, AnEpochOverGroupsOfSeveralSizesCountsEverySampleOnce) {
  spec_["stop"] = {{"epochs", 1}};
  spec_["adapt"] = {{"batch", {{"microBatch", 4}}}};
  const auto first = RunSuspended({9, 4}, "first");
  ASSERT_EQ(first[0].First("finished")["suspended"], true);

  const auto second = RunFrom("first", {6, 5, 3}, "second");

  ASSERT_TRUE(second[0].ok) << second[0].error;
  EXPECT_EQ(second[0].First("finished")["samplesGlobal"], second[0].First("ready")["trainSamples"]);
  EXPECT_EQ(second[0].First("finished")["epochs"], "1");
}

TEST_F(WorkerSuspensionTest, SamplesThatArePassedOverCountAsUsed) {
  spec_["stop"] = {{"epochs", 1}};
  const auto first = RunSuspended({9, 4}, "first");
  const std::uint64_t used =
      std::stoull(first[0].First("finished")["samplesGlobal"].get<std::string>());
  const std::uint64_t all = std::stoull(first[0].First("ready")["trainSamples"].get<std::string>());
  GroupSetting setting = Setting({6, 5}, "second");
  setting.checkpoint = folder_ + "/first/checkpoint.safetensors";
  setting.skip_samples = 100;
  ASSERT_GT(all, used + 100);

  const auto second = RunGroup(setting);

  ASSERT_TRUE(second[0].ok) << second[0].error;
  EXPECT_EQ(second[0].First("finished")["epochs"], "1");
  EXPECT_EQ(second[0].First("finished")["samplesGlobal"], std::to_string(all - 100));
  EXPECT_EQ(second[0].All("report").front()["epochConsumed"], std::to_string(used + 100 + 11));
}

TEST_F(WorkerSuspensionTest, AResultThatWasAskedForHasACheckpointToo) {
  GroupSetting setting = Setting({5, 3}, "out");
  setting.stop = {{"reason", "cancelled"}};
  setting.stop_after = 5;

  const auto group = RunGroup(setting);

  ASSERT_TRUE(group[0].ok) << group[0].error;
  EXPECT_EQ(group[0].First("finished")["suspended"], false);
  json files = group[0].First("finished")["files"];
  ASSERT_EQ(files.size(), 5u);
  EXPECT_EQ(files[3].get<std::string>().find("tensorboard/events.out.tfevents."), 0u) << files[3];
  files.erase(3);
  EXPECT_EQ(files,
            json({"model.pt", "model.safetensors", "summary.json", "checkpoint.safetensors"}));
  EXPECT_EQ(group[0].First("finished")["reason"], "cancelled");
  // From which training could go on.
  const auto second = RunFrom("out", {8}, "second");
  EXPECT_TRUE(second[0].ok) << second[0].error;
  EXPECT_EQ(second[0].First("finished")["rounds"], "300");
}

TEST_F(WorkerSuspensionTest, ACheckpointThatDoesNotFitIsNoFieldOfTheJobFile) {
  ASSERT_TRUE(RunSuspended({8}, "first")[0].ok);
  spec_["optimizer"] = {{"adam", {{"learningRate", 0.001}}}};

  const json other = RunFrom("first", {8}, "second")[0].First("failed");
  const json missing = RunFrom("nowhere", {8}, "second")[0].First("failed");

  EXPECT_EQ(other["field"], "");
  EXPECT_THAT(other["message"].get<std::string>(),
              AllOf(StartsWith("checkpoint: "), HasSubstr("it has no tensor 'optimizer.1.")));
  EXPECT_EQ(missing["field"], "");
  EXPECT_THAT(missing["message"].get<std::string>(),
              AllOf(StartsWith("checkpoint: "), HasSubstr("was not found")));
}

TEST_F(WorkerSuspensionTest, ADamagedCheckpointIsSaidToBeDamaged) {
  ASSERT_TRUE(RunSuspended({8}, "first")[0].ok);
  std::fstream file(folder_ + "/first/checkpoint.safetensors",
                    std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file.put('x');
  file.close();

  const json failed = RunFrom("first", {8}, "second")[0].First("failed");

  EXPECT_EQ(failed["field"], "checkpoint") << failed.dump();
  EXPECT_EQ(failed["transient"], true);
  EXPECT_THAT(failed["message"].get<std::string>(), HasSubstr("it is damaged"));
}

}  // namespace
}  // namespace tactus::torchscript
