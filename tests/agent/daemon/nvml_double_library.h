// The double of NVML in tests/support/nvml_double, told what to say.

#pragma once

#include <dlfcn.h>

#include <memory>
#include <string>
#include <utility>

#include "cuda/nvml.h"
#include "tests/support/nvml_double/nvml_double.h"

namespace tactus::agent {

// One at a time; nothing of a former one is left.
class NvmlDoubleLibrary {
 public:
  NvmlDoubleLibrary() : handle_(::dlopen(kPath, RTLD_NOW | RTLD_LOCAL)) { Set(); }
  ~NvmlDoubleLibrary() {
    state = {};
    Set();
    ::dlclose(handle_);
  }
  NvmlDoubleLibrary(const NvmlDoubleLibrary&) = delete;
  NvmlDoubleLibrary& operator=(const NvmlDoubleLibrary&) = delete;

  static constexpr const char* kPath = TACTUS_NVML_DOUBLE;

  // From now on it is as `state` says.
  void Set() { Find<nvml_double::NvmlDoubleSet>("nvmlDoubleSet")(state); }
  bool Started() const { return Find<nvml_double::NvmlDoubleStarted>("nvmlDoubleStarted")(); }

  void Add(const std::string& uuid) {
    state.gpus.push_back({.uuid = uuid, .model = "A model", .memory_bytes = 80u << 20});
    Set();
  }

  static std::unique_ptr<cuda::GpuMonitor> Open() {
    return std::move(cuda::GpuMonitor::Open(kPath).monitor);
  }

  nvml_double::NvmlDoubleState state{};

 private:
  template <typename Function>
  Function Find(const char* name) const {
    return reinterpret_cast<Function>(::dlsym(handle_, name));
  }

  void* const handle_;
};

}  // namespace tactus::agent
