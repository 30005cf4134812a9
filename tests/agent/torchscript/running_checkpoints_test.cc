// Checkpoints that workers take while they train.

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "agent/tensors/atomic_file.h"
#include "agent/worker/checkpoint_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/torchscript/group_of_workers.h"

namespace tactus::torchscript {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class RunningCheckpointsTest : public testing::Test {
 protected:
  RunningCheckpointsTest()
      : folder_(MakeFolder("running_checkpoints")), spec_(TinySpec(WriteCorpus(folder_, 40000))) {
    spec_["stop"] = {{"rounds", "400"}};
    spec_["optimizer"] = {{"adam", {{"learningRate", 0.001}}}};
    spec_["checkpoints"] = {{"every", "0.000000001s"}};  // whenever one can be
  }
  ~RunningCheckpointsTest() override { std::filesystem::remove_all(folder_); }

  GroupSetting Setting(const std::string& out, double loss_seconds = 86400) const {
    std::filesystem::create_directories(folder_ + "/" + out);
    return {.spec = spec_,
            .batch_sizes = {5, 3},
            .output_directory = folder_ + "/" + out,
            .loss_seconds = loss_seconds};
  }

  const std::string folder_;
  json spec_;
};

TEST_F(RunningCheckpointsTest, EachIsToldOfByRankZeroAndGoesOnBitForBit) {
  const auto whole = RunGroup(Setting("whole"));

  ASSERT_TRUE(whole[0].ok) << whole[0].error;
  const std::vector<json> told = whole[0].All("checkpointed");
  ASSERT_GE(told.size(), 2u);
  EXPECT_TRUE(whole[1].All("checkpointed").empty());
  for (const json& one : {told.front(), told.back()}) {
    SCOPED_TRACE(one.dump());
    const std::string rounds = one["rounds"].get<std::string>();
    EXPECT_EQ(one["file"], "checkpoints/1-" + rounds + ".safetensors");
    EXPECT_EQ(one["generation"], "1");
    EXPECT_GT(one["stillSeconds"].get<double>(), 0);
    EXPECT_GT(one["writeSeconds"].get<double>(), 0);
    GroupSetting setting = Setting("on" + rounds, 0);
    setting.checkpoint = folder_ + "/whole/" + one["file"].get<std::string>();

    const auto on = RunGroup(setting);

    ASSERT_TRUE(on[0].ok) << on[0].error;
    EXPECT_TRUE(on[0].All("checkpointed").empty()) << "nobody wants them";
    const json finished = on[0].First("finished");
    const std::vector<json> reports = on[0].All("report");
    // That of the last round may have been written in time, too.
    EXPECT_EQ(reports.empty(), finished["rounds"] == rounds);
    EXPECT_EQ(reports.empty() ? rounds : reports.front()["round"].get<std::string>(), rounds);
    EXPECT_EQ(finished["parametersHash"], whole[0].First("finished")["parametersHash"]);
    EXPECT_EQ(finished["samplesGlobal"], whole[0].First("finished")["samplesGlobal"]);
  }
}

TEST_F(RunningCheckpointsTest, ThatOfTheEndIsWrittenBesideTheEvaluationAndOnlyThatIsLeftToDo) {
  // So much to evaluate that the disk has time.
  spec_ = TinySpec(WriteCorpus(folder_, 6'000'000));
  spec_["data"]["validationSamplesMax"] = "30000";
  spec_["stop"] = {{"rounds", "30"}};
  spec_["checkpoints"] = {{"every", "3600s"}};

  const auto whole = RunGroup(Setting("whole"));

  ASSERT_TRUE(whole[0].ok) << whole[0].error;
  const std::vector<json> told = whole[0].All("checkpointed");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0]["rounds"], "30");
  GroupSetting setting = Setting("on");
  setting.checkpoint = folder_ + "/whole/" + told[0]["file"].get<std::string>();
  const auto on = RunGroup(setting);
  ASSERT_TRUE(on[0].ok) << on[0].error;
  EXPECT_TRUE(on[0].All("report").empty());
  EXPECT_TRUE(on[0].All("checkpointed").empty()) << "there is nothing new";
  const json finished = on[0].First("finished");
  EXPECT_EQ(finished["rounds"], "30");
  EXPECT_EQ(finished["reason"], whole[0].First("finished")["reason"]);
  EXPECT_EQ(finished["parametersHash"], whole[0].First("finished")["parametersHash"]);
  EXPECT_EQ(on[0].First("evaluated"), whole[0].First("evaluated"));
}

TEST_F(RunningCheckpointsTest, OfAnEndThatWasAskedForThereIsNone) {
  spec_["checkpoints"] = {{"every", "3600s"}};
  spec_["stop"] = {{"rounds", "1000000"}};
  GroupSetting setting = Setting("asked");
  setting.stop = {{"reason", "the test"}};
  setting.stop_after = 20;

  const auto group = RunGroup(setting);

  ASSERT_TRUE(group[0].ok) << group[0].error;
  EXPECT_TRUE(group[0].All("checkpointed").empty());
  EXPECT_FALSE(std::filesystem::exists(setting.output_directory + "/checkpoints"));
}

TEST_F(RunningCheckpointsTest, WhatIsNotWrittenWhenTheResultIsThereIsGivenUp) {
  spec_["checkpoints"] = {{"every", "3600s"}};
  spec_["stop"] = {{"rounds", "20"}};
  const GroupSetting setting = Setting("short");

  const auto group = RunGroup(setting);

  ASSERT_TRUE(group[0].ok) << group[0].error;
  const std::size_t told = group[0].All("checkpointed").size();
  std::size_t left = 0;
  for ([[maybe_unused]] const auto& file :
       std::filesystem::directory_iterator(setting.output_directory + "/checkpoints")) {
    ++left;
  }
  EXPECT_EQ(left, told);
}

TEST_F(RunningCheckpointsTest, TrainingGoesOnWhereNoneCanBeWritten) {
  GroupSetting setting = Setting("blocked");
  std::ofstream(setting.output_directory + "/checkpoints") << "a file in its place";

  const auto group = RunGroup(setting);

  ASSERT_TRUE(group[0].ok) << group[0].error;
  EXPECT_TRUE(group[0].All("checkpointed").empty());
  EXPECT_EQ(group[0].First("finished")["rounds"], "400");
}

TEST_F(RunningCheckpointsTest, AFullDiskCostsThatCheckpointAlone) {
  std::filesystem::create_directories(folder_ + "/checkpoints");
  std::filesystem::create_symlink("/dev/full", folder_ + "/checkpoints/2-7.safetensors.partial");
  worker::WriterThread thread;
  worker::CheckpointWriter writer(thread, folder_, {});
  writer.checkpoint().buffers = {1, 2, 3};

  writer.Write({.generation = 2, .rounds = 7});
  const auto full = writer.Wait();
  ASSERT_TRUE(writer.idle());
  writer.Write({.generation = 2, .rounds = 8});
  const auto after = writer.Wait();

  ASSERT_TRUE(full.has_value());
  EXPECT_TRUE(absl::IsResourceExhausted(full->status())) << full->status();
  EXPECT_THAT(std::string(full->status().message()), HasSubstr("2-7.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/checkpoints/2-7.safetensors"));
  ASSERT_TRUE(after.has_value());
  ASSERT_TRUE(after->ok()) << after->status();
  EXPECT_EQ((**after).file, "checkpoints/2-8.safetensors");
}

TEST_F(RunningCheckpointsTest, WhatIsBeingWrittenCanBeGivenUp) {
  worker::WriterThread thread;
  worker::CheckpointWriter writer(thread, folder_, {});
  // Of several pieces, so that the end of one is before the end of the file.
  writer.checkpoint().buffers.resize(3 * tensors::AtomicFile::kPieceBytes / sizeof(float));
  writer.Write({.generation = 2, .rounds = 7});

  const auto written = writer.Abandon();

  ASSERT_TRUE(written.has_value());
  EXPECT_TRUE(written->ok() || absl::IsCancelled(written->status())) << written->status();
  const std::string file = folder_ + "/checkpoints/2-7.safetensors";
  EXPECT_EQ(std::filesystem::exists(file), written->ok());
  EXPECT_FALSE(std::filesystem::exists(file + ".partial"));
  EXPECT_TRUE(writer.idle());
  writer.Write({.generation = 2, .rounds = 8});
  const auto after = writer.Wait();
  ASSERT_TRUE(after.has_value());
  EXPECT_TRUE(absl::IsCancelled(after->status())) << after->status();
}

TEST_F(RunningCheckpointsTest, AFileThatChangedIsFoundOutAsItIsReadBack) {
  worker::WriterThread thread;
  worker::CheckpointWriter writer(thread, folder_, {});
  writer.checkpoint().buffers = {1, 2, 3};
  writer.Write({.generation = 2, .rounds = 7});
  const auto written = writer.Wait();
  ASSERT_TRUE(written.has_value());
  ASSERT_TRUE(written->ok()) << written->status();
  EXPECT_TRUE(writer.idle());
  const std::string path = folder_ + "/checkpoints/2-7.safetensors";
  ASSERT_TRUE(worker::CheckCheckpoint(path).ok());

  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file.put('x');
  file.close();

  EXPECT_FALSE(worker::CheckCheckpoint(path).ok());
}

}  // namespace
}  // namespace tactus::torchscript
