// PackedTable: a table of packed segments as a kernel takes it, one chunk a block.

#pragma once

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "cuda/ops/packed_layout.h"
#include "cuda/ops/segment_chunks.h"

namespace tactus::cuda::kernels {

static_assert(kChunkLength % 32 == 0);  // so that chunks are cut between words

struct PackedTable {
  const SegmentChunk* chunks;
  const std::uint32_t* first;  // chunk of each segment
  const std::uint64_t* first_words;

  // Where in its segment the block's chunk begins. [elements]
  __device__ std::size_t Index(const SegmentChunk& chunk) const {
    return (blockIdx.x - first[chunk.segment]) * kChunkLength;
  }
  // The first word of the block's chunk in the message.
  __device__ std::uint64_t Word(const SegmentChunk& chunk, unsigned bits) const {
    return first_words[chunk.segment] + Index(chunk) / 32 * bits;
  }
};

inline PackedTable TableOf(const PackedChunks& chunks) {
  TACTUS_CHECK(chunks.first_words.size() == chunks.table.first.size());
  return {.chunks = chunks.table.chunks.data(),
          .first = chunks.table.first.data(),
          .first_words = chunks.first_words.data()};
}

}  // namespace tactus::cuda::kernels
