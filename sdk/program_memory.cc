#include "sdk/program_memory.h"

#include <utility>

namespace tactus::sdk {

void* ProgramMemory::Take(std::size_t bytes) {
  if (!turns_.lives()) return nullptr;
  const Answer answer = turns_.Ask(
      {.kind = Request::Kind::kMemory, .memory_bytes = bytes, .returned = TakeReturned()});
  return answer.status.ok() ? answer.memory : nullptr;
}

void ProgramMemory::Shrink() {
  if (!turns_.lives()) return;
  turns_.Ask({.kind = Request::Kind::kMemory, .returned = TakeReturned()});
}

std::span<void* const> ProgramMemory::TakeReturned() {
  told_ = std::exchange(returned_, {});
  return told_;
}

}  // namespace tactus::sdk
