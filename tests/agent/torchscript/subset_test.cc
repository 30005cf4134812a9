// Workers that train on a part of their samples, which they choose together.

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
using testing::IsEmpty;
using testing::StartsWith;

class WorkerSubsetTest : public testing::Test {
 protected:
  WorkerSubsetTest() : folder_(MakeFolder("subset")), spec_(TinySpec(WriteCorpus(folder_, 8000))) {
    spec_["data"]["subset"] = {{"craig", {{"fraction", 0.25}, {"epochs", 2}}}};
    spec_["stop"] = {{"epochs", 5}};
  }
  ~WorkerSubsetTest() override { std::filesystem::remove_all(folder_); }

  GroupSetting Setting(const std::string& out,
                       std::vector<std::uint32_t> batch_sizes = {5, 3}) const {
    std::filesystem::create_directories(folder_ + "/" + out);
    return {.spec = spec_,
            .batch_sizes = std::move(batch_sizes),
            .output_directory = folder_ + "/" + out};
  }

  std::string Weights(const std::string& out) const {
    std::ifstream file(folder_ + "/" + out + "/model.safetensors", std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    return bytes.str();
  }

  static std::uint64_t Number(const json& text) { return std::stoull(text.get<std::string>()); }

  const std::string folder_;
  json spec_;
};

TEST_F(WorkerSubsetTest, TheyChooseTogetherTellAndAgreeOnTheResult) {
  const auto group = RunGroup(Setting("craig"));

  ASSERT_TRUE(group[0].ok) << group[0].error;
  ASSERT_TRUE(group[1].ok) << group[1].error;
  const std::vector<json> told = group[0].All("selected");
  ASSERT_EQ(told.size(), 3u);
  EXPECT_THAT(group[1].All("selected"), IsEmpty());
  EXPECT_EQ(told[2]["number"], "3");
  EXPECT_EQ(told[2]["epoch"], "4");
  EXPECT_THAT(told[0]["facts"].get<std::string>(),
              AllOf(HasSubstr(" samples, 25.1 % of them"), HasSubstr(" s (gradients ")));
  const json finished = group[0].First("finished");
  EXPECT_EQ(finished["parametersHash"], group[1].First("finished")["parametersHash"]);
  // Epochs are of the subset.
  const std::uint64_t epoch = Number(group[0].First("ready")["trainSamples"]);
  EXPECT_EQ(Number(finished["samplesGlobal"]), 5 * epoch);
  spec_["data"].erase("subset");
  spec_["stop"] = {{"rounds", "1"}};
  const std::uint64_t all = Number(RunGroup(Setting("all"))[0].First("ready")["trainSamples"]);
  EXPECT_NEAR(static_cast<double>(epoch), static_cast<double>(all) / 4, 0.5);
}

TEST_F(WorkerSubsetTest, ASuspendedJobGoesOnWithTheSubsetBitForBit) {
  ASSERT_TRUE(RunGroup(Setting("whole"))[0].ok);
  GroupSetting first = Setting("first");
  first.stop = {{"reason", "paused"}, {"suspend", true}};
  first.stop_after = 4;
  ASSERT_TRUE(RunGroup(first)[0].ok);

  GroupSetting second = Setting("second");
  second.checkpoint = folder_ + "/first/checkpoint.safetensors";
  const auto later = RunGroup(second);

  ASSERT_TRUE(later[0].ok) << later[0].error;
  EXPECT_TRUE(Weights("second") == Weights("whole"));
}

TEST_F(WorkerSubsetTest, AllOfTheSamplesTrainAsIfThereWereNoSubset) {
  spec_["data"]["subset"]["craig"]["fraction"] = 1;
  ASSERT_TRUE(RunGroup(Setting("craig"))[0].ok);
  spec_["data"].erase("subset");
  ASSERT_TRUE(RunGroup(Setting("plain"))[0].ok);

  EXPECT_TRUE(Weights("craig") == Weights("plain"));
}

TEST_F(WorkerSubsetTest, ADrawnOneNeedsNoPass) {
  spec_["data"]["subset"] = {{"random", {{"fraction", 0.5}, {"epochs", 1}}}};

  const auto group = RunGroup(Setting("random"));

  ASSERT_TRUE(group[0].ok) << group[0].error;
  EXPECT_EQ(group[0].All("selected").size(), 5u);
  EXPECT_THAT(group[0].First("selected")["facts"].get<std::string>(), HasSubstr(", drawn"));
}

TEST_F(WorkerSubsetTest, WindowsAndOverlappingRoundsGoWithIt) {
  for (const char* synchronization : {"periodic", "delayed"}) {
    GroupSetting setting = Setting(synchronization);
    setting.synchronization = synchronization;

    const auto group = RunGroup(setting);

    ASSERT_TRUE(group[0].ok) << synchronization << ": " << group[0].error;
    EXPECT_EQ(group[0].First("finished")["parametersHash"],
              group[1].First("finished")["parametersHash"]);
    EXPECT_EQ(group[0].All("selected").size(), 3u) << synchronization;
  }
}

TEST_F(WorkerSubsetTest, InputsThatAreNoNumbersTellNothingApart) {
  spec_["data"]["subset"]["craig"]["proxy"] = "SUBSET_PROXY_INPUTS";

  const auto group = RunGroup(Setting("inputs", {4}));

  EXPECT_FALSE(group[0].ok);
  EXPECT_THAT(group[0].error, StartsWith("found inputs"));
  EXPECT_EQ(group[0].First("failed")["field"], "data.subset.craig.proxy");
}

}  // namespace
}  // namespace tactus::torchscript
