#include "tests/support/cuda_double/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace tactus::cuda_double {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kGuardBytes = 64;
constexpr char kGuard = '\x5e';
constexpr char kUnwritten = '\xff';  // every float and double of these is not a number

std::size_t PagesOf(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

void* Memory::AllocateDevice(int device, std::size_t bytes) {
  const std::size_t mapped = PagesOf(bytes + kGuardBytes);
  void* const pages = mmap(nullptr, mapped + 2 * kPage, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  char* const memory = static_cast<char*>(pages) + kPage;
  mprotect(memory, mapped, PROT_READ | PROT_WRITE);
  std::memset(memory, kUnwritten, bytes);
  std::memset(memory + bytes, kGuard, mapped - bytes);
  if (open_ == 0) mprotect(memory, mapped, PROT_NONE);
  device_[memory] = {.bytes = bytes, .mapped = mapped, .device = device};
  return memory;
}

bool Memory::FreeDevice(void* memory) {
  const auto found = device_.find(static_cast<char*>(memory));
  if (found == device_.end()) return false;
  const auto& [start, allocation] = *found;
  mprotect(start, allocation.mapped, PROT_READ);
  if (!std::all_of(start + allocation.bytes, start + allocation.mapped,
                   [](char byte) { return byte == kGuard; })) {
    std::fprintf(stderr, "double of the CUDA runtime: something wrote behind %zu bytes at %p\n",
                 allocation.bytes, memory);
    std::abort();
  }
  munmap(start - kPage, allocation.mapped + 2 * kPage);
  device_.erase(found);
  return true;
}

void Memory::Adopt(int device, void* memory, std::size_t bytes) {
  device_[static_cast<char*>(memory)] = {.bytes = bytes, .mapped = 0, .device = device};
}

void* Memory::AllocatePinned(int device, std::size_t bytes) {
  void* const memory = std::aligned_alloc(kPage, PagesOf(std::max<std::size_t>(bytes, 1)));
  if (memory == nullptr) return nullptr;
  std::memset(memory, kUnwritten, bytes);
  pinned_[static_cast<char*>(memory)] = {.bytes = bytes, .device = device};
  return memory;
}

bool Memory::FreePinned(void* memory) {
  if (pinned_.erase(static_cast<char*>(memory)) == 0) return false;
  std::free(memory);
  return true;
}

void Memory::Discard() {
  for (const auto& [start, allocation] : device_) {
    if (allocation.mapped > 0) munmap(start - kPage, allocation.mapped + 2 * kPage);
  }
  for (const auto& [start, allocation] : pinned_) std::free(start);
  device_.clear();
  pinned_.clear();
}

const Memory::Allocation* Memory::Find(const Allocations& allocations, const void* memory,
                                       std::size_t bytes) {
  const char* const start = static_cast<const char*>(memory);
  auto next = std::find_if(allocations.begin(), allocations.end(),
                           [start](const auto& entry) { return entry.first > start; });
  if (next == allocations.begin()) return nullptr;
  const auto& [from, allocation] = *std::prev(next);
  const std::size_t offset = static_cast<std::size_t>(start - from);
  return offset <= allocation.bytes && bytes <= allocation.bytes - offset ? &allocation : nullptr;
}

bool Memory::IsDevice(const void* memory, std::size_t bytes) const {
  return Find(device_, memory, bytes) != nullptr;
}

bool Memory::IsPinned(const void* memory, std::size_t bytes) const {
  return Find(pinned_, memory, bytes) != nullptr;
}

std::size_t Memory::device_bytes(int device) const {
  std::size_t sum = 0;
  for (const auto& [start, allocation] : device_) {
    if (allocation.device == device) sum += allocation.bytes;
  }
  return sum;
}

std::size_t Memory::device_bytes() const {
  std::size_t sum = 0;
  for (const auto& [start, allocation] : device_) sum += allocation.bytes;
  return sum;
}

std::size_t Memory::pinned_bytes() const {
  std::size_t sum = 0;
  for (const auto& [start, allocation] : pinned_) sum += allocation.bytes;
  return sum;
}

void Memory::Open() {
  if (open_++ == 0) Protect(PROT_READ | PROT_WRITE);
}

void Memory::Close() {
  if (--open_ == 0) Protect(PROT_NONE);
}

void Memory::Protect(int protection) {
  for (const auto& [start, allocation] : device_) {
    if (allocation.mapped > 0) mprotect(start, allocation.mapped, protection);
  }
}

}  // namespace tactus::cuda_double
