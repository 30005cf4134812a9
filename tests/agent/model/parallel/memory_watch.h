// How much of the host's memory libtorch has taken for tensors at most, on one thread.

#pragma once

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <cstdint>
#include <memory>

namespace tactus::model {

// Counts what this thread allocates and frees while it lives; what was there before is not counted.
class MemoryWatch {
 public:
  MemoryWatch() : guard_(c10::DebugInfoKind::PROFILER_STATE, counts_) {}

  // [bytes] since the beginning.
  std::int64_t peak() const { return counts_->peak; }

 private:
  // libtorch asks for such a one under the name of a profiler's state.
  struct Counts : c10::MemoryReportingInfoBase {
    void reportMemoryUsage(void* /*memory*/, std::int64_t bytes, std::int64_t /*allocated*/,
                           std::int64_t /*reserved*/, c10::Device /*device*/) override {
      now += bytes;
      peak = std::max(peak, now);
    }
    bool memoryProfilingEnabled() const override { return true; }

    std::int64_t now = 0;
    std::int64_t peak = 0;
  };

  const std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();  // shared with libtorch
  c10::DebugInfoGuard guard_;
};

}  // namespace tactus::model
