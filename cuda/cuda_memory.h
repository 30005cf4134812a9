// Memory of a CUDA device and of the host beside it, for CudaDevice's own needs: what operations
// leave behind between launches, and staging.

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

// Bytes that grow when more are asked for and are freed at the end. The device is the calling
// thread's current one. Stops the process when the memory cannot be had.
class CudaBlock {
 public:
  enum class Kind {
    kDevice,
    kPinned,  // of the host; the device reads and writes it as well
  };

  explicit CudaBlock(Kind kind) : kind_(kind) {}
  CudaBlock(const CudaBlock&) = delete;
  CudaBlock& operator=(const CudaBlock&) = delete;
  ~CudaBlock();

  // `length` elements, valid until more are asked for. What was there is lost then; whoever still
  // uses it on the device is waited for.
  template <class T>
  std::span<T> Get(std::size_t length) {
    return {static_cast<T*>(Reserve(length * sizeof(T))), length};
  }

 private:
  void* Reserve(std::size_t bytes);
  void Free();

  const Kind kind_;
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
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
    CudaBlock chunk_block{CudaBlock::Kind::kDevice};
    CudaBlock first_block{CudaBlock::Kind::kDevice};

    kernels::SegmentChunks View();
  };

  Table& Room();

  std::vector<std::unique_ptr<Table>> tables_{};
  std::uint64_t uses_ = 0;
};

}  // namespace tactus::cuda
