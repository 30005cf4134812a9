# NCCL, if there is one beside the CUDA toolkit: says what was found, and lets the build go on without. Sets
# TACTUS_HAVE_NCCL; the target tactus_nccl is there in any case and holds what cuda/ has to link for either. The library
# itself is not linked but opened by the first call (cuda/nccl_library.cc): here it is looked for as the one to be opened
# where the system has none, and to see that the header goes with it.

# tactus_nccl_of_header(file out), tactus_nccl_of_library(file out): "2.28.9"; empty where the file does not say.
function(tactus_nccl_of_header file out)
  set(version)
  foreach(part MAJOR MINOR PATCH)
    file(STRINGS ${file} line REGEX "^#define NCCL_${part} +[0-9]+" LIMIT_COUNT 1)
    if(line MATCHES "([0-9]+)")
      list(APPEND version ${CMAKE_MATCH_1})
    endif()
  endforeach()
  list(JOIN version "." version)
  set(${out} "${version}" PARENT_SCOPE)
endfunction()
function(tactus_nccl_of_library file out)
  file(STRINGS ${file} line REGEX "NCCL version [0-9]+\\.[0-9]+\\.[0-9]+" LIMIT_COUNT 1)
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" version "${line}")
  set(${out} "${version}" PARENT_SCOPE)
endfunction()

set(TACTUS_HAVE_NCCL OFF)
add_library(tactus_nccl INTERFACE)
if(TACTUS_HAVE_CUDA)
  target_include_directories(tactus_nccl SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
  target_link_libraries(tactus_nccl INTERFACE CUDA::cudart_static)
  # One process has one NCCL, and libtorch's calls may be newer than the toolkit's: the one that came along with libtorch
  # goes before all others (docs/decisions/0012), and its header with it.
  if(TACTUS_torch_cuda)
    set(tactus_nccl_wheel ${torch_folder}/../../nvidia/nccl)
    find_library(NCCL_LIBRARY libnccl.so.2 PATHS ${tactus_nccl_wheel}/lib NO_DEFAULT_PATH)
    find_path(NCCL_INCLUDE_DIR nccl.h PATHS ${tactus_nccl_wheel}/include NO_DEFAULT_PATH)
  endif()
  # NCCL_ROOT wins; a toolkit from packages has it in the system's folders.
  find_path(NCCL_INCLUDE_DIR nccl.h HINTS ENV NCCL_ROOT ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
  find_library(NCCL_LIBRARY nccl HINTS ENV NCCL_ROOT ${CUDAToolkit_LIBRARY_DIR} PATH_SUFFIXES lib lib64)
  if(NCCL_INCLUDE_DIR AND NCCL_LIBRARY)
    tactus_nccl_of_header(${NCCL_INCLUDE_DIR}/nccl.h tactus_nccl_version)
    tactus_nccl_of_library(${NCCL_LIBRARY} tactus_nccl_library_version)
    # An older library refuses the structures of a newer header, or takes them for what they are not.
    if(tactus_nccl_library_version AND tactus_nccl_version VERSION_GREATER tactus_nccl_library_version)
      message(FATAL_ERROR "NCCL: ${NCCL_INCLUDE_DIR}/nccl.h is of version ${tactus_nccl_version}, newer than "
        "${NCCL_LIBRARY}, which is ${tactus_nccl_library_version}. Name the library's own header by "
        "-DNCCL_INCLUDE_DIR=FOLDER, or one of another version that is not newer.")
    endif()
    if(tactus_nccl_version AND tactus_nccl_version VERSION_LESS 2.19)
      message(FATAL_ERROR "NCCL: ${NCCL_INCLUDE_DIR}/nccl.h is of version ${tactus_nccl_version}; needed: 2.19, which can "
        "register memory, or newer")
    endif()
    set(TACTUS_HAVE_NCCL ON)
    target_include_directories(tactus_nccl SYSTEM INTERFACE ${NCCL_INCLUDE_DIR})
    message(STATUS "NCCL: ${NCCL_LIBRARY} (${tactus_nccl_library_version}), compiled for ${tactus_nccl_version}")
  else()
    message(STATUS "NCCL: not found, building without it (header: ${NCCL_INCLUDE_DIR}, library: ${NCCL_LIBRARY})")
  endif()
endif()
