// What a device did, of any program: the driver loads this library into it when
// CUDA_INJECTION64_PATH names it. Every kernel, copy and clearing goes to the file that
// TACTUS_DEVICE_TRACE names, a line each, times in nanoseconds of CUPTI's clock:
//
//     kernel|copy|clear  STREAM  BEGIN  END  NAME
//
// and every call of the runtime, on the host, as
//
//     call  THREAD  BEGIN  END  NAME
//
// separated by tabs, in no order. Source: CUPTI, activity API.
#include <cupti.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
constexpr std::uint32_t kFlushMilliseconds =
    200;  // a process that is killed leaves what was before

std::FILE* file = nullptr;
std::mutex writing;  // of `file`: CUPTI hands buffers over from threads of its own

void Line(const char* what, unsigned long long where, unsigned long long begin,
          unsigned long long end, const char* name) {
  std::fprintf(file, "%s\t%llu\t%llu\t%llu\t%s\n", what, where, begin, end, name);
}

void WriteRecord(const CUpti_Activity& record) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& kernel = reinterpret_cast<const CUpti_ActivityKernel10&>(record);
      Line("kernel", kernel.streamId, kernel.start, kernel.end, kernel.name);
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& copy = reinterpret_cast<const CUpti_ActivityMemcpy6&>(record);
      static constexpr const char* kNames[] = {"", "to device", "to host"};
      Line("copy", copy.streamId, copy.start, copy.end,
           copy.copyKind < 3 ? kNames[copy.copyKind] : "on device");
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& clear = reinterpret_cast<const CUpti_ActivityMemset4&>(record);
      Line("clear", clear.streamId, clear.start, clear.end, "");
      break;
    }
    case CUPTI_ACTIVITY_KIND_RUNTIME: {
      const auto& call = reinterpret_cast<const CUpti_ActivityAPI&>(record);
      const char* name = "";
      cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, call.cbid, &name);
      Line("call", call.threadId, call.start, call.end, name);
      break;
    }
    default:
      break;
  }
}

void CUPTIAPI TakeBuffer(std::uint8_t** buffer, std::size_t* size, std::size_t* records_max) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  *size = *buffer == nullptr ? 0 : kBufferBytes;
  *records_max = 0;
}

void CUPTIAPI WriteBuffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                          std::size_t filled) {
  const std::lock_guard lock(writing);
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, filled, &record) == CUPTI_SUCCESS) WriteRecord(*record);
  std::fflush(file);
  std::free(buffer);
}

}  // namespace

// Called by the driver when it starts. Returns 0 if nothing is to be traced.
extern "C" int InitializeInjection() {
  const char* path = std::getenv("TACTUS_DEVICE_TRACE");
  file = path == nullptr ? nullptr : std::fopen(path, "w");
  if (file == nullptr) return 0;
  cuptiActivityRegisterCallbacks(TakeBuffer, WriteBuffer);
  for (const CUpti_ActivityKind kind :
       {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
        CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_RUNTIME}) {
    if (cuptiActivityEnable(kind) != CUPTI_SUCCESS)
      std::fprintf(file, "missing\t0\t0\t0\tactivity %d\n", kind);
  }
  cuptiActivityFlushPeriod(kFlushMilliseconds);
  std::atexit([] { cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED); });
  return 1;
}
