#include "cuda/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <utility>

namespace tactus::cuda {
namespace {

// NVML's interface, which is stable and which no package of Debian's main archive declares. Names
// are NVML's, without the prefix.
using Return = int;
using DeviceHandle = void*;
using EventSet = void*;

constexpr Return kSuccess = 0;
constexpr Return kDriverNotLoaded = 9;
constexpr Return kGpuIsLost = 15;
constexpr unsigned kSensorGpu = 0;
constexpr unsigned kClockSm = 1;
constexpr unsigned kErrorUncorrected = 1;
constexpr unsigned kCounterVolatile = 0;  // since the driver was loaded
constexpr unsigned long long kEventXidCritical = 8;

struct Memory {
  unsigned long long total = 0, free = 0, used = 0;
};
struct Utilization {
  unsigned gpu = 0, memory = 0;  // [%]
};
struct EventData {
  DeviceHandle device = nullptr;
  unsigned long long type = 0;
  unsigned long long data = 0;  // the XID
  unsigned gpu_instance = 0, compute_instance = 0;
};

constexpr std::size_t kTextBytes = 96;  // NVML's own bound for names and UUIDs
constexpr int kEventsTakenMax = 64;     // at once

// What a program does wrong, not the GPU.
constexpr std::array<unsigned long long, 6> kProgramXids = {13, 31, 43, 45, 68, 109};

struct ThrottleReason {
  unsigned long long bit = 0;
  const char* name = "";
};
// Those that make a GPU slower than its load and the user's settings ask for.
constexpr std::array<ThrottleReason, 6> kThrottleReasons = {{{0x04, "software power cap"},
                                                             {0x08, "hardware slowdown"},
                                                             {0x10, "sync boost"},
                                                             {0x20, "software thermal slowdown"},
                                                             {0x40, "hardware thermal slowdown"},
                                                             {0x80, "hardware power brake"}}};

}  // namespace

// The functions that are used, and the library's life.
class GpuMonitor::Library {
 public:
  // Returns why it cannot be used; empty: it can.
  std::string Open(const std::string& name) {
    handle_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) return name + " cannot be opened: no NVIDIA driver is installed";
    const bool whole =
        Find("nvmlInit_v2", init) && Find("nvmlShutdown", shutdown) &&
        Find("nvmlErrorString", error_string) && Find("nvmlDeviceGetCount_v2", count) &&
        Find("nvmlDeviceGetHandleByIndex_v2", handle_by_index) &&
        Find("nvmlDeviceGetName", name_of) && Find("nvmlDeviceGetUUID", uuid_of) &&
        Find("nvmlDeviceGetMemoryInfo", memory) &&
        Find("nvmlDeviceGetUtilizationRates", utilization) &&
        Find("nvmlDeviceGetTemperature", temperature) && Find("nvmlDeviceGetPowerUsage", power) &&
        Find("nvmlDeviceGetClockInfo", clock) &&
        Find("nvmlDeviceGetCurrentClocksThrottleReasons", throttle) &&
        Find("nvmlDeviceGetTotalEccErrors", ecc_errors) &&
        Find("nvmlEventSetCreate", event_set_create) && Find("nvmlEventSetFree", event_set_free) &&
        Find("nvmlDeviceRegisterEvents", register_events) &&
        Find("nvmlEventSetWait_v2", event_set_wait);
    if (!whole) return name + " is too old: it has no " + missing_;
    const Return started = init();
    if (started == kDriverNotLoaded) return "the NVIDIA driver is installed, but not loaded";
    if (started != kSuccess) return std::string("NVML cannot be started: ") + error_string(started);
    started_ = true;
    return "";
  }

  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (started_) shutdown();
    if (handle_ != nullptr) ::dlclose(handle_);
  }

  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  const char* (*error_string)(Return) = nullptr;
  Return (*count)(unsigned*) = nullptr;
  Return (*handle_by_index)(unsigned, DeviceHandle*) = nullptr;
  Return (*name_of)(DeviceHandle, char*, unsigned) = nullptr;
  Return (*uuid_of)(DeviceHandle, char*, unsigned) = nullptr;
  Return (*memory)(DeviceHandle, Memory*) = nullptr;
  Return (*utilization)(DeviceHandle, Utilization*) = nullptr;
  Return (*temperature)(DeviceHandle, unsigned, unsigned*) = nullptr;
  Return (*power)(DeviceHandle, unsigned*) = nullptr;
  Return (*clock)(DeviceHandle, unsigned, unsigned*) = nullptr;
  Return (*throttle)(DeviceHandle, unsigned long long*) = nullptr;
  Return (*ecc_errors)(DeviceHandle, unsigned, unsigned, unsigned long long*) = nullptr;
  Return (*event_set_create)(EventSet*) = nullptr;
  Return (*event_set_free)(EventSet) = nullptr;
  Return (*register_events)(DeviceHandle, unsigned long long, EventSet) = nullptr;
  Return (*event_set_wait)(EventSet, EventData*, unsigned) = nullptr;

 private:
  template <typename Function>
  bool Find(const char* symbol, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(handle_, symbol));
    if (function == nullptr) missing_ = symbol;
    return function != nullptr;
  }

  void* handle_ = nullptr;
  bool started_ = false;
  std::string missing_;
};

struct GpuMonitor::Watched {
  DeviceHandle handle = nullptr;
  unsigned long long ecc_errors_at_first = 0;
  std::string fault;
};

OpenedGpuMonitor GpuMonitor::Open(const std::string& library) {
  auto opened = std::make_unique<Library>();
  std::string reason = opened->Open(library);
  if (!reason.empty()) return {.monitor = nullptr, .reason = std::move(reason)};
  std::unique_ptr<GpuMonitor> monitor(new GpuMonitor(std::move(opened)));
  reason = monitor->FindGpus();
  if (!reason.empty()) monitor.reset();
  return {.monitor = std::move(monitor), .reason = std::move(reason)};
}

GpuMonitor::GpuMonitor(std::unique_ptr<Library> library) : library_(std::move(library)) {}

GpuMonitor::~GpuMonitor() {
  if (events_ != nullptr) library_->event_set_free(events_);
}

// Returns why they cannot be counted; empty: they can, and there may be none.
std::string GpuMonitor::FindGpus() {
  unsigned count = 0;
  if (const Return code = library_->count(&count); code != kSuccess) {
    return std::string("GPUs cannot be counted: ") + library_->error_string(code);
  }
  if (library_->event_set_create(&events_) != kSuccess) events_ = nullptr;
  for (unsigned index = 0; index < count; ++index) Find(index);
  return "";
}

// One that is broken does not keep its neighbours from working.
void GpuMonitor::Find(unsigned index) {
  Watched watched;
  char name[kTextBytes] = {}, uuid[kTextBytes] = {};
  Memory memory;
  Return code = library_->handle_by_index(index, &watched.handle);
  if (code == kSuccess) code = library_->name_of(watched.handle, name, sizeof name);
  if (code == kSuccess) code = library_->uuid_of(watched.handle, uuid, sizeof uuid);
  if (code == kSuccess) code = library_->memory(watched.handle, &memory);
  if (code == kSuccess) {
    library_->ecc_errors(watched.handle, kErrorUncorrected, kCounterVolatile,
                         &watched.ecc_errors_at_first);
    // Some GPUs report no events; their other signs remain.
    if (events_ != nullptr) library_->register_events(watched.handle, kEventXidCritical, events_);
  } else {
    watched.fault = std::string("it cannot be read: ") + library_->error_string(code);
  }
  gpus_.push_back({.index = index, .uuid = uuid, .model = name, .memory_bytes = memory.total});
  watched_.push_back(std::move(watched));
}

void GpuMonitor::TakeEvents() {
  if (events_ == nullptr) return;
  for (int taken = 0; taken < kEventsTakenMax; ++taken) {
    EventData event;
    if (library_->event_set_wait(events_, &event, 0) != kSuccess) return;
    if (event.type != kEventXidCritical || std::ranges::count(kProgramXids, event.data) > 0) {
      continue;
    }
    const auto found = std::ranges::find(watched_, event.device, &Watched::handle);
    if (found != watched_.end() && found->fault.empty()) {
      found->fault = "the driver reported XID " + std::to_string(event.data);
    }
  }
}

GpuReading GpuMonitor::Read(std::size_t gpu) {
  TakeEvents();
  Watched& watched = watched_.at(gpu);
  GpuReading reading;
  bool lost = false;
  const auto said = [&lost](Return code) {
    lost = lost || code == kGpuIsLost;
    return code == kSuccess;
  };
  Memory memory;
  if (said(library_->memory(watched.handle, &memory))) reading.memory_used_bytes = memory.used;
  Utilization used;
  if (said(library_->utilization(watched.handle, &used))) {
    reading.utilisation_ratio = used.gpu / 100.0;
  }
  unsigned value = 0;
  if (said(library_->temperature(watched.handle, kSensorGpu, &value))) {
    reading.temperature_celsius = value;
  }
  if (said(library_->power(watched.handle, &value))) reading.power_watts = value / 1e3;
  if (said(library_->clock(watched.handle, kClockSm, &value))) reading.sm_clock_hertz = value * 1e6;
  unsigned long long bits = 0;
  if (said(library_->throttle(watched.handle, &bits))) {
    for (const ThrottleReason& reason : kThrottleReasons) {
      if ((bits & reason.bit) != 0) reading.throttle_reasons.emplace_back(reason.name);
    }
  }
  unsigned long long errors = 0;
  if (said(library_->ecc_errors(watched.handle, kErrorUncorrected, kCounterVolatile, &errors))) {
    reading.uncorrected_ecc_errors = errors;
    if (errors > watched.ecc_errors_at_first && watched.fault.empty()) {
      watched.fault = std::to_string(errors - watched.ecc_errors_at_first) +
                      " uncorrected ECC errors since the agent started";
    }
  }
  if (lost && watched.fault.empty()) watched.fault = "the driver lost it";
  reading.fault = watched.fault;
  return reading;
}

}  // namespace tactus::cuda
