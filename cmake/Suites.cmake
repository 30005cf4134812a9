# tactus_test_suites(target [PREFIX double.] PROPERTIES ...): each suite of a GoogleTest binary is a test of ctest. Not
# each test: a binary with libtorch takes a tenth of a second to load, and there are thousands of tests.
function(tactus_test_suites target)
  cmake_parse_arguments(arg "" "PREFIX" "PROPERTIES" ${ARGN})
  set(told ${CMAKE_CURRENT_BINARY_DIR}/${target}_suites.cmake)
  file(GENERATE OUTPUT ${told} CONTENT "set(name [==[${target}]==])
set(binary [==[$<TARGET_FILE:${target}>]==])
set(prefix [==[${arg_PREFIX}]==])
set(properties WORKING_DIRECTORY [==[${PROJECT_BINARY_DIR}]==] ${arg_PROPERTIES})
include([==[${PROJECT_SOURCE_DIR}/cmake/SuitesOf.cmake]==])
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${told})
endfunction()
