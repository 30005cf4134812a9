# Warnings are errors in our own code; generated code and libraries are SYSTEM.
add_library(tactus_warnings INTERFACE)
target_compile_options(tactus_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wshadow;-Wnon-virtual-dtor;-Wold-style-cast;-Wcast-qual;-Wunused;-Woverloaded-virtual>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${TACTUS_WERROR}>>:-Werror>)
if(TACTUS_SANITIZE MATCHES "thread")
  target_compile_options(tactus_warnings INTERFACE -Wno-error=tsan)  # Boost's atomic_thread_fence
endif()
# Of files that are compiled together (tactus_unite), after the others: GCC takes the united file for the only one and
# each .cc for a header, and sees overlaps where there are none; a local name may be that of another file's constant.
add_library(tactus_united INTERFACE)
target_compile_options(tactus_united INTERFACE
  -Wno-shadow "$<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage;-Wno-restrict>")
