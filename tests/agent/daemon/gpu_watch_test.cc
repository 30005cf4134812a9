// Against the double of NVML.

#include "agent/daemon/gpu_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>

#include "tests/agent/daemon/await.h"
#include "tests/agent/daemon/nvml_double_library.h"

namespace tactus::agent {
namespace {

constexpr const char* kLost = "the driver lost it";

using Readings = std::vector<cuda::GpuReading>;

class GpuWatchTest : public ::testing::Test {
 protected:
  GpuWatchTest() {
    nvml_.Add("GPU-1");
    nvml_.Add("GPU-2");
  }
  ~GpuWatchTest() override {
    control_.RunAndWait([this] { watch_.reset(); });
    control_.Stop();
    EXPECT_FALSE(nvml_.Started());
  }

  void Watch() {
    control_.RunAndWait([this] {
      watch_ = std::make_unique<GpuWatch>(control_, NvmlDoubleLibrary::Open(),
                                          GpuWatch::Options{.look_interval = Seconds(0.02)},
                                          [this](const Readings& readings) { Take(readings); });
    });
  }

  // The first readings from now on for which it holds; empty when none ever come.
  Readings Await(const std::function<bool(const Readings&)>& holds) {
    std::unique_lock lock(mutex_);
    const bool came = changed_.wait_for(lock, kPatience, [&] { return last_ && holds(*last_); });
    return came ? *last_ : Readings{};
  }

  NvmlDoubleLibrary nvml_;
  runtime::ControlThread control_;
  std::unique_ptr<GpuWatch> watch_;

 private:
  void Take(const Readings& readings) {
    const std::lock_guard lock(mutex_);
    last_ = readings;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Readings> last_;
};

bool AreWell(const Readings& readings) {
  return readings.at(0).fault.empty() && readings.at(1).fault.empty();
}

bool OnlyTheSecondIsLost(const Readings& readings) {
  return readings.at(0).fault.empty() && readings.at(1).fault == kLost;
}

TEST_F(GpuWatchTest, ReadsEveryGpuAgainAndAgain) {
  nvml_.state.gpus[1].temperature_celsius = 40;
  nvml_.Set();
  Watch();

  const Readings first = Await([](const Readings&) { return true; });
  nvml_.state.gpus[1].temperature_celsius = 50;
  nvml_.Set();
  const Readings later =
      Await([](const Readings& readings) { return readings.at(1).temperature_celsius == 50; });

  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[1].temperature_celsius, 40);
  ASSERT_EQ(later.size(), 2u);
  EXPECT_EQ(later[0].temperature_celsius, 0);
}

TEST_F(GpuWatchTest, AFaultOfOneIsNoneOfTheOther) {
  Watch();
  Await(AreWell);

  nvml_.state.gpus[1].lost = true;
  nvml_.Set();
  const Readings readings = Await(OnlyTheSecondIsLost);

  EXPECT_EQ(readings.size(), 2u);
}

TEST_F(GpuWatchTest, ADriverThatDoesNotAnswerIsAFaultOfAllUntilItAnswers) {
  Watch();
  nvml_.state.gpus[1].lost = true;
  nvml_.Set();
  Await(OnlyTheSecondIsLost);

  nvml_.state.hangs = true;
  nvml_.Set();
  const Readings silent = Await([](const Readings& found) { return !found.at(0).fault.empty(); });
  nvml_.state.hangs = false;
  nvml_.Set();
  const Readings after = Await([](const Readings& found) { return found.at(0).fault.empty(); });

  ASSERT_EQ(silent.size(), 2u);
  EXPECT_EQ(silent[0].fault, "the driver does not answer");
  EXPECT_EQ(silent[0].memory_used_bytes, std::nullopt);
  // What was known to be broken is so for its own reason.
  EXPECT_EQ(silent[1].fault, kLost);
  ASSERT_EQ(after.size(), 2u);
  EXPECT_EQ(after[0].memory_used_bytes, 0u);
}

TEST_F(GpuWatchTest, TheControlThreadGoesOnWhileTheDriverHangsAndTheWatchCanEnd) {
  Watch();
  Await(AreWell);
  nvml_.state.hangs = true;
  nvml_.Set();
  Await([](const Readings& found) { return !found.at(0).fault.empty(); });

  Once<bool> gone;
  control_.Post([&] {
    watch_.reset();
    gone.Set(true);
  });

  EXPECT_TRUE(gone.Await().has_value());
  // The thread lets go of the library once the driver answers after all.
  nvml_.state.hangs = false;
  nvml_.Set();
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (nvml_.Started() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
}

}  // namespace
}  // namespace tactus::agent
