// Devices that are lost: after some errors no call of the CUDA runtime succeeds any more, and the
// process can only end. How it ends is the better for knowing.

#pragma once

#include <cuda_runtime.h>

#include <atomic>

#include "cuda/ops/require.cuh"

namespace tactus::cuda {

// Set by the first sticky error that anybody here meets, and never cleared: the process has no
// device any more. Any thread.
inline std::atomic<bool> device_is_lost = false;

// Whether every later call of the process fails with the same error, which cudaGetLastError does
// not clear.
//
// Source: CUDA 13.0's driver_types.h: the errors after which "the process must be terminated and
// relaunched"; memory and links that failed for good are added.
inline bool IsSticky(cudaError_t error) {
  constexpr int kContained = 226;         // cudaErrorContained and cudaErrorTensorMemoryLeak, which
  constexpr int kTensorMemoryLeak = 721;  // toolkits before 12.8 have no names for
  switch (static_cast<int>(error)) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case kContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case kTensorMemoryLeak:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
      return true;
    default:
      return false;
  }
}

// Sets device_is_lost where the error says so. Returns the error.
inline cudaError_t Noted(cudaError_t error) {
  if (IsSticky(error)) device_is_lost = true;
  return error;
}

// kernels::Require for calls without a result that anybody goes on with, as destructors make them:
// a lost device has been told of, or will be by the next operation, and they have nothing to add.
inline void RequireUnlessLost(cudaError_t error, const char* call) {
  if (Noted(error) == cudaSuccess || device_is_lost) return;
  kernels::Require(error, call);
}

}  // namespace tactus::cuda
