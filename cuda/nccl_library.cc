// NCCL's functions, which pass on to the library's own. It is looked for when the first of them is
// called, so that a program without a GPU needs none, and one with libtorch uses libtorch's: a
// process has one NCCL.
//
// The build hides them (CMakeLists.txt): what libtorch calls by the same names goes past this.

#include <dlfcn.h>
#include <nccl.h>

#include <string>
#include <type_traits>

#include "cuda/nccl_capabilities.h"

namespace {

using Version = ncclResult_t (*)(int*);

struct Library {
  void* handle = nullptr;    // to the process's end
  std::string missing = "";  // why there is none
};

// Where the process has one already, the loader takes that for the name; a second one is not
// opened beside it, whatever it is.
Library Open() {
  Library library{.missing = "no NCCL"};
  const bool there = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD) != nullptr;
  for (const char* const name : {"libnccl.so.2", TACTUS_NCCL_LIBRARY}) {
    void* const handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      library.missing += std::string("; ") + ::dlerror();
      continue;
    }
    const auto version_of = reinterpret_cast<Version>(::dlsym(handle, "ncclGetVersion"));
    int version = 0;
    // An older one refuses the structures of a newer header, or takes them for what they are not.
    if (version_of != nullptr && version_of(&version) == ncclSuccess &&
        version >= NCCL_VERSION_CODE) {
      return {.handle = handle};
    }
    library.missing += std::string("; ") + name + " is " +
                       tactus::cuda::nccl::VersionText(version) + ", needed is " +
                       tactus::cuda::nccl::VersionText(NCCL_VERSION_CODE) + " or newer";
    if (there) break;
    ::dlclose(handle);
  }
  return library;
}

const Library& Opened() {
  static const Library library = Open();
  return library;
}

template <typename Result, typename... Arguments>
Result Absent(Arguments...) {
  if constexpr (std::is_same_v<Result, ncclResult_t>) {
    return ncclSystemError;
  } else {
    return Opened().missing.c_str();
  }
}

// The library's function of a name, or what is called in place of it.
template <typename Result, typename... Arguments>
auto Find(Result (*)(Arguments...), const char* name) {
  void* const found = Opened().handle == nullptr ? nullptr : ::dlsym(Opened().handle, name);
  return found == nullptr ? &Absent<Result, Arguments...>
                          : reinterpret_cast<Result (*)(Arguments...)>(found);
}

}  // namespace

ncclResult_t ncclGetVersion(int* version) {
  static const auto call = Find(&ncclGetVersion, "ncclGetVersion");
  return call(version);
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static const auto call = Find(&ncclGetUniqueId, "ncclGetUniqueId");
  return call(id);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  static const auto call = Find(&ncclCommInitRankConfig, "ncclCommInitRankConfig");
  return call(communicator, size, id, rank, config);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* error) {
  static const auto call = Find(&ncclCommGetAsyncError, "ncclCommGetAsyncError");
  return call(communicator, error);
}

ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  static const auto call = Find(&ncclCommFinalize, "ncclCommFinalize");
  return call(communicator);
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  static const auto call = Find(&ncclCommDestroy, "ncclCommDestroy");
  return call(communicator);
}

ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  static const auto call = Find(&ncclCommAbort, "ncclCommAbort");
  return call(communicator);
}

ncclResult_t ncclMemAlloc(void** memory, size_t size) {
  static const auto call = Find(&ncclMemAlloc, "ncclMemAlloc");
  return call(memory, size);
}

ncclResult_t ncclMemFree(void* memory) {
  static const auto call = Find(&ncclMemFree, "ncclMemFree");
  return call(memory);
}

ncclResult_t ncclCommRegister(ncclComm_t communicator, void* memory, size_t size, void** handle) {
  static const auto call = Find(&ncclCommRegister, "ncclCommRegister");
  return call(communicator, memory, size, handle);
}

ncclResult_t ncclCommDeregister(ncclComm_t communicator, void* handle) {
  static const auto call = Find(&ncclCommDeregister, "ncclCommDeregister");
  return call(communicator, handle);
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t communicator, cudaStream_t stream) {
  static const auto call = Find(&ncclAllReduce, "ncclAllReduce");
  return call(from, to, count, type, operation, communicator, stream);
}

ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t communicator, cudaStream_t stream) {
  static const auto call = Find(&ncclBroadcast, "ncclBroadcast");
  return call(from, to, count, type, root, communicator, stream);
}

ncclResult_t ncclReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                        ncclRedOp_t operation, int root, ncclComm_t communicator,
                        cudaStream_t stream) {
  static const auto call = Find(&ncclReduce, "ncclReduce");
  return call(from, to, count, type, operation, root, communicator, stream);
}

ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclComm_t communicator, cudaStream_t stream) {
  static const auto call = Find(&ncclAllGather, "ncclAllGather");
  return call(from, to, count, type, communicator, stream);
}

ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  static const auto call = Find(&ncclSend, "ncclSend");
  return call(from, count, type, peer, communicator, stream);
}

ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  static const auto call = Find(&ncclRecv, "ncclRecv");
  return call(to, count, type, peer, communicator, stream);
}

ncclResult_t ncclGroupStart() {
  static const auto call = Find(&ncclGroupStart, "ncclGroupStart");
  return call();
}

ncclResult_t ncclGroupEnd() {
  static const auto call = Find(&ncclGroupEnd, "ncclGroupEnd");
  return call();
}

const char* ncclGetErrorString(ncclResult_t result) {
  static const auto call = Find(&ncclGetErrorString, "ncclGetErrorString");
  return call(result);
}

// What is not there is said by the function above.
const char* ncclGetLastError(ncclComm_t communicator) {
  if (Opened().handle == nullptr) return nullptr;
  static const auto call = Find(&ncclGetLastError, "ncclGetLastError");
  return call(communicator);
}
