#include "agent/worker/worker.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "agent/engine/combine/encodings.h"
#include "gtest/gtest.h"
#include "tests/agent/torchscript/group_of_workers.h"

namespace tactus::torchscript {
namespace {

using nlohmann::json;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The tensors of a safetensors file, as one array of floats.
std::vector<float> Weights(const std::string& path) {
  const std::string bytes = ReadFile(path);
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof(header));
  std::vector<float> values((bytes.size() - 8 - header) / sizeof(float));
  std::memcpy(values.data(), bytes.data() + 8 + header, values.size() * sizeof(float));
  return values;
}

class WorkerTest : public testing::Test {
 protected:
  WorkerTest() : folder_(MakeFolder("worker")), spec_(TinySpec(WriteCorpus(folder_, 40000))) {}
  ~WorkerTest() override { std::filesystem::remove_all(folder_); }

  std::vector<WorkerOutcome> Run(std::vector<std::uint32_t> batch_sizes, const std::string& out) {
    std::filesystem::create_directories(folder_ + "/" + out);
    return RunGroup({.spec = spec_,
                     .batch_sizes = std::move(batch_sizes),
                     .output_directory = folder_ + "/" + out});
  }

  std::string folder_;
  json spec_;
};

TEST_F(WorkerTest, TrainsEvaluatesAndWritesTheResult) {
  const auto group = Run({8, 8}, "out");

  for (const WorkerOutcome& worker : group) {
    ASSERT_TRUE(worker.ok) << worker.error;
    EXPECT_EQ(worker.All("report").size(), 20u);
    EXPECT_EQ(worker.First("finished")["reason"], "20 rounds completed");
    EXPECT_EQ(worker.First("finished")["parametersHash"],
              group[0].First("finished")["parametersHash"]);
  }
  const json evaluated = group[0].First("evaluated");
  EXPECT_TRUE(group[1].First("evaluated").is_null());
  EXPECT_GT(evaluated["loss"], 0.5);
  EXPECT_LT(evaluated["loss"], std::log(256.0));
  const json first = group[0].All("report").front();
  EXPECT_NEAR(first["lossMeanGlobal"], std::log(256.0), 0.3);
  EXPECT_GT(first["updateSeconds"], 0);
  EXPECT_LT(first["updateSeconds"], group[0].First("finished")["trainSeconds"]);
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/out/model.pt"));
  const json summary = json::parse(ReadFile(folder_ + "/out/summary.json"));
  EXPECT_EQ(summary["rounds"], 20);
  EXPECT_EQ(summary["samples"], 320);
  EXPECT_EQ(summary["validation"]["loss"], evaluated["loss"]);
}

// The last two are applied in one step, and are reported together.
TEST_F(WorkerTest, InAStagedGroupItTrainsAsByTcp) {
  std::vector<json> hashes;
  for (const std::string transport : {"tcp", "staged"}) {
    const auto group = RunGroup({.spec = spec_,
                                 .batch_sizes = {8, 4, 8},
                                 .transport = transport,
                                 .output_directory = folder_});
    for (const WorkerOutcome& worker : group) {
      ASSERT_TRUE(worker.ok) << worker.error;
      EXPECT_EQ(worker.First("ready")["ncclVersion"], "");
      EXPECT_EQ(worker.First("ready")["encodings"], json(policies::kEncodingNames));
      hashes.push_back(worker.First("finished")["parametersHash"]);
    }
  }
  EXPECT_EQ(hashes, std::vector<json>(6, hashes[0]));
}

TEST_F(WorkerTest, ToldToGoWhileItLoadsItEndsWithoutAWord) {
  const auto group = RunGroup({.spec = spec_, .batch_sizes = {8}, .discarded_at_once = true});

  EXPECT_TRUE(group[0].ok) << group[0].error;
  EXPECT_TRUE(group[0].lines.empty());
}

TEST_F(WorkerTest, OnAProcessorItRefusesAGroupOfNccl) {
  const auto group = RunGroup({.spec = spec_, .batch_sizes = {8}, .transport = "nccl"});

  EXPECT_FALSE(group[0].ok);
  EXPECT_NE(group[0].error.find("NCCL joins GPUs alone, and this worker is on cpu:0"),
            std::string::npos)
      << group[0].error;
}

TEST_F(WorkerTest, EachDelayedRoundHasTheTimeBehindItsOwnEnd) {
  const auto group = RunGroup({.spec = spec_,
                               .batch_sizes = {8, 8},
                               .synchronization = "delayed",
                               .output_directory = folder_ + "/out"});

  ASSERT_TRUE(group[0].ok) << group[0].error;
  const std::vector<json> reports = group[0].All("report");
  ASSERT_EQ(reports.size(), 20u);
  for (const json& report : reports) EXPECT_GT(report["updateSeconds"], 0) << report["round"];
  for (const json& report : reports) {
    EXPECT_GT(report["dataSeconds"], 0) << report["round"];
    EXPECT_LT(report["dataSeconds"], report["computeSeconds"]) << report["round"];
  }
}

TEST_F(WorkerTest, TheSameSeedGivesTheSameBytes) {
  ASSERT_TRUE(Run({5, 3}, "first")[0].ok);
  ASSERT_TRUE(Run({5, 3}, "second")[0].ok);

  const std::string first = ReadFile(folder_ + "/first/model.safetensors");
  EXPECT_GT(first.size(), 1000u);
  EXPECT_TRUE(first == ReadFile(folder_ + "/second/model.safetensors"));
}

struct Rule {
  std::string name;
  json optimizer;
};

class WorkerRuleTest : public WorkerTest, public testing::WithParamInterface<Rule> {};

// Float32 sums in another order: relative to the largest weight, as one round after another adds
// up.
TEST_P(WorkerRuleTest, UnequalBatchesGiveWhatOneProcessGives) {
  spec_["optimizer"] = GetParam().optimizer;
  spec_["stop"] = {{"rounds", "1"}};

  ASSERT_TRUE(Run({7, 5, 3, 1}, "four")[0].ok);
  ASSERT_TRUE(Run({16}, "one")[0].ok);

  const std::vector<float> four = Weights(folder_ + "/four/model.safetensors");
  const std::vector<float> one = Weights(folder_ + "/one/model.safetensors");
  ASSERT_EQ(four.size(), one.size());
  double difference = 0;
  double scale = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    difference = std::max(difference, std::abs(static_cast<double>(four[i]) - one[i]));
    scale = std::max(scale, std::abs(static_cast<double>(one[i])));
  }
  EXPECT_LT(difference / scale, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WorkerRuleTest,
    testing::Values(
        Rule{"Sgd", {{"sgd", {{"learningRate", 0.1}}}}},
        Rule{"SgdClipped", {{"sgd", {{"learningRate", 0.1}}}, {"clipNorm", 0.1}}},
        Rule{"Momentum", {{"sgd", {{"learningRate", 0.1}, {"momentum", 0.9}}}}},
        Rule{"MomentumClipped",
             {{"sgd", {{"learningRate", 0.1}, {"momentum", 0.9}}}, {"clipNorm", 0.1}}},
        // epsilon: with 1e-8 Adam's first step is the sign of gradients that are zero up to
        // rounding.
        Rule{"Adam", {{"adam", {{"learningRate", 0.001}, {"epsilon", 1e-4}}}}},
        Rule{"AdamClipped",
             {{"adam", {{"learningRate", 0.001}, {"epsilon", 1e-4}}}, {"clipNorm", 0.1}}},
        Rule{"AdamW", {{"adamw", {{"learningRate", 0.001}, {"epsilon", 1e-4}}}}},
        Rule{"AdamWClipped",
             {{"adamw", {{"learningRate", 0.001}, {"epsilon", 1e-4}}}, {"clipNorm", 0.1}}}),
    [](const auto& rule) { return rule.param.name; });

TEST_F(WorkerTest, AnEpochOverTwoWorkersCountsEverySampleOnce) {
  spec_["stop"] = {{"epochs", 2}};

  const auto group = Run({9, 4}, "out");

  ASSERT_TRUE(group[0].ok) << group[0].error;
  const std::uint64_t train =
      std::stoull(group[0].First("ready")["trainSamples"].get<std::string>());
  EXPECT_EQ(group[0].First("finished")["samplesGlobal"], std::to_string(2 * train));
  EXPECT_EQ(group[0].First("finished")["epochs"], "2");
}

TEST_F(WorkerTest, WhatIsWrongIsToldWithItsField) {
  spec_["data"]["text"] = folder_ + "/missing.txt";
  const auto missing = Run({4}, "out");
  EXPECT_EQ(missing[0].First("failed")["field"], "data.text");
  EXPECT_FALSE(missing[0].ok);

  spec_["data"] = {{"text", folder_ + "/corpus.txt"}};
  spec_["model"] = {{"torchscript", folder_ + "/corpus.txt"}};
  EXPECT_EQ(Run({4}, "out")[0].First("failed")["field"], "model.torchscript");

  spec_["model"] = {{"builtin", "cifar-cnn"}};
  const auto unfit = Run({4}, "out");
  EXPECT_EQ(unfit[0].First("failed")["field"], "data");
  EXPECT_TRUE(unfit[0].First("ready").is_null());
}

TEST_F(WorkerTest, EmulatedSpeedsStretchTheMicroBatches) {
  spec_["stop"] = {{"rounds", "30"}};
  const auto group = RunGroup({.spec = spec_,
                               .batch_sizes = {8, 8},
                               .speeds = {1, 0.25},
                               .output_directory = MakeFolder("worker-speeds")});

  double compute[2] = {0, 0};
  for (int rank : {0, 1}) {
    for (const json& report : group[static_cast<std::size_t>(rank)].All("report")) {
      compute[rank] += report["computeSeconds"].get<double>();
    }
  }
  // Not a matter of time but of ratio, and bounded generously: 4 by construction.
  EXPECT_GT(compute[1] / compute[0], 2);
}

}  // namespace
}  // namespace tactus::torchscript
