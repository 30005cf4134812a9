# TACTUS_FUZZ: the tree compiled for libFuzzer, by clang. The targets are in tests/fuzz.
option(TACTUS_FUZZ "Add the fuzz targets; needs clang" OFF)
if(TACTUS_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "TACTUS_FUZZ needs clang as the compiler, found ${CMAKE_CXX_COMPILER_ID}: use cmake --preset fuzz")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link -fno-sanitize-recover=all)
endif()
