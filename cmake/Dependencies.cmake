# Every outside library, found in one place. scripts/setup installs them; docs/decisions says why each. What is missing
# is told all at once, with where it was looked for.
find_package(Threads REQUIRED)
set(tactus_missing)

# tactus_need(package what): finds a package, or remembers that `what` is missing.
function(tactus_need package what)
  find_package(${package} QUIET ${ARGN})
  if(NOT ${package}_FOUND)
    set(tactus_missing ${tactus_missing} ${what} PARENT_SCOPE)
  endif()
endfunction()

# Of the worker's side.
tactus_need(ZLIB "zlib (zlib1g-dev)")
tactus_need(absl "Abseil (libabsl-dev)")
include(StaticAbseil)
# Into what is linked with it, as libtactus_sdk.so is for hosts that have none.
set(Boost_USE_STATIC_LIBS ON)
if(TACTUS_CONTROL_PLANE OR SKBUILD)
  tactus_need(Boost "Boost.Context (libboost-context-dev)" 1.74 COMPONENTS context)
else()
  find_package(Boost 1.74 QUIET COMPONENTS context)
  if(NOT TARGET Boost::context)
    message(STATUS "sdk: a worker beside a program needs Boost.Context, which was not found, so it is not built")
  endif()
endif()
tactus_need(nlohmann_json "nlohmann-json (nlohmann-json3-dev)")
if(TACTUS_TESTS)
  tactus_need(GTest "GoogleTest with GMock (libgtest-dev, libgmock-dev)")
endif()

# libtorch: any version by CMAKE_PREFIX_PATH (on a GPU host the folder of the torch package or what it names as its
# cmake_prefix_path); else Debian's 1.13. Its own TorchConfig.cmake is not used: that of a CUDA build changes the flags
# and architectures of our kernels, and links the toolkit's libraries in place of those that libtorch was built with and
# finds by itself.
list(TRANSFORM CMAKE_PREFIX_PATH APPEND /../.. OUTPUT_VARIABLE torch_prefixes)
find_path(TACTUS_TORCH_INCLUDE torch/csrc/api/include/torch/torch.h HINTS ${torch_prefixes} PATH_SUFFIXES include)
find_library(TACTUS_TORCH_LIBRARY torch HINTS ${torch_prefixes} PATH_SUFFIXES lib)
if(NOT TACTUS_TORCH_INCLUDE OR NOT TACTUS_TORCH_LIBRARY)
  list(APPEND tactus_missing "libtorch (the wheel torch, or libtorch-dev)")
endif()
if(tactus_missing)
  list(JOIN tactus_missing "\n  " tactus_missing)
  list(JOIN CMAKE_PREFIX_PATH " " tactus_prefixes)
  list(JOIN CMAKE_SYSTEM_PREFIX_PATH " " tactus_system_prefixes)
  message(FATAL_ERROR "Not found, with the packages of Debian that have it:\n  ${tactus_missing}\n"
    "Looked for below CMAKE_PREFIX_PATH (${tactus_prefixes}) and ${tactus_system_prefixes}. "
    "scripts/setup installs them on Debian 12 (--worker: the worker's side alone, without libtorch).")
endif()
cmake_path(GET TACTUS_TORCH_LIBRARY PARENT_PATH torch_folder)
cmake_path(NORMAL_PATH torch_folder)
foreach(part torch_cpu c10 torch_cuda c10_cuda)
  find_library(TACTUS_${part} ${part} PATHS ${torch_folder} NO_DEFAULT_PATH)
endforeach()
add_library(tactus_torch INTERFACE)
target_include_directories(tactus_torch SYSTEM INTERFACE
  ${TACTUS_TORCH_INCLUDE} ${TACTUS_TORCH_INCLUDE}/torch/csrc/api/include)
# The C++ library goes first: the wheel's libtorch.so brings parts of an other one along, std::filesystem among them,
# which crash where they are found before those of the system.
target_link_libraries(tactus_torch INTERFACE stdc++ ${TACTUS_TORCH_LIBRARY} ${TACTUS_torch_cpu} ${TACTUS_c10})
if(TACTUS_torch_cuda)
  # Nothing calls it by name: it announces itself when it is loaded. One word, as CMake would merge flags that it meets
  # twice.
  target_link_libraries(tactus_torch INTERFACE
    "-Wl,--push-state,--no-as-needed,${TACTUS_torch_cuda},--pop-state" ${TACTUS_c10_cuda})
  message(STATUS "libtorch: with CUDA, at ${torch_folder}")
else()
  message(STATUS "libtorch: without CUDA, at ${torch_folder}")
endif()

if(TACTUS_CONTROL_PLANE)
  find_package(spdlog REQUIRED)
  find_package(Protobuf REQUIRED)
  find_package(OpenSSL REQUIRED COMPONENTS Crypto SSL)
  find_package(gRPC CONFIG REQUIRED)
  find_package(SQLite3 REQUIRED)
  find_package(yaml-cpp REQUIRED)
  find_package(CLI11 CONFIG REQUIRED)
  find_package(prometheus-cpp CONFIG REQUIRED)
endif()
