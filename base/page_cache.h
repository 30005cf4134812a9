// What the system keeps of files in memory.

#pragma once

#include <fcntl.h>

#include <string>

#include "base/descriptor.h"

namespace tactus {

// What is read of the file next comes from the disk, where the system takes the advice: so whoever
// has written it learns what the disk gives back. Nothing when the file cannot be opened; what is
// not synced stays in memory. Any thread.
inline void DropCached(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.open()) ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
}

}  // namespace tactus
