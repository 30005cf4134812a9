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

if(TACTUS_TORCH)
  include(Libtorch)
endif()
if(tactus_missing)
  list(JOIN tactus_missing "\n  " tactus_missing)
  list(JOIN CMAKE_PREFIX_PATH " " tactus_prefixes)
  list(JOIN CMAKE_SYSTEM_PREFIX_PATH " " tactus_system_prefixes)
  message(FATAL_ERROR "Not found, with the packages of Debian that have it:\n  ${tactus_missing}\n"
    "Looked for below CMAKE_PREFIX_PATH (${tactus_prefixes}) and ${tactus_system_prefixes}. "
    "scripts/setup installs them on Debian 12 (--worker: the worker's side alone, without libtorch).")
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
