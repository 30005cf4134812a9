# tactus_library, tactus_binary, tactus_test: a folder is a target, and its DEPS are its layer.
#
# DEPS may name only targets added earlier in the top CMakeLists.txt, so the order in that file is the
# layering. The test lint.layers holds every #include against the same DEPS.

# tactus_library(name [HEAVY] SOURCES ... DEPS ... PRIVATE_DEPS ...)
#   HEAVY         what it includes (gRPC, libtorch, CLI11, ...) takes longer to read than its own code to compile:
#                 with TACTUS_UNITY its files are compiled a dozen at a time
#   SOURCES       .cc files of this folder; the headers are found by their names
#   DEPS          tactus:: targets and libraries whose types show in the headers
#   PRIVATE_DEPS  libraries that only the .cc files see
function(tactus_library name)
  cmake_parse_arguments(arg "HEAVY" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  tactus_check_layers(${name} ${arg_DEPS} ${arg_PRIVATE_DEPS})
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  if(arg_SOURCES)
    add_library(tactus_${name} STATIC ${arg_SOURCES} ${headers})
    target_include_directories(tactus_${name} PUBLIC ${PROJECT_SOURCE_DIR})
    target_link_libraries(tactus_${name} PUBLIC ${arg_DEPS} PRIVATE ${arg_PRIVATE_DEPS} tactus_warnings)
    if(arg_HEAVY)
      tactus_unite(tactus_${name})
    endif()
  else()
    add_library(tactus_${name} INTERFACE)
    target_include_directories(tactus_${name} INTERFACE ${PROJECT_SOURCE_DIR})
    target_link_libraries(tactus_${name} INTERFACE ${arg_DEPS})
  endif()
  add_library(tactus::${name} ALIAS tactus_${name})
  tactus_check_headers(${name} "${headers}" "${arg_DEPS}" "${arg_PRIVATE_DEPS}")
endfunction()

# The price of fewer units: names in anonymous namespaces of one folder must differ, and an edit compiles a dozen
# files. The preset dev compiles each file alone.
function(tactus_unite target)
  if(TACTUS_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
    target_link_libraries(${target} PRIVATE tactus_united)
  endif()
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

# tactus_test(name [FOLDERS tests/x ...] [ALONE x_test.cc ...] [DEPS ...] [LABELS label]): every *_test.cc of the folders
# in one binary <name>_test. Without FOLDERS it is the one under tests/ that mirrors the folder that calls this. Helpers
# (*.cc without _test) are compiled in as well. ALONE: files with names that another file of the binary has, too.
function(tactus_test name)
  cmake_parse_arguments(arg "" "" "FOLDERS;ALONE;DEPS;LABELS" ${ARGN})
  if(NOT TACTUS_TESTS)
    return()
  endif()
  if(NOT arg_FOLDERS)
    file(RELATIVE_PATH arg_FOLDERS ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
    if(NOT arg_FOLDERS MATCHES "^tests/")
      set(arg_FOLDERS tests/${arg_FOLDERS})
    endif()
  endif()
  set(sources)
  foreach(folder IN LISTS arg_FOLDERS)
    file(GLOB found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cc)
    if(NOT found)
      message(FATAL_ERROR "tactus_test(${name}): no tests in ${folder}")
    endif()
    list(APPEND sources ${found})
    list(TRANSFORM arg_ALONE PREPEND ${PROJECT_SOURCE_DIR}/${folder}/ OUTPUT_VARIABLE alone)
    set_source_files_properties(${alone} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endforeach()
  set(self)
  if(TARGET tactus_${name})
    set(self tactus::${name})
  endif()
  add_executable(${name}_test ${sources})
  target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name}_test PRIVATE ${self} ${arg_DEPS} GTest::gmock_main tactus_warnings)
  # Half the time of a build is tests: optimised less, they take a quarter less of it and run as long.
  target_compile_options(${name}_test PRIVATE -O1)
  tactus_unite(${name}_test)
  set_target_properties(${name}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  set(labels)
  if(arg_LABELS)
    set(labels LABELS ${arg_LABELS})
  endif()
  # Tests run in the build folder, so the binaries are in bin/.
  tactus_test_suites(${name}_test
    PROPERTIES ${labels} TIMEOUT 600 ENVIRONMENT "TACTUS_SOURCE=${PROJECT_SOURCE_DIR}")
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
  get_property(checked DIRECTORY PROPERTY TACTUS_HEADERS_CHECKED SET)  # by the folder's first library
  if(checked OR NOT headers)
    return()
  endif()
  set_property(DIRECTORY PROPERTY TACTUS_HEADERS_CHECKED ON)
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
