// The agent with GPUs that the double of NVML describes, between a real gRPC server and real
// processes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "agent/daemon/agent.h"
#include "tests/agent/daemon/await.h"
#include "tests/agent/daemon/fake_coordinator.h"
#include "tests/agent/daemon/nvml_double_library.h"
#include "tests/agent/daemon/programs.h"
#include "tests/support/temporary_folder.h"

namespace tactus::agent {
namespace {

using ::testing::HasSubstr;
using FromAgent = tactus::agent::v1::FromAgent;

constexpr const char* kLost = "the driver lost it";

class AgentGpusTest : public ::testing::Test {
 protected:
  AgentGpusTest() {
    nvml_.Add("GPU-1");
    nvml_.Add("GPU-2");
  }
  ~AgentGpusTest() override {
    Once<bool> stopped;
    control_.RunAndWait([&] { agent_->Stop(Seconds(0), [&] { stopped.Set(true); }); });
    EXPECT_TRUE(stopped.Await().has_value());
    control_.RunAndWait([this] { agent_.reset(); });
    control_.Stop();
    EXPECT_FALSE(nvml_.Started());
  }

  // With a cpu and the GPUs, or as much of them as can be read.
  void Open() {
    std::unique_ptr<cuda::GpuMonitor> monitor = NvmlDoubleLibrary::Open();
    AgentFlags flags;
    flags.coordinator = coordinator_.address();
    flags.devices = {"cpu:0", "gpus"};
    flags.state_folder = folder_.File("state");
    flags.worker_binary = FakeWorker();
    absl::StatusOr<AgentOptions> options =
        Resolve(flags, {.name = "node-1", .gpus = monitor->gpus()});
    ASSERT_TRUE(options.ok()) << options.status();
    absl::StatusOr<std::unique_ptr<Agent>> agent = Agent::Open(control_, metrics_, *options, 77);
    ASSERT_TRUE(agent.ok()) << agent.status();
    agent_ = *std::move(agent);
    control_.RunAndWait([&] {
      agent_->Watch(std::move(monitor), {.look_interval = Seconds(0.02)});
      agent_->Start();
    });
  }

  // What is said of the devices' faults, once it is this.
  bool AwaitFaults(const std::vector<std::pair<std::string, std::string>>& faults) {
    return coordinator_.Await([&](const std::vector<FromAgent>& received) {
      const auto newest = std::find_if(received.rbegin(), received.rend(), [](const auto& message) {
        return message.has_device_faults();
      });
      if (newest == received.rend()) return false;
      std::vector<std::pair<std::string, std::string>> said;
      for (const auto& fault : newest->device_faults().faults()) {
        said.emplace_back(fault.device(), fault.reason());
      }
      return said == faults;
    });
  }

  // What the agent says of the device in the worker's reports, once it is this.
  bool AwaitSlowdown(std::uint64_t worker, const std::string& slowdown) {
    for (int i = 0; i < 500; ++i) {
      coordinator_.SendPlan(worker, ++plan_);
      const FromAgent report = coordinator_.AwaitMessage([&](const FromAgent& message) {
        return message.from_worker().worker_id() == worker &&
               message.from_worker().message().report().plan_version() == plan_;
      });
      if (report.from_worker().message().report().slowdown() == slowdown) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
  }

  std::string AwaitFailure(std::uint64_t worker) {
    return coordinator_
        .AwaitMessage([worker](const FromAgent& message) {
          return message.from_worker().worker_id() == worker &&
                 message.from_worker().message().has_failed();
        })
        .from_worker()
        .message()
        .failed()
        .message();
  }

  TemporaryFolder folder_;
  std::uint64_t plan_ = 0;
  NvmlDoubleLibrary nvml_;
  metrics::AgentMetrics metrics_{"test"};
  runtime::ControlThread control_;
  FakeCoordinator coordinator_{{}};
  std::unique_ptr<Agent> agent_;
};

TEST_F(AgentGpusTest, HelloDescribesTheGpus) {
  Open();

  const FromAgent hello = coordinator_.AwaitHello(1);

  ASSERT_EQ(hello.hello().devices_size(), 3);
  EXPECT_EQ(hello.hello().devices(0).kind(), tactus::v1::DEVICE_KIND_CPU);
  const tactus::v1::Device& gpu = hello.hello().devices(2);
  EXPECT_EQ(gpu.name(), "cuda:1");
  EXPECT_EQ(gpu.kind(), tactus::v1::DEVICE_KIND_CUDA);
  EXPECT_EQ(gpu.uuid(), "GPU-2");
  EXPECT_EQ(gpu.model(), "A model");
  EXPECT_EQ(gpu.memory_bytes(), 80u << 20);
  EXPECT_EQ(gpu.fault(), "");
}

TEST_F(AgentGpusTest, AWorkerIsGivenItsGpuByUuidAlone) {
  Open();

  coordinator_.StartWorker(5, "gpu", "cuda:1");
  coordinator_.StartWorker(6, "gpu", "cpu:0");

  EXPECT_EQ(AwaitFailure(5), "cuda:0 of GPU-2");
  EXPECT_EQ(AwaitFailure(6), "cpu:0 of all");
}

TEST_F(AgentGpusTest, AFaultIsSaidAtOnceAndInEveryHelloAndTakenBack) {
  Open();
  coordinator_.AwaitHello(1);
  nvml_.state.gpus[1].lost = true;
  nvml_.Set();
  EXPECT_TRUE(AwaitFaults({{"cuda:1", kLost}}));

  coordinator_.Drop(0);
  const FromAgent hello = coordinator_.AwaitHello(2);
  ASSERT_EQ(hello.hello().devices_size(), 3);
  EXPECT_EQ(hello.hello().devices(1).fault(), "");
  EXPECT_EQ(hello.hello().devices(2).fault(), kLost);

  nvml_.state.hangs = true;
  nvml_.Set();
  EXPECT_TRUE(AwaitFaults({{"cuda:0", "the driver does not answer"}, {"cuda:1", kLost}}));
  nvml_.state.hangs = false;
  nvml_.Set();
  EXPECT_TRUE(AwaitFaults({{"cuda:1", kLost}}));
}

TEST_F(AgentGpusTest, AGpuThatCannotBeReadFromTheStartGetsNoWorkerAndItsNeighbourDoes) {
  nvml_.state.gpus[0].lost = true;
  nvml_.Set();
  Open();
  const FromAgent hello = coordinator_.AwaitHello(1);
  EXPECT_NE(hello.hello().devices(1).fault(), "");

  coordinator_.StartWorker(5, "gpu", "cuda:0");
  coordinator_.StartWorker(6, "gpu", "cuda:1");

  const FromAgent exited = coordinator_.AwaitMessage(
      [](const FromAgent& message) { return message.worker_exited().worker_id() == 5; });
  EXPECT_EQ(exited.worker_exited().exit_code(), 127);
  EXPECT_THAT(exited.worker_exited().log_tail(), HasSubstr("'cuda:0': its UUID cannot be read"));
  EXPECT_EQ(AwaitFailure(6), "cuda:0 of GPU-2");
}

TEST_F(AgentGpusTest, AReportSaysWhatSlowsItsGpuDownAndForAWhileLonger) {
  Open();
  coordinator_.AwaitHello(1);
  coordinator_.StartWorker(5, "echo", "cuda:0");
  coordinator_.StartWorker(6, "echo", "cuda:1");

  nvml_.state.gpus[1].throttle_bits = 0x4 | 0x40;
  nvml_.Set();
  EXPECT_TRUE(AwaitSlowdown(6, "hardware thermal slowdown"));
  EXPECT_TRUE(AwaitSlowdown(5, ""));

  nvml_.state.gpus[1].throttle_bits = 0x4;
  nvml_.Set();
  coordinator_.SendPlan(6, ++plan_);
  EXPECT_TRUE(AwaitSlowdown(6, "hardware thermal slowdown")) << "it may be back at once";
  EXPECT_TRUE(AwaitSlowdown(6, ""));
}

TEST_F(AgentGpusTest, ReadingsAreMetrics) {
  nvml_.state.gpus[1].temperature_celsius = 61;
  nvml_.state.gpus[1].lost = false;
  nvml_.Set();
  Open();
  nvml_.state.gpus[0].lost = true;
  nvml_.Set();
  EXPECT_TRUE(AwaitFaults({{"cuda:0", kLost}}));

  const std::string text = metrics::WriteText(*metrics_.registry());

  EXPECT_THAT(text, HasSubstr("tactus_gpu_temperature_celsius{gpu=\"1\"} 61\n"));
  EXPECT_THAT(text, HasSubstr("tactus_gpu_fault{gpu=\"0\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("tactus_gpu_fault{gpu=\"1\"} 0\n"));
}

}  // namespace
}  // namespace tactus::agent
