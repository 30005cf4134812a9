// Copies of the parameters that are written beside training.

#include "agent/worker/snapshots.h"

#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "cuda/device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/agent/torchscript/group_of_workers.h"

namespace tactus::torchscript {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

std::string Bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

class SnapshotsTest : public testing::Test {
 protected:
  SnapshotsTest() : folder_(MakeFolder("snapshots")) {
    std::filesystem::create_directories(folder_ + "/snapshots");
    auto opened = model::Model::Open(
        {.builtin = "bytes-lm", .width = 8, .heads = 1, .layers = 1, .context = 4});
    EXPECT_TRUE(opened.ok()) << opened.status();
    model_ = *std::move(opened);
    parameters_ = device_->Allocate(cuda::FlatLength(model_->segments()));
    losses_ = device_->AllocateSums(1);
    model_->Bind(parameters_.span(), losses_.span());
  }
  ~SnapshotsTest() override { std::filesystem::remove_all(folder_); }

  std::string PathAt(const char* seconds) const {
    return folder_ + "/snapshots/" + seconds + ".safetensors";
  }

  worker::Snapshots::Copy Copy() const {
    return [this](tensors::TensorsCopy& copy) { return model_->CopyTensors(copy); };
  }

  // What SaveSafetensors makes of the present parameters.
  std::string Present() const {
    EXPECT_TRUE(model_->SaveSafetensors(folder_ + "/present").ok());
    return Bytes(folder_ + "/present");
  }

  const std::string folder_;
  const std::unique_ptr<cuda::Device> device_ = cuda::MakeHostDevice("cpu:0");
  cuda::Buffer parameters_;
  cuda::Sums losses_;
  std::unique_ptr<model::Model> model_;
  worker::WriterThread thread_;
};

TEST_F(SnapshotsTest, OneIsWhatTheParametersWereHoweverLongItsDiskTakes) {
  // Whoever opens it to write waits for a reader.
  ASSERT_EQ(::mkfifo((PathAt("0.000") + ".partial").c_str(), 0600), 0);
  worker::Snapshots snapshots({.directory = folder_, .every = Seconds(1)}, thread_);
  const std::string before = Present();

  snapshots.AtEdge(Copy(), Seconds(0));
  parameters_.span().front() += 1;
  snapshots.AtEdge(Copy(), Seconds(5));

  EXPECT_EQ(Bytes(PathAt("0.000") + ".partial"), before);
  EXPECT_NE(Present(), before);
  EXPECT_THAT(snapshots.Finish(), IsEmpty()) << "no pipe is ever on the disk";
  EXPECT_FALSE(std::filesystem::exists(PathAt("5.000"))) << "the former one was being written";
}

TEST_F(SnapshotsTest, ThatWhichFindsTheThreadAtWorkIsTakenWhenItHasTime) {
  std::promise<void> written;
  thread_.Begin([&written] { written.get_future().wait(); });
  worker::Snapshots snapshots({.directory = folder_, .every = Seconds(2)}, thread_);

  snapshots.AtEdge(Copy(), Seconds(0));
  snapshots.AtEdge(Copy(), Seconds(3));
  written.set_value();
  thread_.Wait();
  parameters_.span().front() += 1;
  const std::string later = Present();
  snapshots.AtEdge(Copy(), Seconds(5));
  thread_.Wait();
  snapshots.AtEdge(Copy(), Seconds(5.5));  // not due: the next is at 6 s
  snapshots.AtEdge(Copy(), Seconds(6));

  EXPECT_THAT(snapshots.Finish(),
              ElementsAre("snapshots/5.000.safetensors", "snapshots/6.000.safetensors"));
  EXPECT_EQ(Bytes(PathAt("5.000")), later);
}

TEST_F(SnapshotsTest, TheFirstThatCannotBeWrittenIsTheLast) {
  std::filesystem::create_symlink("/dev/full", PathAt("1.000") + ".partial");
  worker::Snapshots snapshots({.directory = folder_, .every = Seconds(1)}, thread_);

  for (const double seconds : {0.0, 1.0, 2.0, 3.0}) {
    snapshots.AtEdge(Copy(), Seconds(seconds));
    thread_.Wait();
  }

  EXPECT_THAT(snapshots.Finish(), ElementsAre("snapshots/0.000.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(PathAt("1.000")));
  EXPECT_FALSE(std::filesystem::exists(PathAt("2.000")));
}

TEST_F(SnapshotsTest, EachIsSaidAtTheFirstEdgeAtWhichItIsWhole) {
  std::vector<std::string> said;
  worker::Snapshots snapshots({.directory = folder_,
                               .every = Seconds(10),
                               .taken = [&](const std::string& name) { said.push_back(name); }},
                              thread_);
  snapshots.AtEdge(Copy(), Seconds(0));
  EXPECT_THAT(said, IsEmpty());
  thread_.Wait();
  std::promise<void> written;
  thread_.Begin([&written] { written.get_future().wait(); });  // another's

  snapshots.AtEdge(Copy(), Seconds(1));

  EXPECT_THAT(said, ElementsAre("snapshots/0.000.safetensors"));
  written.set_value();
  thread_.Wait();
}

TEST_F(SnapshotsTest, TheirEndWaitsForNobodyElsesFile) {
  worker::Snapshots snapshots({.directory = folder_, .every = Seconds(1)}, thread_);
  snapshots.AtEdge(Copy(), Seconds(0));
  thread_.Wait();
  std::promise<void> written;
  thread_.Begin([&written] { written.get_future().wait(); });

  auto names = std::async(std::launch::async, [&] { return snapshots.Finish(); });

  EXPECT_EQ(names.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  written.set_value();
  thread_.Wait();
  EXPECT_THAT(names.get(), ElementsAre("snapshots/0.000.safetensors"));
}

TEST_F(SnapshotsTest, WhatIsWholeWhenTrainingEndsIsSaidAndWhatIsNotIsNot) {
  std::vector<std::string> said;
  const worker::Snapshots::Options options = {
      .directory = folder_, .every = Seconds(1), .taken = [&](const std::string& name) {
        said.push_back(name);
      }};
  {
    worker::Snapshots snapshots(options, thread_);
    snapshots.AtEdge(Copy(), Seconds(0));
    thread_.Wait();
  }
  EXPECT_THAT(said, ElementsAre("snapshots/0.000.safetensors"));

  std::filesystem::create_symlink("/dev/full", PathAt("1.000") + ".partial");
  {
    worker::Snapshots snapshots(options, thread_);
    snapshots.AtEdge(Copy(), Seconds(1));
  }
  EXPECT_THAT(said, ElementsAre("snapshots/0.000.safetensors"));
}

TEST_F(SnapshotsTest, AnErrorOfTheLastOneIsToldWhenTrainingEnds) {
  std::filesystem::create_symlink("/dev/full", PathAt("1.000") + ".partial");
  testing::internal::CaptureStderr();
  {
    worker::Snapshots snapshots({.directory = folder_, .every = Seconds(1)}, thread_);
    snapshots.AtEdge(Copy(), Seconds(1));
    thread_.Wait();
  }
  EXPECT_NE(testing::internal::GetCapturedStderr(), "");
}

TEST_F(SnapshotsTest, WithoutThemThereAreNone) {
  worker::Snapshots snapshots({.directory = folder_}, thread_);

  snapshots.AtEdge(Copy(), Seconds(1));

  EXPECT_TRUE(thread_.idle());
  EXPECT_THAT(snapshots.Finish(), IsEmpty());
}

// Beside the checkpoints, which have the thread first.
TEST_F(SnapshotsTest, ThoseOfAJobAreNamedInItsResult) {
  json spec = TinySpec(WriteCorpus(folder_, 40000));
  spec["stop"] = {{"rounds", "400"}};
  spec["checkpoints"] = {{"every", "0.01s"}};
  spec["snapshots"] = {{"every", "0.000000001s"}};

  const auto group = RunGroup(
      {.spec = spec, .batch_sizes = {5, 3}, .output_directory = folder_, .loss_seconds = 86400});

  ASSERT_TRUE(group[0].ok) << group[0].error;
  const json finished = group[0].First("finished");
  std::vector<std::string> named;
  for (const json& file : finished["files"]) {
    const auto name = file.get<std::string>();
    if (!name.starts_with("snapshots/")) continue;
    named.push_back(name);
    EXPECT_EQ(Bytes(folder_ + "/" + name).size(), Bytes(folder_ + "/model.safetensors").size());
  }
  EXPECT_GE(named.size(), 2u);
  std::vector<std::string> there;
  for (const auto& file : std::filesystem::directory_iterator(folder_ + "/snapshots")) {
    there.push_back("snapshots/" + file.path().filename().string());
  }
  EXPECT_THAT(there, testing::UnorderedElementsAreArray(named));
  std::vector<std::string> said;
  for (const json& message : group[0].All("snapshotted")) said.push_back(message["file"]);
  EXPECT_EQ(said, named);
  const auto checkpoints = group[0].All("checkpointed");
  ASSERT_FALSE(checkpoints.empty()) << "snapshots took the thread from them";
  EXPECT_LT(std::stoll(checkpoints[0]["rounds"].get<std::string>()), 400)
      << "only the one of the end had it";
  EXPECT_THAT(group[1].First("finished")["files"], IsEmpty());
}

}  // namespace
}  // namespace tactus::torchscript
