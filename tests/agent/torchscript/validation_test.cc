// Workers that validate while they train.

#include <algorithm>
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
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class WorkerValidationTest : public testing::Test {
 protected:
  WorkerValidationTest()
      : folder_(MakeFolder("validation")), spec_(TinySpec(WriteCorpus(folder_, 40000))) {
    spec_["data"]["validationSamplesMax"] = "50";
    Every(5);
  }
  ~WorkerValidationTest() override { std::filesystem::remove_all(folder_); }

  void Every(int rounds) {
    spec_["validation"] = {{"policy", "VALIDATION_POLICY_AUTO"},
                           {"rounds", std::to_string(rounds)}};
  }
  // The loss is soon no lower than it was.
  void TrainTooFast() {
    spec_["optimizer"]["sgd"]["learningRate"] = 1.0;
    spec_["result"] = "RESULT_CHOICE_BEST";
    spec_["stop"] = {{"patience", 3}, {"rounds", "1000"}};
  }

  GroupSetting Setting(const std::string& out) const {
    std::filesystem::create_directories(folder_ + "/" + out);
    return {.spec = spec_, .batch_sizes = {5, 3}, .output_directory = folder_ + "/" + out};
  }

  static std::vector<std::string> RoundsOf(const WorkerOutcome& worker) {
    std::vector<std::string> rounds;
    for (const json& validated : worker.All("validated")) rounds.push_back(validated["rounds"]);
    return rounds;
  }

  std::string Read(const std::string& path) const {
    std::ifstream file(folder_ + "/" + path, std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    return bytes.str();
  }

  const std::string folder_;
  json spec_;
};

TEST_F(WorkerValidationTest, RankZeroTellsOfEachAndTrainingIsTheSame) {
  const auto validated = RunGroup(Setting("validated"));
  spec_["validation"] = {{"policy", "VALIDATION_POLICY_NONE"}};
  const auto plain = RunGroup(Setting("plain"));

  ASSERT_TRUE(validated[0].ok) << validated[0].error;
  ASSERT_TRUE(plain[0].ok) << plain[0].error;
  EXPECT_THAT(RoundsOf(validated[0]), ElementsAre("5", "10", "15", "20"));
  EXPECT_THAT(RoundsOf(validated[1]), IsEmpty());
  EXPECT_THAT(RoundsOf(plain[0]), IsEmpty());
  EXPECT_TRUE(Read("validated/model.safetensors") == Read("plain/model.safetensors"));
  const json last = validated[0].All("validated").back();
  EXPECT_EQ(last["loss"], validated[0].First("evaluated")["loss"]);
  EXPECT_EQ(last["loss"], plain[0].First("evaluated")["loss"]);
  EXPECT_EQ(last["samples"], "50");
  EXPECT_EQ(last["trainedSamples"], "160");
  EXPECT_EQ(validated[0].First("evaluated")["rounds"], "20");
}

TEST_F(WorkerValidationTest, TheBestIsTheResultToTheLastBit) {
  TrainTooFast();

  const auto group = RunGroup(Setting("best"));

  ASSERT_TRUE(group[0].ok) << group[0].error;
  const json evaluated = group[0].First("evaluated");
  const json finished = group[0].First("finished");
  EXPECT_THAT(finished["reason"].get<std::string>(), HasSubstr("3 validations in a row"));
  EXPECT_EQ(finished["parametersHash"], group[1].First("finished")["parametersHash"]);
  const json last = group[0].All("validated").back();
  EXPECT_EQ(last["sinceBest"], 3);
  EXPECT_EQ(evaluated["rounds"], last["bestRounds"]);
  EXPECT_EQ(evaluated["loss"], last["bestLoss"]);
  EXPECT_LT(evaluated["loss"], last["loss"]);
  // What a job has that ends there.
  spec_.erase("result");
  spec_["stop"] = {{"rounds", evaluated["rounds"]}};
  ASSERT_TRUE(RunGroup(Setting("there"))[0].ok);
  EXPECT_TRUE(Read("best/model.safetensors") == Read("there/model.safetensors"));
}

TEST_F(WorkerValidationTest, TheBestAndThePatienceComeThroughASuspension) {
  TrainTooFast();
  const auto whole = RunGroup(Setting("whole"));
  ASSERT_TRUE(whole[0].ok) << whole[0].error;
  const std::uint64_t best = std::stoull(whole[0].First("evaluated")["rounds"].get<std::string>());
  GroupSetting first = Setting("first");
  first.stop = {{"reason", "paused"}, {"suspend", true}};
  first.stop_after = best + 2;
  ASSERT_TRUE(RunGroup(first)[0].ok);

  GroupSetting second = Setting("second");
  second.checkpoint = folder_ + "/first/checkpoint.safetensors";
  const auto later = RunGroup(second);

  ASSERT_TRUE(later[0].ok) << later[0].error;
  EXPECT_EQ(later[0].First("finished")["reason"], whole[0].First("finished")["reason"]);
  EXPECT_EQ(later[0].First("evaluated"), whole[0].First("evaluated"));
  EXPECT_TRUE(Read("second/model.safetensors") == Read("whole/model.safetensors"));
}

// As of a job whose result was to be the last.
TEST_F(WorkerValidationTest, ABestOneWithoutItsParametersIsNotTheResult) {
  spec_["stop"] = {{"rounds", "300"}};
  GroupSetting first = Setting("first");
  first.stop = {{"reason", "paused"}, {"suspend", true}};
  first.stop_after = 8;
  ASSERT_TRUE(RunGroup(first)[0].ok);
  spec_["result"] = "RESULT_CHOICE_BEST";
  spec_["optimizer"]["sgd"]["learningRate"] = 1.0;  // from here on all is worse
  spec_["optimizer"]["clipNorm"] = 1.0;
  spec_["stop"] = {{"rounds", "30"}};

  GroupSetting second = Setting("second");
  second.checkpoint = folder_ + "/first/checkpoint.safetensors";
  const auto later = RunGroup(second);

  ASSERT_TRUE(later[0].ok) << later[0].error;
  std::vector<double> losses;
  for (const json& validated : later[0].All("validated")) {
    if (validated["loss"].is_number()) losses.push_back(validated["loss"]);
  }
  ASSERT_FALSE(losses.empty());
  EXPECT_EQ(later[0].First("evaluated")["loss"], *std::ranges::min_element(losses));
}

TEST_F(WorkerValidationTest, WithoutASampleTheFieldThatAsksForOneIsToBlame) {
  spec_["data"]["validationFraction"] = 0.0;

  const auto group = RunGroup(Setting("out"));

  EXPECT_FALSE(group[0].ok);
  EXPECT_EQ(group[0].First("failed")["field"], "validation");
  EXPECT_THAT(group[0].error, HasSubstr("found no validation sample"));
  EXPECT_EQ(group[0].First("failed")["transient"], false);
}

}  // namespace
}  // namespace tactus::torchscript
