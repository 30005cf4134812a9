#include "tests/support/cuda_double/grid.h"

#include <algorithm>
#include <array>
#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

uint3 threadIdx;
uint3 blockIdx;
dim3 blockDim;
dim3 gridDim;

// The section of all __shared__ variables; the linker makes these two. None where no kernel has
// any.
extern "C" char __start_cuda_double_shared[] __attribute__((weak));
extern "C" char __stop_cuda_double_shared[] __attribute__((weak));

namespace tactus::cuda_double {
namespace {

namespace context = boost::context;

constexpr unsigned kWarp = 32;
constexpr std::size_t kStackBytes = 128 * 1024;

enum class State { kReady, kAtBlockBarrier, kAtWarpBarrier, kEnded };

// One thread of a block. Its fiber outlives the kernel and runs the next one's thread.
struct Thread {
  unsigned rank = 0;  // in the block
  uint3 index{};
  State state = State::kEnded;
  Place place{};  // of the barrier where it waits
  unsigned mask = 0;
  std::uint64_t given = 0;
  std::array<std::uint64_t, kWarp> taken{};
  context::fiber fiber{};
  context::fiber scheduler{};
};

// All that is between kernels is the fibers.
struct Grid {
  std::vector<std::unique_ptr<Thread>> threads{};  // the first of them are the running block's
  std::size_t block_size = 0;
  Thread* current = nullptr;
  const Kernel* kernel = nullptr;
};

// Never destroyed: its fibers wait for ever, and the end of the process is no time to unwind them.
Grid& TheGrid() {
  static Grid* const grid = new Grid;
  return *grid;
}

[[noreturn]] void Stop(const Place& place, const char* reason) {
  std::fprintf(stderr, "%s:%d: double of the CUDA runtime: %s (block %u, thread %u)\n", place.file,
               place.line, reason, blockIdx.x, threadIdx.x);
  std::abort();
}

void Suspend(State state, const Place& place) {
  Thread* const thread = TheGrid().current;
  thread->state = state;
  thread->place = place;
  thread->scheduler = std::move(thread->scheduler).resume();
}

std::unique_ptr<Thread> MakeThread(unsigned rank) {
  auto thread = std::make_unique<Thread>();
  thread->rank = rank;
  thread->fiber =
      context::fiber(std::allocator_arg, context::protected_fixedsize_stack(kStackBytes),
                     [t = thread.get()](context::fiber&& scheduler) {  // NOLINT: Boost's
                       t->scheduler = std::move(scheduler);
                       while (true) {
                         (*TheGrid().kernel)();
                         Suspend(State::kEnded, {});
                       }
                       return std::move(t->scheduler);
                     });
  return thread;
}

void Resume(Thread& thread) {
  TheGrid().current = &thread;
  threadIdx = thread.index;
  thread.fiber = std::move(thread.fiber).resume();
}

bool SamePlace(const Place& a, const Place& b) {
  return a.line == b.line && std::strcmp(a.file, b.file) == 0;
}

// Lets the block go on if all of it that has not ended waits at one barrier.
bool ReleaseBlock(Grid& grid) {
  const Thread* first = nullptr;
  for (std::size_t i = 0; i < grid.block_size; ++i) {
    const Thread& thread = *grid.threads[i];
    if (thread.state == State::kEnded) continue;
    if (thread.state != State::kAtBlockBarrier) return false;
    if (first == nullptr) first = &thread;
    if (!SamePlace(first->place, thread.place)) Stop(thread.place, "two barriers at once");
  }
  if (first == nullptr) return false;
  for (std::size_t i = 0; i < grid.block_size; ++i) {
    Thread& thread = *grid.threads[i];
    if (thread.state == State::kAtBlockBarrier) thread.state = State::kReady;
  }
  return true;
}

// Whether every lane that `thread` waits for is there, at the same exchange.
bool IsComplete(const Grid& grid, const Thread& thread) {
  const std::size_t base = thread.rank / kWarp * kWarp;
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if ((thread.mask >> lane & 1) == 0) continue;
    if (base + lane >= grid.block_size)
      Stop(thread.place, "the mask names a lane beyond the block");
    const Thread& other = *grid.threads[base + lane];
    if (other.state == State::kEnded) Stop(thread.place, "the mask names a lane that has ended");
    if (other.state != State::kAtWarpBarrier) return false;
    if (other.mask != thread.mask || !SamePlace(other.place, thread.place)) return false;
  }
  return true;
}

bool ReleaseWarps(Grid& grid) {
  bool released = false;
  for (std::size_t i = 0; i < grid.block_size; ++i) {
    Thread& thread = *grid.threads[i];
    if (thread.state != State::kAtWarpBarrier || !IsComplete(grid, thread)) continue;
    const std::size_t base = i / kWarp * kWarp;
    const unsigned mask = thread.mask;
    std::array<std::uint64_t, kWarp> values{};
    for (unsigned lane = 0; lane < kWarp; ++lane) {
      if ((mask >> lane & 1) != 0) values[lane] = grid.threads[base + lane]->given;
    }
    for (unsigned lane = 0; lane < kWarp; ++lane) {
      if ((mask >> lane & 1) == 0) continue;
      grid.threads[base + lane]->taken = values;
      grid.threads[base + lane]->state = State::kReady;
    }
    released = true;
  }
  return released;
}

// What a block finds in its shared memory is not zero on a device either.
void SpoilSharedMemory() {
  if (__start_cuda_double_shared == nullptr) return;
  std::fill(__start_cuda_double_shared, __stop_cuda_double_shared, '\xff');
}

void RunBlock(Grid& grid, Order order) {
  SpoilSharedMemory();
  const std::size_t size = grid.block_size;
  std::size_t ended = 0;
  for (std::size_t i = 0; i < size; ++i) grid.threads[i]->state = State::kReady;
  while (true) {
    for (std::size_t i = 0; i < size; ++i) {
      Thread& thread = *grid.threads[order == Order::kForward ? i : size - 1 - i];
      if (thread.state != State::kReady) continue;
      Resume(thread);
      if (thread.state == State::kEnded) ++ended;
    }
    if (ended == size) return;
    const bool warps_go_on = ReleaseWarps(grid);
    if (!warps_go_on && !ReleaseBlock(grid)) {
      const auto waiting = std::find_if(grid.threads.begin(), grid.threads.end(),
                                        [](const auto& t) { return t->state != State::kEnded; });
      Stop((*waiting)->place, "threads wait for each other at different barriers");
    }
  }
}

}  // namespace

void RunGrid(dim3 blocks, dim3 block, Order order, const Kernel& kernel) {
  Grid& grid = TheGrid();
  grid.block_size = std::size_t{block.x} * block.y * block.z;
  grid.kernel = &kernel;
  gridDim = blocks;
  blockDim = block;
  while (grid.threads.size() < grid.block_size) {
    grid.threads.push_back(MakeThread(static_cast<unsigned>(grid.threads.size())));
  }
  for (std::size_t i = 0; i < grid.block_size; ++i) {
    const unsigned rank = static_cast<unsigned>(i);
    grid.threads[i]->index = {rank % block.x, rank / block.x % block.y, rank / (block.x * block.y)};
  }
  const std::size_t count = std::size_t{blocks.x} * blocks.y * blocks.z;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = order == Order::kForward ? i : count - 1 - i;
    blockIdx = {static_cast<unsigned>(at % blocks.x),
                static_cast<unsigned>(at / blocks.x % blocks.y),
                static_cast<unsigned>(at / blocks.x / blocks.y)};
    RunBlock(grid, order);
  }
  grid.kernel = nullptr;
}

unsigned Lane() { return TheGrid().current->rank % kWarp; }

void BlockBarrier(Place place) { Suspend(State::kAtBlockBarrier, place); }

const std::uint64_t* WarpExchange(unsigned mask, std::uint64_t value, Place place) {
  Thread* const thread = TheGrid().current;
  if ((mask >> Lane() & 1) == 0) Stop(place, "a lane takes part that the mask does not name");
  thread->mask = mask;
  thread->given = value;
  Suspend(State::kAtWarpBarrier, place);
  return thread->taken.data();
}

}  // namespace tactus::cuda_double
