// The queue of a CUDA device, for headers that must not see CUDA's.

#pragma once

struct CUstream_st;

namespace tactus::cuda {

// cudaStream_t. Operations on one stream run in the order in which they were queued.
using Stream = CUstream_st*;

}  // namespace tactus::cuda
