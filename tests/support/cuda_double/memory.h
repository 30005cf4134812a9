// The double's memory. That of a device can be touched only while a device works: the host's access
// to it is a segmentation fault here as there.

#pragma once

#include <cstddef>
#include <map>

namespace tactus::cuda_double {

// Used under the runtime's lock.
class Memory {
 public:
  // Not-a-numbers, between pages that cannot be touched and guard words; null when the pages are
  // not to be had.
  void* AllocateDevice(int device, std::size_t bytes);
  // False unless `memory` came from AllocateDevice. Stops the process where guard words were
  // overwritten.
  bool FreeDevice(void* memory);
  // Memory of the host plays a device's from now on, until it is forgotten; the host may touch it.
  void Adopt(int device, void* memory, std::size_t bytes);
  void Forget(void* memory) { device_.erase(static_cast<char*>(memory)); }
  // Of the device's context, like all that the runtime gives out.
  void* AllocatePinned(int device, std::size_t bytes);
  bool FreePinned(void* memory);

  // Frees all, whatever was written behind it.
  void Discard();

  bool IsDevice(const void* memory, std::size_t bytes) const;
  bool IsPinned(const void* memory, std::size_t bytes) const;
  // Whether AllocateDevice returned it, and nobody has freed it.
  bool IsAllocated(void* memory) const { return device_.contains(static_cast<char*>(memory)); }
  // Require: `memory` is a device's, came from AllocatePinned.
  int DeviceOf(const void* memory) const { return Find(device_, memory, 0)->device; }
  int PinnedBy(void* memory) const { return pinned_.at(static_cast<char*>(memory)).device; }
  std::size_t device_bytes(int device) const;
  std::size_t device_bytes() const;
  std::size_t pinned_bytes() const;

  // Device memory may be touched between the two; they nest.
  void Open();
  void Close();

 private:
  struct Allocation {
    std::size_t bytes = 0;   // asked for
    std::size_t mapped = 0;  // pages that can be opened; 0: adopted
    int device = 0;
  };
  using Allocations = std::map<char*, Allocation>;

  // That which has all of the bytes, or null.
  static const Allocation* Find(const Allocations& allocations, const void* memory,
                                std::size_t bytes);
  void Protect(int protection);

  Allocations device_{};
  Allocations pinned_{};
  int open_ = 0;
};

}  // namespace tactus::cuda_double
