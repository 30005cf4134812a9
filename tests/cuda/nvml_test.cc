// Against the double of NVML in tests/support/nvml_double.

#include "cuda/nvml.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/nvml_double/nvml_double.h"

namespace tactus::cuda {
namespace {

using tactus::nvml_double::NvmlDoubleGpu;
using tactus::nvml_double::NvmlDoubleState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class GpuMonitorTest : public ::testing::Test {
 protected:
  GpuMonitorTest() : handle_(::dlopen(TACTUS_NVML_DOUBLE, RTLD_NOW | RTLD_LOCAL)) {
    Symbol<tactus::nvml_double::NvmlDoubleSet>("nvmlDoubleSet")({});
  }
  ~GpuMonitorTest() override {
    EXPECT_FALSE(Symbol<tactus::nvml_double::NvmlDoubleStarted>("nvmlDoubleStarted")());
    ::dlclose(handle_);
  }

  template <typename Function>
  Function Symbol(const char* name) {
    return reinterpret_cast<Function>(::dlsym(handle_, name));
  }

  NvmlDoubleState& state() {
    return *Symbol<tactus::nvml_double::NvmlDoubleGet>("nvmlDoubleGet")();
  }

  std::unique_ptr<GpuMonitor> Open() {
    OpenedGpuMonitor opened = GpuMonitor::Open(TACTUS_NVML_DOUBLE);
    EXPECT_EQ(opened.reason, "");
    return std::move(opened.monitor);
  }

  static NvmlDoubleGpu Gpu(const std::string& uuid) {
    return {.uuid = uuid,
            .model = "A model",
            .memory_bytes = 80u << 20,
            .memory_used_bytes = 3u << 20,
            .utilisation_percent = 87,
            .temperature_celsius = 61,
            .power_milliwatts = 412'500,
            .sm_clock_megahertz = 1755,
            .throttle_bits = 0x1 | 0x4 | 0x40};
  }

 private:
  void* const handle_;
};

TEST_F(GpuMonitorTest, ListsTheGpusOfTheHost) {
  state().gpus = {Gpu("GPU-1"), Gpu("GPU-2")};

  const auto monitor = Open();

  ASSERT_EQ(monitor->gpus().size(), 2u);
  EXPECT_EQ(monitor->gpus()[1].index, 1u);
  EXPECT_EQ(monitor->gpus()[1].uuid, "GPU-2");
  EXPECT_EQ(monitor->gpus()[1].model, "A model");
  EXPECT_EQ(monitor->gpus()[1].memory_bytes, 80u << 20);
}

TEST_F(GpuMonitorTest, ASliceIsADeviceOfItsOwnInThePlaceOfItsGpu) {
  state().gpus = {Gpu("GPU-1"), Gpu("GPU-2"), Gpu("GPU-3")};
  state().gpus[1].mig = true;
  state().gpus[1].pci_bus_id = "00000000:3B:00.0";
  state().gpus[1].slices = {
      {.uuid = "MIG-a", .memory_bytes = 5}, {}, {.uuid = "MIG-b", .memory_bytes = 7}};

  const auto monitor = Open();

  const std::vector<GpuIdentity>& gpus = monitor->gpus();
  ASSERT_EQ(gpus.size(), 4u);
  for (unsigned index = 0; index < 4; ++index) EXPECT_EQ(gpus[index].index, index);
  EXPECT_EQ(gpus[0].uuid, "GPU-1");
  EXPECT_EQ(gpus[1].uuid, "MIG-a");
  EXPECT_EQ(gpus[2].uuid, "MIG-b");
  EXPECT_EQ(gpus[2].memory_bytes, 7u);
  EXPECT_EQ(gpus[2].pci_bus_id, "00000000:3B:00.0");
  EXPECT_EQ(gpus[3].uuid, "GPU-3");
}

TEST_F(GpuMonitorTest, WhatBefallsAGpuBefallsItsSlices) {
  state().gpus = {Gpu("GPU-1"), Gpu("GPU-2")};
  state().gpus[0].mig = true;
  state().gpus[0].slices = {{.uuid = "MIG-a"}, {.uuid = "MIG-b"}};
  const auto monitor = Open();
  state().events = {{0, 79}};

  EXPECT_EQ(monitor->Read(0).fault, "the driver reported XID 79");
  EXPECT_EQ(monitor->Read(1).fault, "the driver reported XID 79");
  EXPECT_EQ(monitor->Read(1).temperature_celsius, 61);
  EXPECT_EQ(monitor->Read(2).fault, "");
}

TEST_F(GpuMonitorTest, AGpuInMigModeWithoutASliceIsAtFault) {
  state().gpus = {Gpu("GPU-1")};
  state().gpus[0].mig = true;

  const auto monitor = Open();

  ASSERT_EQ(monitor->gpus().size(), 1u);
  EXPECT_EQ(monitor->Read(0).fault, "it is in MIG mode and has no slice");
}

TEST_F(GpuMonitorTest, AHostWithADriverAndNoGpuHasNone) { EXPECT_THAT(Open()->gpus(), IsEmpty()); }

TEST_F(GpuMonitorTest, ReadsInBaseUnits) {
  state().gpus = {Gpu("GPU-1")};

  const GpuReading reading = Open()->Read(0);

  EXPECT_EQ(reading.utilisation_ratio, 0.87);
  EXPECT_EQ(reading.memory_used_bytes, 3u << 20);
  EXPECT_EQ(reading.temperature_celsius, 61);
  EXPECT_EQ(reading.power_watts, 412.5);
  EXPECT_EQ(reading.sm_clock_hertz, 1.755e9);
  EXPECT_EQ(reading.uncorrected_ecc_errors, 0u);
  // That it is idle (0x1) is no throttling.
  EXPECT_THAT(reading.throttle_reasons,
              ElementsAre("software power cap", "hardware thermal slowdown"));
  // A GPU that works hard is at its power cap: nothing is wrong with it.
  EXPECT_EQ(reading.slowdown, "hardware thermal slowdown");
  EXPECT_EQ(reading.fault, "");
}

TEST_F(GpuMonitorTest, WhatAGpuDoesNotSayIsLeftOpen) {
  state().gpus = {Gpu("GPU-1")};
  state().gpus[0].reticent = true;

  const GpuReading reading = Open()->Read(0);

  EXPECT_EQ(reading.memory_used_bytes, 3u << 20);
  EXPECT_EQ(reading.utilisation_ratio, std::nullopt);
  EXPECT_EQ(reading.uncorrected_ecc_errors, std::nullopt);
  EXPECT_EQ(reading.fault, "");
}

TEST_F(GpuMonitorTest, AnXidOfTheHardwareIsAFaultOfItsGpuAlone) {
  state().gpus = {Gpu("GPU-1"), Gpu("GPU-2")};
  const auto monitor = Open();
  state().events = {{1, 31}, {1, 79}, {1, 48}};

  EXPECT_EQ(monitor->Read(0).fault, "");
  EXPECT_EQ(monitor->Read(1).fault, "the driver reported XID 79");
  EXPECT_EQ(monitor->Read(1).fault, "the driver reported XID 79");
}

TEST_F(GpuMonitorTest, AnXidThatProgramsCauseIsNone) {
  state().gpus = {Gpu("GPU-1")};
  const auto monitor = Open();
  state().events = {{0, 13}, {0, 31}, {0, 43}, {0, 45}, {0, 68}, {0, 109}};

  EXPECT_EQ(monitor->Read(0).fault, "");
  EXPECT_THAT(state().events, IsEmpty());
}

TEST_F(GpuMonitorTest, EccErrorsCountFromWhenItWasOpened) {
  state().gpus = {Gpu("GPU-1")};
  state().gpus[0].uncorrected_ecc_errors = 5;
  const auto monitor = Open();

  EXPECT_EQ(monitor->Read(0).fault, "");
  state().gpus[0].uncorrected_ecc_errors = 7;

  EXPECT_EQ(monitor->Read(0).fault, "2 uncorrected ECC errors since the agent started");
}

TEST_F(GpuMonitorTest, AGpuThatIsLostStaysAtFault) {
  state().gpus = {Gpu("GPU-1")};
  const auto monitor = Open();
  state().gpus[0].lost = true;

  const GpuReading reading = monitor->Read(0);
  EXPECT_EQ(reading.fault, "the driver lost it");
  EXPECT_EQ(reading.memory_used_bytes, std::nullopt);
  state().gpus[0].lost = false;

  EXPECT_EQ(monitor->Read(0).fault, "the driver lost it");
}

TEST_F(GpuMonitorTest, AGpuThatIsLostAtTheStartIsAtFaultAndItsNeighbourIsNot) {
  state().gpus = {Gpu("GPU-1"), Gpu("GPU-2")};
  state().gpus[0].lost = true;

  const auto monitor = Open();

  ASSERT_EQ(monitor->gpus().size(), 2u);
  EXPECT_EQ(monitor->Read(0).fault, "it cannot be read: GPU is lost");
  EXPECT_EQ(monitor->gpus()[1].uuid, "GPU-2");
  EXPECT_EQ(monitor->Read(1).fault, "");
}

TEST_F(GpuMonitorTest, ADriverThatIsNotLoadedIsAReason) {
  state().init_code = 9;

  EXPECT_EQ(GpuMonitor::Open(TACTUS_NVML_DOUBLE).reason,
            "the NVIDIA driver is installed, but not loaded");
}

TEST(GpuMonitorLibraryTest, AHostWithoutADriverIsAReason) {
  const OpenedGpuMonitor opened = GpuMonitor::Open("/nonexistent/libnvidia-ml.so.1");

  EXPECT_EQ(opened.monitor, nullptr);
  EXPECT_THAT(opened.reason, HasSubstr("no NVIDIA driver is installed"));
}

TEST(GpuMonitorLibraryTest, ALibraryWithoutItsFunctionsIsAReason) {
  EXPECT_THAT(GpuMonitor::Open("libm.so.6").reason, HasSubstr("it has no nvmlInit_v2"));
}

}  // namespace
}  // namespace tactus::cuda
