# libtorch: any version by CMAKE_PREFIX_PATH (on a GPU host the folder of the torch package or what it names as its
# cmake_prefix_path); else Debian's 1.13. Its own TorchConfig.cmake is not used: that of a CUDA build changes the flags
# and architectures of our kernels, and links the toolkit's libraries in place of those that libtorch was built with and
# finds by itself.
list(TRANSFORM CMAKE_PREFIX_PATH APPEND /../.. OUTPUT_VARIABLE torch_prefixes)
find_path(TACTUS_TORCH_INCLUDE torch/csrc/api/include/torch/torch.h HINTS ${torch_prefixes} PATH_SUFFIXES include)
find_library(TACTUS_TORCH_LIBRARY torch HINTS ${torch_prefixes} PATH_SUFFIXES lib)
if(NOT TACTUS_TORCH_INCLUDE OR NOT TACTUS_TORCH_LIBRARY)
  list(APPEND tactus_missing "libtorch (the wheel torch, or libtorch-dev)")
  return()
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
