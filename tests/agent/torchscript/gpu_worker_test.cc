// Whole workers on GPUs against the same on the host: model, reader, engine, device and, where
// there are two GPUs, NCCL. Skipped where there is none.

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "cuda/device.h"
#include "gtest/gtest.h"
#include "tests/agent/torchscript/group_of_workers.h"

namespace tactus::torchscript {
namespace {

using nlohmann::json;

class GpuWorkerTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const cuda::OpenedDevice opened = cuda::OpenDevice("cuda:0");
    if (opened.device != nullptr) return;
    ASSERT_EQ(std::getenv("TACTUS_REQUIRE_GPU"), nullptr) << opened.reason;
    GTEST_SKIP() << opened.reason;
  }

  void TearDown() override { std::filesystem::remove_all(folder_); }

  // What the workers say at the end, on these devices; empty: the host's.
  std::vector<WorkerOutcome> Train(const std::vector<std::string>& devices,
                                   std::vector<std::uint32_t> batch_sizes) {
    json spec = TinySpec(WriteCorpus(folder_, 4096));
    spec["stop"] = {{"rounds", "10"}};
    spec["adapt"] = {{"batch", {{"microBatch", 4}}}};
    if (GetParam() == "lamb") spec["optimizer"] = {{"lamb", {{"learningRate", 0.01}}}};
    if (GetParam() == "adam") spec["optimizer"] = {{"adam", {{"learningRate", 0.001}}}};
    return RunGroup({.spec = spec,
                     .batch_sizes = std::move(batch_sizes),
                     .devices = devices,
                     .output_directory = folder_});
  }

  // float32 in another order, and TF32 where libtorch chooses it, ten steps on.
  void ExpectAlike(const std::vector<WorkerOutcome>& found,
                   const std::vector<WorkerOutcome>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t rank = 0; rank < found.size(); ++rank) {
      ASSERT_TRUE(found[rank].ok) << found[rank].error;
      ASSERT_TRUE(expected[rank].ok) << expected[rank].error;
      const auto reports = found[rank].All("report");
      const auto wanted = expected[rank].All("report");
      ASSERT_EQ(reports.size(), wanted.size());
      for (std::size_t i = 0; i < reports.size(); ++i) {
        const double loss = wanted[i]["lossMeanGlobal"];
        EXPECT_NEAR(reports[i]["lossMeanGlobal"].get<double>(), loss, 0.01 * loss) << i;
      }
      EXPECT_EQ(found[rank].First("finished")["parametersHash"],
                found[0].First("finished")["parametersHash"]);
    }
  }

  const std::string folder_ = MakeFolder("gpu_worker");
};

TEST_P(GpuWorkerTest, TrainsAsTheHostDoes) {
  ExpectAlike(Train({"cuda:0"}, {16}), Train({}, {16}));
}

// Of two GPUs. A machine with one skips it, whatever it requires.
class GpuPairWorkerTest : public GpuWorkerTest {
 protected:
  void SetUp() override {
    const cuda::OpenedDevice second = cuda::OpenDevice("cuda:1");
    if (second.device == nullptr) GTEST_SKIP() << second.reason;
  }
};

TEST_P(GpuPairWorkerTest, TrainsAsTheHostDoes) {
  ExpectAlike(Train({"cuda:0", "cuda:1"}, {12, 4}), Train({}, {12, 4}));
}

const auto kOptimizers = testing::Values("sgd", "adam", "lamb");
INSTANTIATE_TEST_SUITE_P(Optimizers, GpuWorkerTest, kOptimizers,
                         [](const auto& test) { return test.param; });
INSTANTIATE_TEST_SUITE_P(Optimizers, GpuPairWorkerTest, kOptimizers,
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tactus::torchscript
