// Memory of a CUDA device for CudaDevice's own needs: what operations leave behind between
// launches.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cuda/ops/segment_chunks.h"
#include "cuda/ops/segments.h"
#include "cuda/ops/stream.h"

struct CUevent_st;

namespace tactus::cuda {

// Bytes that grow when more are asked for. The device is the calling thread's current one. Stops
// the process when the memory cannot be had.
//
// What is outgrown is freed at the end: to free waits for all that the device does, collectives
// included, and these wait for other members, of whom one may be doing the same.
class CudaBlock {
 public:
  CudaBlock() = default;
  CudaBlock(const CudaBlock&) = delete;
  CudaBlock& operator=(const CudaBlock&) = delete;
  ~CudaBlock();

  // `length` elements, for what is queued before more are asked for. What was there is lost then.
  template <class T>
  std::span<T> Get(std::size_t length) {
    return {static_cast<T*>(Reserve(length * sizeof(T))), length};
  }

 private:
  void* Reserve(std::size_t bytes);

  std::vector<void*> memory_{};  // the last one is in use
  std::size_t bytes_ = 0;        // of that one
};

// A point in a stream that the host can wait for.
class CudaEvent {
 public:
  CudaEvent();
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  ~CudaEvent();

  void Record(Stream stream);
  // Returns once what was on the stream at the last Record is done; at once if there was none.
  void Wait();

 private:
  CUevent_st* event_ = nullptr;
};

// Chunk tables in device memory, uploaded when first asked for and kept: the same few ranges come
// back in every round.
class CudaTables {
 public:
  // The chunks of `parts`, uploaded on `stream`. The view holds until kTablesMax others were asked
  // for.
  kernels::SegmentChunks Get(Stream stream, std::span<const SegmentPart> parts,
                             std::size_t segments);

 private:
  static constexpr std::size_t kTablesMax = 64;

  struct Table {
    std::vector<SegmentPart> parts{};
    std::size_t segments = 0;
    std::uint64_t last_use = 0;
    std::size_t chunks = 0;
    CudaBlock chunk_block{};
    CudaBlock first_block{};

    kernels::SegmentChunks View();
  };

  Table& Room();

  std::vector<std::unique_ptr<Table>> tables_{};
  std::uint64_t uses_ = 0;
};

}  // namespace tactus::cuda
