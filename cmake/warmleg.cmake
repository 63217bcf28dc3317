# How every library, program and test of the project is declared; each folder lists its own sources.

add_library(warmleg_flags INTERFACE)
target_include_directories(warmleg_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(warmleg_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wundef -Wnon-virtual-dtor -Woverloaded-virtual>)
if(WARMLEG_WERROR)
  target_compile_options(warmleg_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(WARMLEG_SANITIZE)
  target_compile_options(warmleg_flags INTERFACE -fsanitize=${WARMLEG_SANITIZE} -fno-omit-frame-pointer
                                                 -fno-sanitize-recover=all)
  target_link_options(warmleg_flags INTERFACE -fsanitize=${WARMLEG_SANITIZE})
  if(WARMLEG_SANITIZE MATCHES "undefined")
    # librocm_smi64 runs our copies of inline functions over objects whose type information stayed in the library.
    target_compile_options(warmleg_flags INTERFACE -fno-sanitize=vptr)
  endif()
  # The compilers' own macros differ: clang 14 has __has_feature, g++ __SANITIZE_ADDRESS__.
  if(WARMLEG_SANITIZE MATCHES "address")
    target_compile_definitions(warmleg_flags INTERFACE WARMLEG_ASAN=1)
  endif()
  if(WARMLEG_SANITIZE MATCHES "thread")
    target_compile_definitions(warmleg_flags INTERFACE WARMLEG_TSAN=1)
  endif()
endif()

if(WARMLEG_FUZZ)
  target_compile_options(warmleg_flags INTERFACE -fsanitize=fuzzer-no-link)  # coverage in every library under test
endif()

# warmleg_library(NAME SOURCES a.cpp ... DEPS lib ...): a static library whose includes start at the repository root.
function(warmleg_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC warmleg_flags ${ARG_DEPS})
endfunction()

add_custom_target(programs)  # what scripts/run needs: every program, no test

# warmleg_program(NAME SOURCES ... DEPS ...): a program in the top of the build folder, part of the target `programs`.
function(warmleg_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE warmleg_flags ${ARG_DEPS})
  add_dependencies(programs ${name})
endfunction()

# warmleg_time_limit(TEST s): when ctest gives up. A sanitizer costs several times the time.
function(warmleg_time_limit test seconds)
  if(WARMLEG_SANITIZE)
    math(EXPR seconds "${seconds} * 8")
  endif()
  set_tests_properties(${test} PROPERTIES TIMEOUT ${seconds})
endfunction()

add_custom_target(device_tests)  # programs without a ctest entry: they want the device at hand

# warmleg_test(NAME SOURCES ... DEPS ... [TIMEOUT s] [NO_CTEST]): one GoogleTest program, one ctest entry of the same name, run in
# the repository root (tests name their data relative to it).
function(warmleg_test name)
  cmake_parse_arguments(ARG "NO_CTEST" "TIMEOUT" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE warmleg_flags ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  # Half of a full build was optimising assertions that run once; under sanitizers more than half.
  if(WARMLEG_SANITIZE)
    target_compile_options(${name} PRIVATE -O0 -g1)
  else()
    target_compile_options(${name} PRIVATE -O1 -g1)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(ARG_NO_CTEST)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    add_dependencies(device_tests ${name})
    return()
  endif()
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  warmleg_time_limit(${name} ${ARG_TIMEOUT})
endfunction()

add_custom_target(fuzzers)  # what scripts/fuzz needs

# warmleg_fuzzer(NAME SOURCES ... DEPS ...): one libFuzzer program in fuzz/ of the build folder; scripts/fuzz runs every
# program there, seeded from tests/fuzz/corpus/NAME.
function(warmleg_fuzzer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE warmleg_flags ${ARG_DEPS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  add_dependencies(fuzzers ${name})
endfunction()
