// TACTUS_HOST_DEVICE: a function that a loop in a .cc and a kernel in a .cu share, so that both
// round alike because they are one.

#pragma once

#if defined(__CUDACC__)
#define TACTUS_HOST_DEVICE __host__ __device__
#else
#define TACTUS_HOST_DEVICE
#endif
