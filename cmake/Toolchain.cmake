# Compiler settings that hold for every target, and workarounds of Debian 12's toolchain.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

find_program(TACTUS_CCACHE ccache)
if(TACTUS_CCACHE)
  # Paths below the checkout are taken as relative, so that another checkout finds what this one has compiled.
  cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH tactus_checkout)
  set(TACTUS_CCACHE ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${tactus_checkout} CCACHE_NOHASHDIR=1 ${TACTUS_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TACTUS_CCACHE})
endif()

# No fused multiply-add: a kernel and its host twin, and two compilers, must round alike.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)

set(TACTUS_SANITIZE "" CACHE STRING "address,undefined or thread")
if(TACTUS_SANITIZE)
  add_compile_options(-fsanitize=${TACTUS_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TACTUS_SANITIZE})
endif()
