// Device memory for one measurement, and the tables of segments that operations take.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cuda/ops/packed_layout.h"
#include "cuda/ops/segment_chunks.h"
#include "cuda/ops/segments.h"
#include "cuda/ops/stream.h"

namespace tactus::bench {

// Memory of a device, from which buffers are taken one behind the other and given back all at once.
// A call of CUDA's that fails stops the process. One thread.
class Workspace {
 public:
  // `bytes` of the current device's memory. What is filled is filled on `stream`.
  Workspace(std::size_t bytes, cuda::Stream stream);
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  // Gives back all that was taken, and forgets that something did not fit.
  void Reset();
  // False once something was asked for that there was no room for: what was taken since may overlap
  // and must not be used.
  bool fits() const { return fits_; }
  std::size_t used_bytes() const { return used_; }

  // Buffers of n elements, aligned to 256 bytes.
  std::span<float> Normal(std::size_t n);          // standard normal numbers
  std::span<float> Positive(std::size_t n);        // their magnitudes
  std::span<float> Zero(std::size_t n);            // zeros
  std::span<std::uint16_t> Halves(std::size_t n);  // finite in both 16-bit formats
  std::span<std::uint32_t> Words(std::size_t n);   // random bits
  std::span<std::uint8_t> Bytes(std::size_t n, std::uint8_t value);
  std::span<double> Doubles(std::size_t n);  // ones

  // Copies host memory to the device; waits for it.
  template <class T>
  std::span<T> Upload(const std::vector<T>& values) {
    const std::span<std::byte> bytes = Take(values.size() * sizeof(T));
    if (fits_) CopyIn(std::as_bytes(std::span(values)), bytes);
    return {reinterpret_cast<T*>(bytes.data()), values.size()};
  }

 private:
  std::span<std::byte> Take(std::size_t bytes);
  void CopyIn(std::span<const std::byte> from, std::span<std::byte> to);
  // Repeats a pattern of the device's over a buffer.
  void Repeat(std::span<const std::byte> pattern, std::span<std::byte> over);
  template <class T>
  std::span<T> TakeFilled(std::size_t n, std::span<const std::byte> pattern);

  const cuda::Stream stream_;
  std::byte* memory_ = nullptr;
  std::size_t length_ = 0;
  std::size_t kept_ = 0;  // the patterns, at the start
  std::size_t used_ = 0;
  bool fits_ = true;
  std::span<const std::byte> normal_{};
  std::span<const std::byte> positive_{};
  std::span<const std::byte> halves_{};
  std::span<const std::byte> words_{};
  std::span<const std::byte> doubles_{};
};

// A table of equally long segments that fill a buffer of n elements, in host memory and what
// kernels need of it in device memory.
class SegmentedBuffer {
 public:
  // segments  >= 1, each of at least one element: n >= segments * kSegmentAlignment
  SegmentedBuffer(std::size_t n, std::size_t segments, Workspace& workspace);

  std::size_t segments() const { return table_.size(); }
  std::size_t elements() const { return elements_; }  // of all segments, without padding
  std::size_t flat_length() const { return cuda::FlatLength(table_); }
  std::size_t chunks() const { return chunks_.chunks.size(); }
  cuda::kernels::SegmentChunks view() const { return chunks_; }
  // The table with codes of so many bits each, and the words of a message.
  cuda::kernels::PackedChunks Packed(unsigned bits, Workspace& workspace) const;
  std::size_t Words(unsigned bits) const { return cuda::FirstWords(table_, bits).back(); }

 private:
  cuda::SegmentTable table_;
  std::size_t elements_ = 0;
  cuda::kernels::SegmentChunks chunks_;
};

}  // namespace tactus::bench
