// The device's memory that a program lends to the engine, such as torch's allocator has it.

#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cuda/device.h"
#include "sdk/turns.h"

namespace tactus::sdk {

// Within the life: elsewhere it has no room, as nobody can be asked.
class ProgramMemory final : public cuda::Lender {
 public:
  // `turns` outlives it.
  explicit ProgramMemory(Turns& turns) : turns_(turns) {}

  void* Take(std::size_t bytes) override;
  // Any thread that the device is used by. The program is told when it is asked next.
  void Give(void* memory) override { returned_.push_back(memory); }

  // The program keeps no memory that it does not use.
  void Shrink();

  // What was given since the last call, in memory until the next one.
  std::span<void* const> TakeReturned();

 private:
  Turns& turns_;
  std::vector<void*> returned_;
  std::vector<void*> told_;
};

}  // namespace tactus::sdk
