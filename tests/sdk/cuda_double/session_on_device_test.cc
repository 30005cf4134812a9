// A program on a device: on whose streams, in which order and in whose memory it and the engine
// work.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/tensors/safetensors.h"
#include "sdk/session.h"
#include "tests/sdk/cuda_double/hub.h"
#include "tests/support/cuda_double/cuda_double.h"
#include "tests/support/temporary_folder.h"

namespace tactus::sdk {
namespace {

using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using Kind = Request::Kind;

Program LineOn(const std::string& device, std::uint64_t samples) {
  Program program;
  program.device = device;
  program.segments = {{.name = "x", .length = 1, .shape = {1}}};
  cuda::AssignOffsets(program.segments);
  program.train_samples = samples;
  program.batch = 4;
  program.micro_batch = 4;
  program.optimizer = {.kind = "sgd", .is_linear = true, .has_step_counts = false};
  program.stop.epochs = 1;
  program.adapt.batch_policy = "fixed";
  program.adapt.batch.per_worker = 4;
  return program;
}

// Gradient descent on (x - 1)^2 / 2 from 0, at the rate 0.5, by a program whose passes and steps
// are queued on a stream of its own, or on the default stream.
class DescentOnDevice {
 public:
  enum class On { kOwnStream, kDefaultStream };

  explicit DescentOnDevice(const Program& program, On on = On::kOwnStream)
      : session_(std::make_unique<Session>(program)) {
    Begin(on);
  }
  DescentOnDevice(const Program& program, std::unique_ptr<worker::Agent> agent, int device = 0)
      : session_(std::make_unique<Session>(program, std::move(agent))) {
    Begin(On::kOwnStream, device);
  }
  ~DescentOnDevice() {
    session_.reset();
    if (stream_ != nullptr) {
      EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    }
    for (const auto& [memory, bytes] : lent_) EXPECT_EQ(cudaFree(memory), cudaSuccess);
  }

  const Request& Until(Kind kind) {
    while (true) {
      const Request* asked = session_->Await(Seconds(30)).value();
      if (asked == nullptr) continue;
      kinds_.push_back(asked->kind);
      for (void* const memory : asked->returned) GiveBack(memory);
      if (asked->kind == kind || asked->kind == Kind::kEnd) return *asked;
      Do(*asked);
    }
  }

  void Compute(const Request& asked) {
    const auto samples = static_cast<double>(asked.indices.size());
    const auto factor = static_cast<float>(samples / asked.unit);
    Queue([x = parameters_, gradient = gradients_, factor] { *gradient += (*x - 1) * factor; });
    EXPECT_TRUE(session_->Reply({.loss_sum = samples}).ok());
  }

  // What is there when all is done that the program has queued.
  float x() {
    float x = 0;
    Queue([&x, at = parameters_] { x = *at; });
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    return x;
  }

  Session& session() { return *session_; }
  const std::vector<Kind>& kinds() const { return kinds_; }
  const std::map<void*, std::size_t>& lent() const { return lent_; }
  const float* parameters() const { return parameters_; }
  const std::vector<const void*>& bound() const { return bound_; }
  void LendNothing() { lends_ = false; }
  // From now on it waits for each of its steps, as a program does that looks at what came of it.
  void WaitForSteps() { waits_ = true; }

 private:
  void Begin(On on, int device = 0) {
    if (on == On::kOwnStream) {
      EXPECT_EQ(cudaSetDevice(device), cudaSuccess);
      EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    }
    session_->UseStream(stream_);
  }

  // As a kernel of the program's.
  void Queue(std::function<void()> work) {
    cuda_double::Queue(stream_, [work = std::move(work)] {
      const cuda_double::OpenMemory open;
      work();
      return true;
    });
  }

  void Do(const Request& asked) {
    if (asked.kind == Kind::kCompute) return Compute(asked);
    Answer answer;
    if (asked.kind == Kind::kBind) {
      parameters_ = asked.parameters.data();
      gradients_ = asked.gradients.data();
      bound_ = {parameters_, gradients_};
      for (const std::span<float> state : asked.states) bound_.push_back(state.data());
    }
    if (asked.kind == Kind::kStep) {
      Queue([x = parameters_, gradient = asked.gradients.data(),
             rate = 0.5f * static_cast<float>(asked.gain)] { *x -= rate * *gradient; });
      if (waits_) {
        EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
      }
    }
    if (asked.kind == Kind::kMemory) answer.memory = Lend(asked.memory_bytes);
    EXPECT_TRUE(session_->Reply(std::move(answer)).ok());
  }

  void* Lend(std::size_t bytes) {
    if (bytes == 0 || !lends_) return nullptr;
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, bytes), cudaSuccess);
    EXPECT_EQ(cudaMemsetAsync(memory, 0, bytes, stream_), cudaSuccess);
    lent_[memory] = bytes;
    return memory;
  }

  // What is queued behind finds it another's, as with an allocator that keeps it.
  void GiveBack(void* memory) {
    ASSERT_TRUE(lent_.contains(memory));
    EXPECT_EQ(cudaMemsetAsync(memory, 0xff, lent_.at(memory), stream_), cudaSuccess);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
    lent_.erase(memory);
  }

  std::unique_ptr<Session> session_;
  cudaStream_t stream_ = nullptr;
  bool lends_ = true;
  bool waits_ = false;
  std::map<void*, std::size_t> lent_;
  float* parameters_ = nullptr;
  float* gradients_ = nullptr;
  std::vector<const void*> bound_;
  std::vector<Kind> kinds_;
};

using On = DescentOnDevice::On;

TEST(SessionOnDeviceTest, PassesStepsAndTheEngineFollowOneAnotherOnTheDeviceAlone) {
  for (const On on : {On::kOwnStream, On::kDefaultStream}) {
    cuda_double::Reset({});
    DescentOnDevice descent(LineOn("cuda:0", 10), on);

    const Request& end = descent.Until(Kind::kEnd);

    EXPECT_TRUE(end.end.ok()) << end.end;
    EXPECT_EQ(end.reason, "1 epoch completed");
    EXPECT_EQ(descent.x(), 0.875f) << "half of the way, three times";
    EXPECT_EQ(descent.session().standing().last->loss_mean_global, 1);
  }
}

// The engine cuts between the two: what it reads is the program's passes', and what the program
// then reads is what it cut. A device that does no more than what is waited for shows either.
TEST(SessionOnDeviceTest, AStepIsByTheCutGradientOfAllThePassesBeforeIt) {
  cuda_double::Reset({.timing = cuda_double::Timing{}});
  Program program = LineOn("cuda:0", 12);
  program.clip_norm = 0.25;
  DescentOnDevice descent(program);
  descent.WaitForSteps();

  EXPECT_EQ(descent.Until(Kind::kEnd).reason, "1 epoch completed");

  EXPECT_NEAR(descent.x(), 0.375f, 3e-7) << "an eighth, three times, each rounded";
}

TEST(SessionOnDeviceTest, APassBeginsBehindTheClearingOfTheLastSum) {
  cuda_double::Reset({.timing = cuda_double::Timing{}});
  DescentOnDevice descent(LineOn("cuda:0", 12));
  descent.WaitForSteps();

  EXPECT_EQ(descent.Until(Kind::kEnd).reason, "1 epoch completed");

  EXPECT_EQ(descent.x(), 0.875f);
}

TEST(SessionOnDeviceTest, WhatTrainingMadeIsThereBehindAnEndAtAnyMoment) {
  cuda_double::Reset({});
  DescentOnDevice descent(LineOn("cuda:0", 1000));
  while (descent.session().standing().rounds < 2) {
    descent.Compute(descent.Until(Kind::kCompute));
  }
  descent.Until(Kind::kCompute);
  descent.session().End("enough");
  EXPECT_GE(descent.x(), 0.75f);
}

TEST(SessionOnDeviceTest, VectorsAreMemoryThatTheProgramLends) {
  cuda_double::Reset({});
  Program program = LineOn("cuda:0", 10);
  program.lends_memory = true;
  program.optimizer.state_buffers = 2;
  DescentOnDevice descent(program);

  EXPECT_EQ(descent.Until(Kind::kEnd).reason, "1 epoch completed");

  EXPECT_EQ(descent.x(), 0.875f);
  EXPECT_EQ(descent.bound().size(), 4u);
  for (const void* const memory : descent.bound()) {
    EXPECT_TRUE(descent.lent().contains(const_cast<void*>(memory)));
  }
  EXPECT_EQ(descent.lent().size(), 4u) << "the gradients' memory before the group's was returned";
}

TEST(SessionOnDeviceTest, WithoutRoomTheEngineHasMemoryOfItsOwn) {
  cuda_double::Reset({});
  Program program = LineOn("cuda:0", 10);
  program.lends_memory = true;
  DescentOnDevice descent(program);
  descent.LendNothing();

  EXPECT_EQ(descent.Until(Kind::kEnd).reason, "1 epoch completed");
  EXPECT_EQ(descent.x(), 0.875f);
}

TEST(SessionOnDeviceTest, WhereMemoryIsShortTheProgramIsAskedForWhatItKeeps) {
  cuda_double::Reset({});
  Program program = LineOn("cuda:0", 10);
  program.lends_memory = true;
  DescentOnDevice descent(program);
  descent.LendNothing();
  descent.Until(Kind::kMemory);
  cuda_double::FailCall("cudaMalloc", 1, cudaErrorMemoryAllocation);
  ASSERT_TRUE(descent.session().Reply({}).ok());

  const Request& asked = descent.Until(Kind::kMemory);

  EXPECT_EQ(asked.memory_bytes, 0u);
  ASSERT_TRUE(descent.session().Reply({}).ok());
  EXPECT_EQ(descent.Until(Kind::kEnd).reason, "1 epoch completed");
}

TEST(SessionOnDeviceTest, TheResultIsWhatIsOnTheDevice) {
  cuda_double::Reset({});
  const TemporaryFolder folder;
  Program program = LineOn("cuda:0", 10);
  program.output = folder.path();
  DescentOnDevice descent(program);
  EXPECT_EQ(descent.Until(Kind::kEnd).reason, "1 epoch completed");

  std::ifstream file(folder.path() + "/model.safetensors", std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  ASSERT_GE(bytes.size(), sizeof(float));
  float x = 0;
  std::memcpy(&x, bytes.data() + bytes.size() - sizeof(float), sizeof(float));
  EXPECT_EQ(x, 0.875f);
}

// ---- Refusals

std::string EndOf(const Program& program) {
  DescentOnDevice descent(program, On::kDefaultStream);
  return std::string(descent.Until(Kind::kEnd).end.message());
}

TEST(SessionOnDeviceTest, ADeviceThatIsNotThereIsNamed) {
  cuda_double::Reset({});
  EXPECT_THAT(EndOf(LineOn("cuda:1", 10)), HasSubstr("device 'cuda:1' cannot be used"));
}

TEST(SessionOnDeviceTest, AModelElsewhereThanItsWorkerIsToldWhereToGo) {
  cuda_double::Reset({});
  for (const auto& [model, worker] :
       std::map<std::string, std::string>{{"cuda:0", "cpu:3"}, {"cpu:0", "cuda:0"}}) {
    Program program = LineOn(model, 10);
    program.joins = true;
    DescentOnDevice descent(program, Hub::Alone(worker));
    EXPECT_THAT(std::string(descent.Until(Kind::kEnd).end.message()),
                HasSubstr("the model is on " + model + ", and this worker's device is " + worker +
                          ": model.to(run.device)"));
  }
}

// ---- In groups

class GroupsOnDevicesTest : public testing::TestWithParam<worker::TransportKind> {};

// By itself each member would go half of the way; the mean of two equal gradients does the same.
TEST_P(GroupsOnDevicesTest, TwoMembersTrainAsOne) {
  cuda_double::Reset({.devices = 2});
  Hub hub(2, GetParam());
  std::vector<std::future<float>> ends;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    ends.push_back(std::async(std::launch::async, [&hub, rank] {
      Program program = LineOn("cuda:" + std::to_string(rank), 24);
      program.joins = program.lends_memory = true;
      DescentOnDevice descent(program, hub.Member(rank, program), static_cast<int>(rank));
      const Request& end = descent.Until(Kind::kEnd);
      EXPECT_TRUE(end.end.ok()) << end.end;
      EXPECT_EQ(end.reason, "1 epoch completed");
      EXPECT_THAT(descent.kinds(), Contains(Kind::kEdge));
      return descent.x();
    }));
  }
  for (std::future<float>& end : ends) EXPECT_EQ(end.get(), 0.875f) << "3 rounds of 8 samples";
}

INSTANTIATE_TEST_SUITE_P(Transports, GroupsOnDevicesTest,
                         testing::Values(worker::TransportKind::kStaged,
                                         worker::TransportKind::kNccl),
                         [](const auto& tested) {
                           return tested.param == worker::TransportKind::kNccl ? "Nccl" : "Staged";
                         });

}  // namespace
}  // namespace tactus::sdk
