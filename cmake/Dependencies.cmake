# Every outside library, found in one place. scripts/setup installs them; docs/decisions says why each.
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(absl REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(spdlog REQUIRED)

# libtorch: any version by CMAKE_PREFIX_PATH (on a GPU host the folder of the torch package or what it names as its
# cmake_prefix_path); else Debian's 1.13. Its own TorchConfig.cmake is not used: that of a CUDA build changes the flags
# and architectures of our kernels, and links the toolkit's libraries in place of those that libtorch was built with and
# finds by itself.
list(TRANSFORM CMAKE_PREFIX_PATH APPEND /../.. OUTPUT_VARIABLE torch_prefixes)
find_path(TACTUS_TORCH_INCLUDE torch/csrc/api/include/torch/torch.h HINTS ${torch_prefixes} PATH_SUFFIXES include)
find_library(TACTUS_TORCH_LIBRARY torch HINTS ${torch_prefixes} PATH_SUFFIXES lib)
if(NOT TACTUS_TORCH_INCLUDE OR NOT TACTUS_TORCH_LIBRARY)
  message(FATAL_ERROR "libtorch was not found: apt-get install libtorch-dev, or give its folder in CMAKE_PREFIX_PATH")
endif()
cmake_path(GET TACTUS_TORCH_LIBRARY PARENT_PATH torch_folder)
cmake_path(NORMAL_PATH torch_folder)
foreach(part torch_cpu c10 torch_cuda c10_cuda)
  find_library(TACTUS_${part} ${part} PATHS ${torch_folder} NO_DEFAULT_PATH)
endforeach()
add_library(tactus_torch INTERFACE)
target_include_directories(tactus_torch SYSTEM INTERFACE
  ${TACTUS_TORCH_INCLUDE} ${TACTUS_TORCH_INCLUDE}/torch/csrc/api/include)
target_link_libraries(tactus_torch INTERFACE ${TACTUS_TORCH_LIBRARY} ${TACTUS_torch_cpu} ${TACTUS_c10})
if(TACTUS_torch_cuda)
  # Nothing calls it by name: it announces itself when it is loaded. One word, as CMake would merge flags that it meets
  # twice.
  target_link_libraries(tactus_torch INTERFACE
    "-Wl,--push-state,--no-as-needed,${TACTUS_torch_cuda},--pop-state" ${TACTUS_c10_cuda})
  # One process has one NCCL, and libtorch's calls may be newer than the toolkit's, so that cmake/Nccl.cmake shall find
  # the one that came along with libtorch: docs/decisions/0012.
  find_library(NCCL_LIBRARY libnccl.so.2 PATHS ${torch_folder}/../../nvidia/nccl/lib NO_DEFAULT_PATH)
  message(STATUS "libtorch: with CUDA, at ${torch_folder}")
else()
  message(STATUS "libtorch: without CUDA, at ${torch_folder}")
endif()

if(TACTUS_CONTROL_PLANE)
  find_package(Protobuf REQUIRED)
  find_package(OpenSSL REQUIRED COMPONENTS Crypto SSL)
  find_package(gRPC CONFIG REQUIRED)
  find_package(Boost 1.74 REQUIRED COMPONENTS context)
  find_package(SQLite3 REQUIRED)
  find_package(yaml-cpp REQUIRED)
  find_package(CLI11 CONFIG REQUIRED)
  find_package(prometheus-cpp CONFIG REQUIRED)
endif()
if(TACTUS_TESTS)
  find_package(GTest REQUIRED)
endif()
