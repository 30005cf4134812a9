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
constexpr unsigned kMigOn = 1;

struct Memory {
  unsigned long long total = 0, free = 0, used = 0;
};
struct Utilization {
  unsigned gpu = 0, memory = 0;  // [%]
};
struct PciInfo {
  char bus_id_legacy[16] = {};
  unsigned domain = 0, bus = 0, device = 0, device_id = 0, subsystem_id = 0;
  char bus_id[32] = {};
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
  // Of every busy GPU at its limits, or of its neighbours; not of one that something is wrong with.
  bool usual = false;
};
// Those that make a GPU slower than its load and the user's settings ask for.
constexpr std::array<ThrottleReason, 6> kThrottleReasons = {{{0x04, "software power cap", true},
                                                             {0x08, "hardware slowdown"},
                                                             {0x10, "sync boost", true},
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
    // Drivers without these know no slices, and which processors are next to a GPU is left open.
    static_cast<void>(Find("nvmlDeviceGetMigMode", mig_mode) &&
                      Find("nvmlDeviceGetMaxMigDeviceCount", slices_max) &&
                      Find("nvmlDeviceGetMigDeviceHandleByIndex", slice_by_index));
    static_cast<void>(Find("nvmlDeviceGetPciInfo_v3", pci_info));
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
  // Null where the driver has none.
  Return (*mig_mode)(DeviceHandle, unsigned* now, unsigned* after_reset) = nullptr;
  Return (*slices_max)(DeviceHandle, unsigned*) = nullptr;
  Return (*slice_by_index)(DeviceHandle, unsigned, DeviceHandle*) = nullptr;
  Return (*pci_info)(DeviceHandle, PciInfo*) = nullptr;

  bool IsSliced(DeviceHandle gpu) const {
    unsigned now = 0, after_reset = 0;
    return slice_by_index != nullptr && mig_mode(gpu, &now, &after_reset) == kSuccess &&
           now == kMigOn;
  }
  // Places for slices may be free.
  std::vector<DeviceHandle> SlicesOf(DeviceHandle gpu) const {
    std::vector<DeviceHandle> slices;
    unsigned places = 0;
    if (slices_max(gpu, &places) != kSuccess) return slices;
    for (unsigned place = 0; place < places; ++place) {
      DeviceHandle slice = nullptr;
      if (slice_by_index(gpu, place, &slice) == kSuccess) slices.push_back(slice);
    }
    return slices;
  }

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
  DeviceHandle whole = nullptr;  // the same, or the GPU of which it is a slice
  unsigned long long ecc_errors_at_first = 0;
  std::string fault{};
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

void GpuMonitor::Find(unsigned index) {
  DeviceHandle gpu = nullptr;
  const Return found = library_->handle_by_index(index, &gpu);
  if (found != kSuccess || !library_->IsSliced(gpu)) {
    return Add({.handle = gpu, .whole = gpu}, found);
  }
  const std::vector<DeviceHandle> slices = library_->SlicesOf(gpu);
  for (const DeviceHandle slice : slices) Add({.handle = slice, .whole = gpu}, kSuccess);
  if (!slices.empty()) return;
  Add({.handle = gpu, .whole = gpu}, kSuccess);
  watched_.back().fault = "it is in MIG mode and has no slice";
}

// One that is broken does not keep its neighbours from working. found: whether there is a handle.
void GpuMonitor::Add(Watched watched, Return found) {
  char name[kTextBytes] = {}, uuid[kTextBytes] = {};
  Memory memory;
  PciInfo pci;
  Return code = found;
  if (code == kSuccess) code = library_->name_of(watched.handle, name, sizeof name);
  if (code == kSuccess) code = library_->uuid_of(watched.handle, uuid, sizeof uuid);
  if (code == kSuccess) code = library_->memory(watched.handle, &memory);
  if (code == kSuccess) {
    library_->ecc_errors(watched.whole, kErrorUncorrected, kCounterVolatile,
                         &watched.ecc_errors_at_first);
    // Some GPUs report no events; their other signs remain.
    if (events_ != nullptr) library_->register_events(watched.whole, kEventXidCritical, events_);
    if (library_->pci_info != nullptr) library_->pci_info(watched.whole, &pci);
  } else {
    watched.fault = std::string("it cannot be read: ") + library_->error_string(code);
  }
  gpus_.push_back({.index = static_cast<unsigned>(gpus_.size()),
                   .uuid = uuid,
                   .model = name,
                   .memory_bytes = memory.total,
                   .pci_bus_id = pci.bus_id});
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
    for (Watched& watched : watched_) {
      if (watched.whole != event.device || !watched.fault.empty()) continue;
      watched.fault = "the driver reported XID " + std::to_string(event.data);
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
  if (said(library_->temperature(watched.whole, kSensorGpu, &value))) {
    reading.temperature_celsius = value;
  }
  if (said(library_->power(watched.whole, &value))) reading.power_watts = value / 1e3;
  if (said(library_->clock(watched.whole, kClockSm, &value))) reading.sm_clock_hertz = value * 1e6;
  unsigned long long bits = 0;
  if (said(library_->throttle(watched.whole, &bits))) {
    for (const ThrottleReason& reason : kThrottleReasons) {
      if ((bits & reason.bit) == 0) continue;
      reading.throttle_reasons.emplace_back(reason.name);
      if (reason.usual) continue;
      reading.slowdown += (reading.slowdown.empty() ? "" : ", ") + std::string(reason.name);
    }
  }
  unsigned long long errors = 0;
  if (said(library_->ecc_errors(watched.whole, kErrorUncorrected, kCounterVolatile, &errors))) {
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
