// Where the codes of a segment stand in a packed message.
//
// Every segment starts at a word of its own. Its element i has the bits i * b to i * b + b - 1 of
// what follows there, low bits first; what is left of its last word is 0. So 32 elements of b bits
// fill b whole words, and a cut at a multiple of 32 elements is one between words. Padding between
// segments is not sent.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cuda/ops/host_device.h"
#include "cuda/ops/segment_chunks.h"
#include "cuda/ops/segments.h"

namespace tactus::cuda {

// Words of `length` codes of `bits` each. [words]
TACTUS_HOST_DEVICE constexpr std::size_t PackedWords(std::size_t length, unsigned bits) {
  return length / 32 * bits + (length % 32 * bits + 31) / 32;
}

// The first word of every segment and, at the end, the length of the message.
// [words], [segments + 1]
//
// bits  of a code, one a segment; 0: the segment is not sent
std::vector<std::uint64_t> FirstWords(const SegmentTable& segments,
                                      std::span<const std::uint8_t> bits);

// The same with one number of bits for all segments.
std::vector<std::uint64_t> FirstWords(const SegmentTable& segments, unsigned bits);

namespace kernels {

// A table whose segments are packed, in device memory.
struct PackedChunks {
  SegmentChunks table{};
  std::span<const std::uint64_t> first_words{};  // [segments + 1], from FirstWords
};

}  // namespace kernels

}  // namespace tactus::cuda
