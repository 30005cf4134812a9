# tactus_library, tactus_binary, tactus_test: a folder is a target, and its DEPS are its layer.
#
# DEPS may name only targets added earlier in the top CMakeLists.txt, so the order in that file is the
# layering. The test lint.layers holds every #include against the same DEPS.

# tactus_library(name SOURCES ... DEPS ... PRIVATE_DEPS ...)
#   SOURCES       .cc files of this folder; the headers are found by their names
#   DEPS          tactus:: targets and libraries whose types show in the headers
#   PRIVATE_DEPS  libraries that only the .cc files see
function(tactus_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  tactus_check_layers(${name} ${arg_DEPS} ${arg_PRIVATE_DEPS})
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  if(arg_SOURCES)
    add_library(tactus_${name} STATIC ${arg_SOURCES} ${headers})
    target_include_directories(tactus_${name} PUBLIC ${PROJECT_SOURCE_DIR})
    target_link_libraries(tactus_${name} PUBLIC ${arg_DEPS} PRIVATE ${arg_PRIVATE_DEPS} tactus_warnings)
  else()
    add_library(tactus_${name} INTERFACE)
    target_include_directories(tactus_${name} INTERFACE ${PROJECT_SOURCE_DIR})
    target_link_libraries(tactus_${name} INTERFACE ${arg_DEPS})
  endif()
  add_library(tactus::${name} ALIAS tactus_${name})
  tactus_check_headers(${name} "${headers}" "${arg_DEPS}" "${arg_PRIVATE_DEPS}")
endfunction()

# tactus_binary(tactus-agent SOURCES main.cc DEPS ...)
function(tactus_binary name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS" ${ARGN})
  tactus_check_layers(${name} ${arg_DEPS})
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${arg_DEPS} tactus_warnings)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
endfunction()

# tactus_test(name [DEPS ...] [LABELS label]): every tests/<folder>/*_test.cc in one binary <name>_test.
# The folder under tests/ mirrors the folder that calls this. Helpers (tests/<folder>/*.cc without
# _test) are compiled in as well.
function(tactus_test name)
  cmake_parse_arguments(arg "" "" "DEPS;LABELS" ${ARGN})
  if(NOT TACTUS_TESTS)
    return()
  endif()
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  if(NOT folder MATCHES "^tests/")
    set(folder tests/${folder})
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cc)
  if(NOT sources)
    message(FATAL_ERROR "tactus_test(${name}): no tests in ${folder}")
  endif()
  set(self)
  if(TARGET tactus_${name})
    set(self tactus::${name})
  endif()
  add_executable(${name}_test ${sources})
  target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name}_test PRIVATE ${self} ${arg_DEPS} GTest::gmock_main tactus_warnings)
  set_target_properties(${name}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  # One label and one variable at most: gtest_discover_tests loses the semicolons of lists. Tests run in the
  # build folder, so the binaries are in bin/.
  set(labels)
  if(arg_LABELS)
    set(labels LABELS ${arg_LABELS})
  endif()
  gtest_discover_tests(${name}_test
    DISCOVERY_MODE PRE_TEST
    WORKING_DIRECTORY ${PROJECT_BINARY_DIR}
    PROPERTIES ${labels} TIMEOUT 300 ENVIRONMENT "TACTUS_SOURCE=${PROJECT_SOURCE_DIR}")
endfunction()

function(tactus_check_layers name)
  foreach(dep IN LISTS ARGN)
    if(dep MATCHES "^tactus::" AND NOT TARGET ${dep})
      message(FATAL_ERROR "${name} links ${dep}, which is not below it (see the top CMakeLists.txt)")
    endif()
  endforeach()
endfunction()

# Every header compiles alone. One with a .cc of its name does by construction: lint.form holds that the .cc
# includes it first. The others get a generated .cc each, all in the target `headers`.
function(tactus_check_headers name headers deps private_deps)
  if(NOT headers)
    return()
  endif()
  set(sources)
  foreach(header IN LISTS headers)
    string(REGEX REPLACE "\\.h$" ".cc" twin ${header})
    if(EXISTS ${twin})
      continue()
    endif()
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${header})
    string(REPLACE "/" "_" stem ${path})
    set(source ${PROJECT_BINARY_DIR}/headers/${stem}.cc)
    file(GENERATE OUTPUT ${source} CONTENT "#include \"${path}\"\n")
    list(APPEND sources ${source})
  endforeach()
  if(NOT TARGET headers)
    add_custom_target(headers)
  endif()
  if(NOT sources)
    return()
  endif()
  add_library(headers_${name} OBJECT EXCLUDE_FROM_ALL ${sources})
  target_include_directories(headers_${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(headers_${name} PRIVATE ${deps} ${private_deps} tactus_warnings)
  add_dependencies(headers headers_${name})
endfunction()
