#include "cuda/cuda_memory.h"

#include <algorithm>

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
  // Pageable memory: the runtime has copied it away when the call returns.
  Require(cudaMemcpyAsync(to.data(), from.data(), to.size_bytes(), cudaMemcpyHostToDevice, stream),
          "cudaMemcpyAsync");
}

}  // namespace

// A failure is that of something before: the memory goes with the process then.
CudaBlock::~CudaBlock() {
  for (void* const memory : memory_) static_cast<void>(cudaFree(memory));
}

void* CudaBlock::Reserve(std::size_t bytes) {
  if (bytes > bytes_) {
    // So that a sequence of sizes needs few allocations, and all of them together little more than
    // the last.
    bytes_ = 2 * bytes;
    void* grown = nullptr;
    Require(cudaMalloc(&grown, bytes_), "cudaMalloc");
    memory_.push_back(grown);
  }
  return memory_.empty() ? nullptr : memory_.back();
}

CudaEvent::CudaEvent() {
  Require(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
}

CudaEvent::~CudaEvent() { static_cast<void>(cudaEventDestroy(event_)); }

void CudaEvent::Record(Stream stream) {
  Require(cudaEventRecord(event_, stream), "cudaEventRecord");
}

void CudaEvent::Wait() { Require(cudaEventSynchronize(event_), "cudaEventSynchronize"); }

kernels::SegmentChunks CudaTables::Table::View() {
  return {.chunks = chunk_block.Get<SegmentChunk>(chunks),
          .first = first_block.Get<std::uint32_t>(segments + 1)};
}

kernels::SegmentChunks CudaTables::Get(Stream stream, std::span<const SegmentPart> parts,
                                       std::size_t segments) {
  ++uses_;
  for (const auto& table : tables_) {
    if (table->segments != segments || !SameParts(table->parts, parts)) continue;
    table->last_use = uses_;
    return table->View();
  }
  const ChunkTable chunks = ChunksOf(parts, segments);
  Table& table = Room();
  table.parts.assign(parts.begin(), parts.end());
  table.segments = segments;
  table.last_use = uses_;
  table.chunks = chunks.chunks.size();
  Upload(stream, chunks.chunks, table.chunk_block.Get<SegmentChunk>(table.chunks));
  Upload(stream, chunks.first, table.first_block.Get<std::uint32_t>(segments + 1));
  return table.View();
}

// A new table, or the one not used for longest. What is queued with it comes before the upload on
// the same stream.
CudaTables::Table& CudaTables::Room() {
  if (tables_.size() < kTablesMax) return *tables_.emplace_back(std::make_unique<Table>());
  return **std::min_element(tables_.begin(), tables_.end(),
                            [](const auto& a, const auto& b) { return a->last_use < b->last_use; });
}

}  // namespace tactus::cuda
