#include "agent/model/threads.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

namespace tactus::model {

void SetComputeThreads(int count) {
  at::set_num_threads(count);
  using SetThreads = void (*)(int);
  const auto set_blas_threads =
      reinterpret_cast<SetThreads>(::dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
  if (set_blas_threads != nullptr) set_blas_threads(count);
}

}  // namespace tactus::model
