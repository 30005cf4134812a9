#include "cuda/cuda_memory.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "cuda/lost_device.cuh"
#include "cuda/ops/require.cuh"

namespace tactus::cuda {
namespace {

using kernels::Require;

bool SameParts(std::span<const SegmentPart> a, std::span<const SegmentPart> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const SegmentPart& x, const SegmentPart& y) {
                      return x.segment == y.segment && x.offset == y.offset && x.length == y.length;
                    });
}

template <class T>
void Upload(Stream stream, const std::vector<T>& from, std::span<T> to) {
  if (from.empty()) return;
  Require(cudaMemcpyAsync(to.data(), from.data(), to.size_bytes(), cudaMemcpyHostToDevice, stream),
          "cudaMemcpyAsync");
}

}  // namespace

void* CudaMemory::TakeIfFree(std::size_t length, std::size_t size) const {
  if (length > std::numeric_limits<std::size_t>::max() / size) return nullptr;
  Require(cudaSetDevice(device_), "cudaSetDevice");
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, length * size);
  if (error == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());  // it is not the last word
    return nullptr;
  }
  Require(error, "cudaMalloc");
  return memory;
}

void* CudaMemory::Take(std::size_t length, std::size_t size) const {
  void* memory = TakeIfFree(length, size);
  if (memory == nullptr && give_back_) {
    give_back_();
    memory = TakeIfFree(length, size);
  }
  if (memory != nullptr) return memory;
  std::fprintf(stderr, "cuda: cuda:%d: %zu numbers of %zu bytes cannot be had: out of memory\n",
               device_, length, size);
  std::abort();
}

// A failure is that of something before: the memory goes with the process then.
CudaBlock::~CudaBlock() {
  for (void* const memory : memory_) static_cast<void>(cudaFree(memory));
}

void* CudaBlock::Reserve(std::size_t bytes) {
  if (bytes > bytes_) {
    // Twice what there was, so that a sequence of sizes needs few allocations and all of them
    // together little more than the last. It is a comfort, for which nobody is asked to give memory
    // back.
    std::size_t room = std::max(bytes, 2 * bytes_);
    void* grown = room > bytes ? of_.TakeIfFree(room, 1) : nullptr;
    if (grown == nullptr) {
      room = bytes;
      grown = of_.Take(room, 1);
    }
    bytes_ = room;
    memory_.push_back(grown);
  }
  return memory_.empty() ? nullptr : memory_.back();
}

std::span<std::uint32_t> CudaCounters::Get(Stream stream, std::size_t length) {
  const std::span<std::uint32_t> counters = block_.Get<std::uint32_t>(length);
  if (length > cleared_) {
    Require(cudaMemsetAsync(counters.data(), 0, counters.size_bytes(), stream), "cudaMemsetAsync");
    cleared_ = length;
  }
  return counters;
}

CudaEvent::CudaEvent(int device) {
  Require(cudaSetDevice(device), "cudaSetDevice");
  Require(cudaEventCreateWithFlags(&event_, cudaEventDefault), "cudaEventCreateWithFlags");
}

CudaEvent::~CudaEvent() { static_cast<void>(cudaEventDestroy(event_)); }

void CudaEvent::Record(Stream stream) {
  RequireUnlessLost(cudaEventRecord(event_, stream), "cudaEventRecord");
}

void CudaEvent::Wait() { RequireUnlessLost(cudaEventSynchronize(event_), "cudaEventSynchronize"); }

Duration CudaEvent::Until(const CudaEvent& later) const {
  float milliseconds = 0;
  Require(cudaEventElapsedTime(&milliseconds, event_, later.event_), "cudaEventElapsedTime");
  return Seconds(static_cast<double>(milliseconds) * 1e-3);
}

kernels::SegmentChunks CudaTables::Table::View() {
  return {.chunks = chunk_block.Get<SegmentChunk>(on_host.chunks.size()),
          .first = first_block.Get<std::uint32_t>(on_host.first.size())};
}

kernels::SegmentChunks CudaTables::Get(Stream stream, std::span<const SegmentPart> parts,
                                       std::size_t segments) {
  ++uses_;
  for (const auto& table : tables_) {
    if (table->segments != segments || !SameParts(table->parts, parts)) continue;
    table->last_use = uses_;
    return table->View();
  }
  Table& table = Room();
  table.uploaded.Wait();  // that of the table before, many others ago
  table.parts.assign(parts.begin(), parts.end());
  table.segments = segments;
  table.last_use = uses_;
  table.on_host = ChunksOf(parts, segments);
  Upload(stream, table.on_host.chunks,
         table.chunk_block.Get<SegmentChunk>(table.on_host.chunks.size()));
  Upload(stream, table.on_host.first,
         table.first_block.Get<std::uint32_t>(table.on_host.first.size()));
  table.uploaded.Record(stream);
  return table.View();
}

// A new table, or the one not used for longest. What is queued with it comes before the upload on
// the same stream.
CudaTables::Table& CudaTables::Room() {
  if (tables_.size() < kTablesMax) return *tables_.emplace_back(std::make_unique<Table>(memory_));
  return **std::min_element(tables_.begin(), tables_.end(),
                            [](const auto& a, const auto& b) { return a->last_use < b->last_use; });
}

}  // namespace tactus::cuda
