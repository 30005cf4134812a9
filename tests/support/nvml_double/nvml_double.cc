// A DOUBLE of NVIDIA's management library, as a shared library that is opened in its place: GPUs
// that tests describe, and nothing measured. Symbols and codes are NVML's.

#include "tests/support/nvml_double/nvml_double.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <vector>

namespace {

using tactus::nvml_double::NvmlDoubleState;

constexpr int kSuccess = 0;
constexpr int kInvalidArgument = 2;
constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;
constexpr int kTimeout = 10;
constexpr int kGpuIsLost = 15;

std::mutex mutex;  // of what follows
std::condition_variable changed;
NvmlDoubleState state;
bool started = false;

using Lock = std::unique_lock<std::mutex>;

int Of(void* device, tactus::nvml_double::NvmlDoubleGpu** gpu) {
  const auto found = std::find_if(state.gpus.begin(), state.gpus.end(),
                                  [device](const auto& one) { return &one == device; });
  if (!started || found == state.gpus.end()) return kInvalidArgument;
  *gpu = &*found;
  return found->lost ? kGpuIsLost : kSuccess;
}

// The slice of that handle; null: it is none.
tactus::nvml_double::NvmlDoubleSlice* SliceOf(void* device) {
  for (auto& gpu : state.gpus) {
    for (auto& slice : gpu.slices) {
      if (&slice == device) return &slice;
    }
  }
  return nullptr;
}

int Copy(const std::string& from, char* to, unsigned bytes) {
  if (from.size() >= bytes) return kInvalidArgument;
  std::memcpy(to, from.c_str(), from.size() + 1);
  return kSuccess;
}

template <typename Value, typename Get>
int Answer(void* device, Value* value, Get get) {
  const Lock lock(mutex);
  tactus::nvml_double::NvmlDoubleGpu* gpu = nullptr;
  const int code = Of(device, &gpu);
  if (code != kSuccess) return code;
  if (gpu->reticent) return kNotSupported;
  *value = static_cast<Value>(get(*gpu));
  return kSuccess;
}

}  // namespace

extern "C" {

void nvmlDoubleSet(const NvmlDoubleState& wanted) {
  const Lock lock(mutex);
  state = wanted;
  changed.notify_all();
}
NvmlDoubleState* nvmlDoubleGet() { return &state; }
bool nvmlDoubleStarted() {
  const Lock lock(mutex);
  return started;
}

int nvmlInit_v2() {
  const Lock lock(mutex);
  if (state.init_code == kSuccess) started = true;
  return state.init_code;
}
int nvmlShutdown() {
  const Lock lock(mutex);
  started = false;
  return kSuccess;
}
const char* nvmlErrorString(int code) { return code == kGpuIsLost ? "GPU is lost" : "an error"; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  const Lock lock(mutex);
  *count = static_cast<unsigned>(state.gpus.size());
  return started ? kSuccess : kInvalidArgument;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  const Lock lock(mutex);
  if (index >= state.gpus.size()) return kInvalidArgument;
  *device = &state.gpus[index];
  return kSuccess;
}
int nvmlDeviceGetMigMode(void* device, unsigned* now, unsigned* after_reset) {
  const Lock lock(mutex);
  tactus::nvml_double::NvmlDoubleGpu* gpu = nullptr;
  const int code = Of(device, &gpu);
  if (code == kSuccess) *now = *after_reset = gpu->mig ? 1 : 0;
  return code;
}
int nvmlDeviceGetMaxMigDeviceCount(void* device, unsigned* count) {
  return Answer(device, count, [](const auto& gpu) { return gpu.slices.size(); });
}
int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned index, void** slice) {
  const Lock lock(mutex);
  tactus::nvml_double::NvmlDoubleGpu* gpu = nullptr;
  const int code = Of(device, &gpu);
  if (code != kSuccess) return code;
  if (index >= gpu->slices.size() || gpu->slices[index].uuid.empty()) return kNotFound;
  *slice = &gpu->slices[index];
  return kSuccess;
}
int nvmlDeviceGetPciInfo_v3(void* device, tactus::nvml_double::NvmlDoublePci* pci) {
  const Lock lock(mutex);
  tactus::nvml_double::NvmlDoubleGpu* gpu = nullptr;
  const int code = Of(device, &gpu);
  return code == kSuccess ? Copy(gpu->pci_bus_id, pci->bus_id, sizeof pci->bus_id) : code;
}
int nvmlDeviceGetName(void* device, char* text, unsigned bytes) {
  const Lock lock(mutex);
  if (SliceOf(device) != nullptr) return Copy("A slice", text, bytes);
  tactus::nvml_double::NvmlDoubleGpu* gpu = nullptr;
  const int code = Of(device, &gpu);
  return code == kSuccess ? Copy(gpu->model, text, bytes) : code;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned bytes) {
  const Lock lock(mutex);
  if (const auto* slice = SliceOf(device)) return Copy(slice->uuid, text, bytes);
  tactus::nvml_double::NvmlDoubleGpu* gpu = nullptr;
  const int code = Of(device, &gpu);
  return code == kSuccess ? Copy(gpu->uuid, text, bytes) : code;
}
int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* total_free_used) {
  Lock lock(mutex);
  changed.wait(lock, [] { return !state.hangs; });
  if (const auto* slice = SliceOf(device)) {
    total_free_used[0] = total_free_used[1] = slice->memory_bytes;
    total_free_used[2] = 0;
    return kSuccess;
  }
  tactus::nvml_double::NvmlDoubleGpu* gpu = nullptr;
  const int code = Of(device, &gpu);
  if (code != kSuccess) return code;
  total_free_used[0] = gpu->memory_bytes;
  total_free_used[1] = gpu->memory_bytes - gpu->memory_used_bytes;
  total_free_used[2] = gpu->memory_used_bytes;
  return kSuccess;
}
int nvmlDeviceGetUtilizationRates(void* device, unsigned* gpu_memory) {
  return Answer(device, gpu_memory, [](const auto& gpu) { return gpu.utilisation_percent; });
}
int nvmlDeviceGetTemperature(void* device, unsigned sensor, unsigned* value) {
  if (sensor != 0) return kInvalidArgument;
  return Answer(device, value, [](const auto& gpu) { return gpu.temperature_celsius; });
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* value) {
  return Answer(device, value, [](const auto& gpu) { return gpu.power_milliwatts; });
}
int nvmlDeviceGetClockInfo(void* device, unsigned clock, unsigned* value) {
  if (clock != 1) return kInvalidArgument;
  return Answer(device, value, [](const auto& gpu) { return gpu.sm_clock_megahertz; });
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* bits) {
  return Answer(device, bits, [](const auto& gpu) { return gpu.throttle_bits; });
}
int nvmlDeviceGetTotalEccErrors(void* device, unsigned type, unsigned counter,
                                unsigned long long* errors) {
  if (type != 1 || counter != 0) return kInvalidArgument;
  return Answer(device, errors, [](const auto& gpu) { return gpu.uncorrected_ecc_errors; });
}
int nvmlEventSetCreate(void** set) {
  const Lock lock(mutex);
  *set = &state.events;
  return kSuccess;
}
int nvmlEventSetFree(void*) { return kSuccess; }
int nvmlDeviceRegisterEvents(void* device, unsigned long long types, void*) {
  const Lock lock(mutex);
  tactus::nvml_double::NvmlDoubleGpu* gpu = nullptr;
  if (Of(device, &gpu) != kSuccess || types != 8) return kInvalidArgument;
  return gpu->reticent ? kNotSupported : kSuccess;
}
int nvmlEventSetWait_v2(void* set, tactus::nvml_double::NvmlDoubleEvent* event, unsigned) {
  const Lock lock(mutex);
  if (set != &state.events) return kInvalidArgument;
  if (state.events.empty()) return kTimeout;
  const auto& [gpu, xid] = state.events.front();
  *event = {.device = &state.gpus.at(gpu), .type = 8, .data = xid};
  state.events.erase(state.events.begin());
  return kSuccess;
}

}  // extern "C"
