// Memory of a CUDA device for CudaDevice's own needs: what operations leave behind between
// launches.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/time.h"
#include "cuda/ops/segment_chunks.h"
#include "cuda/ops/segments.h"
#include "cuda/ops/stream.h"

struct CUevent_st;

namespace tactus::cuda {

// The memory of one device, whichever device the calling thread used before; it uses this one from
// then on.
class CudaMemory {
 public:
  explicit CudaMemory(int device) : device_(device) {}

  // See Device::OnMemoryShort.
  void OnShort(std::function<void()> give_back) { give_back_ = std::move(give_back); }

  // Of `length` elements of `size` bytes, both above 0, for cudaFree; what is in them nobody knows.
  // Where there is no room even after whoever keeps memory was asked for it, the process stops and
  // says what was asked for.
  void* Take(std::size_t length, std::size_t size) const;
  // Null where there is no room at once.
  void* TakeIfFree(std::size_t length, std::size_t size) const;

  int device() const { return device_; }

 private:
  const int device_;
  std::function<void()> give_back_{};
};

// Bytes that grow when more are asked for.
//
// What is outgrown is freed at the end: to free waits for all that the device does, collectives
// included, and these wait for other members, of whom one may be doing the same.
class CudaBlock {
 public:
  // `memory` outlives the block.
  explicit CudaBlock(const CudaMemory& memory) : of_(memory) {}
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

  const CudaMemory& of_;
  std::vector<void*> memory_{};  // the last one is in use
  std::size_t bytes_ = 0;        // of that one
};

// Counters of reductions on one stream: zero, as every reduction leaves them.
class CudaCounters {
 public:
  explicit CudaCounters(const CudaMemory& memory) : block_(memory) {}

  std::span<std::uint32_t> Get(Stream stream, std::size_t length);

 private:
  CudaBlock block_;
  std::size_t cleared_ = 0;
};

// A point in a stream that the host can wait for, and that has a time. A device that is lost
// reaches every point.
class CudaEvent {
 public:
  // Of that device, by CUDA's index; so are its streams.
  explicit CudaEvent(int device);
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  ~CudaEvent();

  void Record(Stream stream);
  // Returns once what was on the stream at the last Record is done; at once if there was none.
  void Wait();
  // The device's time from this point to a later one. Requires: both were recorded and waited for.
  Duration Until(const CudaEvent& later) const;

 private:
  CUevent_st* event_ = nullptr;
};

// Chunk tables in device memory, uploaded when first asked for and kept: the same few ranges come
// back in every round.
class CudaTables {
 public:
  // `memory` outlives the tables.
  explicit CudaTables(const CudaMemory& memory) : memory_(memory) {}

  // The chunks of `parts`, uploaded on `stream`. The view holds until kTablesMax others were asked
  // for.
  kernels::SegmentChunks Get(Stream stream, std::span<const SegmentPart> parts,
                             std::size_t segments);

 private:
  static constexpr std::size_t kTablesMax = 64;

  struct Table {
    explicit Table(const CudaMemory& memory)
        : chunk_block(memory), first_block(memory), uploaded(memory.device()) {}

    std::vector<SegmentPart> parts{};
    std::size_t segments = 0;
    std::uint64_t last_use = 0;
    ChunkTable on_host{};  // what the device may still be reading until `uploaded`
    CudaBlock chunk_block;
    CudaBlock first_block;
    CudaEvent uploaded;

    kernels::SegmentChunks View();
  };

  Table& Room();

  const CudaMemory& memory_;
  std::vector<std::unique_ptr<Table>> tables_{};
  std::uint64_t uses_ = 0;
};

}  // namespace tactus::cuda
