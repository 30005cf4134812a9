// Every operation of cuda/ops, as the benchmark calls it: on which buffers, and how many bytes it
// cannot do without.

#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "bench/kernels/workspace.h"
#include "cuda/ops/stream.h"

namespace tactus::bench {

// One operation, queued on a stream over buffers that it was prepared with. May be called again and
// again: what it changes in place stays finite.
using Call = std::function<void(cuda::Stream)>;

// What an operation is prepared for.
struct Setting {
  std::size_t n = 0;                          // [elements] of one buffer
  const SegmentedBuffer* segments = nullptr;  // where it works by segments: those of n elements
  Workspace& workspace;                       // where its buffers come from
};

// What is aimed at: this share of the copy's bytes a second, of operations that pass over their
// buffers once from kAimBytes of a buffer on, of reductions, which end with a block that waits for
// all others, from kReductionAimBytes on. A device that does 4 TB/s is through with less in some
// microseconds, most of which are the launch's; there a share is told without a verdict.
inline constexpr double kAimShare = 0.9;
inline constexpr std::size_t kAimBytes = std::size_t{64} << 20;
inline constexpr std::size_t kReductionAimBytes = std::size_t{256} << 20;

struct Operation {
  std::string name{};
  // What it has to read and write, the tables of segments aside: every input once and every output
  // once, in bytes for n elements. LAMB goes over its buffers twice, as it has to know the norms.
  std::string formula{};
  double bytes_per_element = 0;  // the formula's; 0: a few numbers, and no bandwidth is told
  bool by_segments = false;
  std::size_t aim_bytes = kAimBytes;  // of a buffer, from which on there is an aim
  std::function<Call(const Setting&)> prepare{};
};

// All of them, in the order in which they are told.
std::vector<Operation> Operations();

}  // namespace tactus::bench
