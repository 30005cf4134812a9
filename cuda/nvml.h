// What NVIDIA's driver says of this host's GPUs, through its management library (NVML).
//
// The library comes with the driver and not with the toolkit: it is opened at run time, so that one
// build serves hosts with and without GPUs, and it makes no CUDA context, which an agent must not
// have.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tactus::cuda {

// What does not change of a GPU, or of a MIG slice of one, which is a device of its own to those
// who use it; empty and 0 where it cannot be read.
struct GpuIdentity {
  // From 0 in NVML's order: by PCI bus, which is not CUDA's; each slice counts as one.
  unsigned index = 0;
  std::string uuid{};   // "GPU-...", of a slice "MIG-..."; CUDA_VISIBLE_DEVICES takes it
  std::string model{};  // "NVIDIA H200"
  std::uint64_t memory_bytes = 0;
  std::string pci_bus_id{};  // "00000000:3B:00.0"; of a slice that of its GPU
};

// What a GPU is doing; nothing where it does not say.
struct GpuReading {
  std::optional<double> utilisation_ratio{};         // [0, 1] of the last sampling period
  std::optional<std::uint64_t> memory_used_bytes{};  // by all processes
  std::optional<double> temperature_celsius{};       // of the chip
  std::optional<double> power_watts{};               // of the board
  std::optional<double> sm_clock_hertz{};            // now
  std::vector<std::string> throttle_reasons{};       // why it is slower than it could be
  // Those that its load and its limits do not explain, as one text; empty: there are none.
  std::string slowdown{};
  std::optional<std::uint64_t> uncorrected_ecc_errors{};  // since the driver was loaded
  // Why no work should be given to it; empty: it is well. Once said it is said as long as the
  // monitor is open: what is broken is not well because it answers again.
  std::string fault{};
};

class GpuMonitor;

// A monitor, or the reason why there is none.
struct OpenedGpuMonitor {
  std::unique_ptr<GpuMonitor> monitor{};
  std::string reason{};  // empty when there is a monitor
};

// One thread. Calls take some milliseconds a GPU, and far longer where a driver hangs: not to be
// made on a thread that must answer.
class GpuMonitor {
 public:
  // The name under which the driver installs the library.
  static constexpr const char* kLibrary = "libnvidia-ml.so.1";

  static OpenedGpuMonitor Open(const std::string& library = kLibrary);
  ~GpuMonitor();
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;

  // By index.
  const std::vector<GpuIdentity>& gpus() const { return gpus_; }

  // Takes in what the driver reported of GPUs that failed (XID), then reads one. gpu: position in
  // gpus().
  //
  // A GPU has a fault when the driver lost it, when the driver reported an XID of it that programs
  // do not cause, or when it counted uncorrected ECC errors since it was opened. Programs cause
  // XIDs 13, 31, 43, 45, 68 and 109.
  //
  // What befalls a GPU befalls all its slices; temperature, power, clock and errors of a slice are
  // its GPU's. A GPU in MIG mode without a slice is at fault.
  //
  // Source: [k8s-device-plugin] internal/rm/health.go, the XIDs that are ignored.
  GpuReading Read(std::size_t gpu);

 private:
  class Library;
  struct Watched;
  explicit GpuMonitor(std::unique_ptr<Library> library);
  std::string FindGpus();
  void Find(unsigned index);
  void Add(Watched watched, int found);
  void TakeEvents();

  std::unique_ptr<Library> library_;
  std::vector<GpuIdentity> gpus_;
  std::vector<Watched> watched_;  // by position in gpus_
  void* events_ = nullptr;        // null: the driver reports none
};

}  // namespace tactus::cuda
