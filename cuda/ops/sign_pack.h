// One bit an element, with error feedback: of a vector its signs are sent and one length; what that
// leaves out is added to the next vector.
//
//   q = x + e          compensated
//   sigma = ||q||_2 / sqrt(n)       over the n elements that share it
//   bit = q >= 0       sent = sigma if bit, else -sigma
//   e <- q - sent
//
// Worker and server of a two-phase exchange do the same, each with an error of its own; the
// server's x is the mean of what the workers sent. The bits stand as packed_layout.h says, one an
// element, the first in a word's lowest bit. Padding is neither measured nor sent, and stays zero
// everywhere.
//
// Source: [deepspeed] deepspeed/runtime/comm/nccl.py.
// Differs: there padding is measured too, and the first bit of eight is the highest.

#pragma once

#include <cstdint>
#include <span>

#include "cuda/ops/packed_layout.h"
#include "cuda/ops/segments.h"
#include "cuda/ops/stream.h"

namespace tactus::cuda {

// Which elements share one sigma: a segment's, or all of the table's, for vectors whose segments
// were brought to one size before.
enum class SignSharing : std::uint8_t { kSegment, kTable };

// What is encoded. Flat buffers of equal lengths in the layout of one table, not overlapping.
struct SignSource {
  std::span<const float> input{};  // x, finite: whoever encodes has looked, see extremes.h
  std::span<float> error{};        // e; zero before the first vector
};

// What is sent of a table of segments.
struct SignMessage {
  std::span<const std::uint32_t> words{};  // [FirstWords(segments, 1).back()]
  std::span<const float> scales{};         // sigma, [segments]
};

namespace host {

// scales <- sigma of every segment, [segments]; with kTable they are all one. q is rounded to
// float32 and its squares are added up in float64; sigma is rounded once. 0 where q is 0 or there
// is no element. Changes nothing else.
//
// Tolerance against a twin: 1 ulp. The sums of squares differ by 5e-12 of themselves (see
// host::SquaredNorm), which moves the root by far less than half an ulp, so the two can only round
// to neighbours. All else here is bit-identical given the scales.
void SignScales(const SegmentTable& segments, SignSharing sharing, const SignSource& source,
                std::span<float> scales);

// words <- the signs of q, with the unused bits of each segment's last word 0, and e <- q - sent,
// each rounded once to float32. words [FirstWords(segments, 1).back()]. At a sigma of 0 what is
// sent counts for nothing and e <- q. Tolerance against a twin: none, bit-identical.
void SignPack(const SegmentTable& segments, const SignSource& source, std::span<const float> scales,
              std::span<std::uint32_t> words);

// out <- what was sent, sigma or -sigma; `out` in the layout of the table. Padding is left as it
// is. Tolerance against a twin: none, bit-identical.
void SignUnpack(const SegmentTable& segments, const SignMessage& message, std::span<float> out);

// out <- out + weight * what was sent: the product in float64, rounded once to float32, then the
// sum, rounded once. Messages added in the order of ranks give all members equal bits. Tolerance
// against a twin: none, bit-identical.
void SignAdd(const SegmentTable& segments, const SignMessage& message, double weight,
             std::span<float> out);

}  // namespace host

namespace kernels {

// What SignScales writes.
struct SignScalesInto {
  std::span<float> scales{};  // [segments]
  SumsInto norms{};           // scratch: a sum a segment, a partial a chunk
};

// The operations of the host, queued on `stream`: all spans are device memory, `chunks` those of
// the whole table with FirstWords(segments, 1). A launch that cannot be queued stops the process.

void SignScales(Stream stream, const SegmentChunks& chunks, SignSharing sharing,
                const SignSource& source, const SignScalesInto& into);

void SignPack(Stream stream, const PackedChunks& chunks, const SignSource& source,
              std::span<const float> scales, std::span<std::uint32_t> words);
void SignUnpack(Stream stream, const PackedChunks& chunks, const SignMessage& message,
                std::span<float> out);
void SignAdd(Stream stream, const PackedChunks& chunks, const SignMessage& message, double weight,
             std::span<float> out);

}  // namespace kernels
}  // namespace tactus::cuda
