// What a test tells the DOUBLE of NVML, a shared library that has these two functions besides.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tactus::nvml_double {

// A part of a GPU in MIG mode.
struct NvmlDoubleSlice {
  std::string uuid{};  // empty: the place is free
  std::uint64_t memory_bytes = 0;
};

struct NvmlDoubleGpu {
  std::string uuid{};
  std::string model{};
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_used_bytes = 0;
  unsigned utilisation_percent = 0;
  unsigned temperature_celsius = 0;
  unsigned power_milliwatts = 0;
  unsigned sm_clock_megahertz = 0;
  unsigned long long throttle_bits = 0;
  unsigned long long uncorrected_ecc_errors = 0;
  bool reticent = false;  // supports nothing but name, UUID and memory
  bool lost = false;
  std::string pci_bus_id{};
  bool mig = false;                       // in MIG mode
  std::vector<NvmlDoubleSlice> slices{};  // then
};

struct NvmlDoubleState {
  int init_code = 0;
  std::vector<NvmlDoubleGpu> gpus{};
  // XIDs to be reported: position of the GPU, number.
  std::vector<std::pair<std::size_t, std::uint64_t>> events{};
  bool hangs = false;  // whoever asks for a GPU's memory is not answered while it is so
};

// NVML's event, as its callers lay it out.
struct NvmlDoubleEvent {
  void* device = nullptr;
  unsigned long long type = 0, data = 0;
  unsigned gpu_instance = 0, compute_instance = 0;
};

// Where a device is, likewise.
struct NvmlDoublePci {
  char bus_id_legacy[16] = {};
  unsigned domain = 0, bus = 0, device = 0, device_id = 0, subsystem_id = 0;
  char bus_id[32] = {};
};

// Between two calls of other threads. GPUs of a library that is started keep their handles as long
// as there are as many.
using NvmlDoubleSet = void (*)(const NvmlDoubleState& wanted);  // nvmlDoubleSet
// For tests of one thread.
using NvmlDoubleGet = NvmlDoubleState* (*)();  // nvmlDoubleGet
using NvmlDoubleStarted = bool (*)();          // nvmlDoubleStarted

}  // namespace tactus::nvml_double
