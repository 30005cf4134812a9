# TACTUS_KERNELS_ONLY: the kernels, their tests and the benchmarks of kernels and of NCCL, for a machine that has the
# CUDA toolkit and little else. Takes the place of cmake/Dependencies.cmake: all that is needed is GoogleTest and one
# header of Abseil, and both may have been carried there (scripts/gpu-check --pack).
option(TACTUS_KERNELS_ONLY "Build kernels, their tests and their benchmarks alone" OFF)
set(TACTUS_GOOGLETEST "" CACHE PATH "GoogleTest's sources, in place of an installed GoogleTest")
if(TACTUS_KERNELS_ONLY)
  find_package(Threads REQUIRED)
  if(TACTUS_GOOGLETEST)
    add_subdirectory(${TACTUS_GOOGLETEST} ${PROJECT_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)
  else()
    find_package(GTest REQUIRED)
  endif()
  # What a lock guards is said with Abseil's macros; nothing of it is linked.
  find_path(TACTUS_ABSEIL absl/base/thread_annotations.h REQUIRED)
  add_library(absl::core_headers INTERFACE IMPORTED)
  target_include_directories(absl::core_headers INTERFACE ${TACTUS_ABSEIL})
endif()
