// A table's chunks in device memory, and room for the sums over them.

#pragma once

#include "cuda/ops/segment_chunks.h"
#include "tests/cuda/twins/twin_test.h"

namespace tactus::cuda {

class DeviceChunks {
 public:
  explicit DeviceChunks(const ChunkTable& table) : chunks_(table.chunks), first_(table.first) {}

  kernels::SegmentChunks view() const { return {.chunks = chunks_.span(), .first = first_.span()}; }

 private:
  DeviceArray<SegmentChunk> chunks_;
  DeviceArray<std::uint32_t> first_;
};

// What reductions count with.
class DeviceCounters {
 public:
  explicit DeviceCounters(std::size_t rows)
      : counters_(std::vector<std::uint32_t>(kernels::CountersFor(rows))) {}

  std::span<std::uint32_t> span() const { return counters_.span(); }
  // Fails the test where a reduction has not left zeros behind.
  void ExpectZero() const {
    for (const std::uint32_t counter : counters_.Read()) EXPECT_EQ(counter, 0u);
  }

 private:
  DeviceArray<std::uint32_t> counters_;
};

// `count` sums with `partials` doubles of scratch.
class DeviceSums {
 public:
  DeviceSums(std::size_t count, std::size_t partials)
      : sums_(DeviceArray<double>::OfLength(count)),
        partials_(DeviceArray<double>::OfLength(partials)),
        counters_(count) {}
  DeviceSums(const std::vector<double>& sums, std::size_t partials)
      : sums_(sums), partials_(DeviceArray<double>::OfLength(partials)), counters_(sums.size()) {}

  kernels::SumsInto into() const {
    return {.sums = sums_.span(), .partials = partials_.span(), .counters = counters_.span()};
  }
  std::vector<double> Read() const {
    partials_.Read();  // for its guard words
    counters_.ExpectZero();
    return sums_.Read();
  }

 private:
  DeviceArray<double> sums_;
  DeviceArray<double> partials_;
  DeviceCounters counters_;  // at least
};

// Segments of lengths around warps, blocks and chunks, an empty one, and one of several chunks.
inline SegmentTable TwinSegments() {
  SegmentTable segments;
  for (const std::size_t length : {1, 31, 0, 32, 33, 1023, 1025, 8191, 8192, 8193, 40'000, 7}) {
    segments.push_back({.length = length});
  }
  AssignOffsets(segments);
  return segments;
}

}  // namespace tactus::cuda
