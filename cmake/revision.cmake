# Library `revision`: #include "warmleg_revision.h" for the version, the git revision and the compiler of this build.
# The header is checked at every build and rewritten only when its content changed. This file is also the script that
# writes it (cmake -P).

if(CMAKE_SCRIPT_MODE_FILE)
  set(revision "unknown")  # a source archive has no git metadata
  find_program(GIT git)
  if(GIT AND EXISTS "${SOURCE_DIR}/.git")
    execute_process(COMMAND "${GIT}" -C "${SOURCE_DIR}" describe --always --dirty --abbrev=12
                    OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(failed EQUAL 0 AND described)
      set(revision "${described}")
    endif()
  endif()
  configure_file("${CMAKE_CURRENT_LIST_DIR}/warmleg_revision.h.in" "${OUTPUT}" @ONLY)
  return()
endif()

set(revision_header "${CMAKE_BINARY_DIR}/generated/warmleg_revision.h")
add_custom_target(revision_header
  COMMAND "${CMAKE_COMMAND}" "-DSOURCE_DIR=${PROJECT_SOURCE_DIR}" "-DOUTPUT=${revision_header}"
          "-DVERSION=${PROJECT_VERSION}" "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
          "-DBUILD_TYPE=${CMAKE_BUILD_TYPE}" -P "${CMAKE_CURRENT_LIST_FILE}"
  BYPRODUCTS "${revision_header}"
  COMMENT "Checking the git revision"
  VERBATIM)
add_library(revision INTERFACE)
target_include_directories(revision INTERFACE "${CMAKE_BINARY_DIR}/generated")
add_dependencies(revision revision_header)
