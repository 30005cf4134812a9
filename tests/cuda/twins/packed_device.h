// A table of packed segments in device memory.

#pragma once

#include "cuda/ops/packed_layout.h"
#include "tests/cuda/twins/device_chunks.h"

namespace tactus::cuda {

class DevicePackedChunks {
 public:
  DevicePackedChunks(const SegmentTable& segments, const std::vector<std::uint8_t>& bits)
      : chunks_(ChunksOf(segments)), first_words_(FirstWords(segments, bits)) {}

  kernels::PackedChunks view() const {
    return {.table = chunks_.view(), .first_words = first_words_.span()};
  }

 private:
  DeviceChunks chunks_;
  DeviceArray<std::uint64_t> first_words_;
};

}  // namespace tactus::cuda
