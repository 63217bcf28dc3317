# AMD's libraries, optional at configure time. Gives
#   WARMLEG_HAVE_ROCM_SMI and the target warmleg::rocm_smi   (only warmleg-sampler links it)
#   WARMLEG_HAVE_HIP and the target warmleg::hip_runtime     (headers and libamdhip64)
# WARMLEG_ROCM: AUTO takes what is found, ON stops when something is missing, OFF looks for nothing.

set(WARMLEG_HAVE_ROCM_SMI OFF)
set(WARMLEG_HAVE_HIP OFF)

if(NOT WARMLEG_ROCM MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "WARMLEG_ROCM is \"${WARMLEG_ROCM}\": choose ON, OFF or AUTO")
endif()

set(warmleg_rocm_roots "")
if(DEFINED ENV{ROCM_PATH})
  list(APPEND warmleg_rocm_roots "$ENV{ROCM_PATH}")
endif()
list(APPEND warmleg_rocm_roots /opt/rocm)

if(WARMLEG_ROCM STREQUAL "OFF")
  message(STATUS "warmleg: rocm-smi OFF, HIP OFF (WARMLEG_ROCM=OFF)")
else()
  # The package's exported targets are not used: in 5.2 to 5.7 they name an include folder that does not exist, and
  # loading them stops CMake when liboam is not installed. A set rocm_smi_BINARY_DIR makes the package skip them.
  set(rocm_smi_BINARY_DIR "unused")
  find_package(rocm_smi CONFIG QUIET HINTS ${warmleg_rocm_roots})
  unset(rocm_smi_BINARY_DIR)
  if(rocm_smi_FOUND)
    find_path(WARMLEG_ROCM_SMI_INCLUDE rocm_smi/rocm_smi.h HINTS ${ROCM_SMI_INCLUDE_DIRS} ${rocm_smi_DIR}/../../../include)
    find_library(WARMLEG_ROCM_SMI_LIBRARY rocm_smi64 HINTS ${ROCM_SMI_LIB_DIRS} ${rocm_smi_DIR}/../..)
    mark_as_advanced(WARMLEG_ROCM_SMI_INCLUDE WARMLEG_ROCM_SMI_LIBRARY)
  endif()
  if(rocm_smi_FOUND AND WARMLEG_ROCM_SMI_INCLUDE AND WARMLEG_ROCM_SMI_LIBRARY)
    set(WARMLEG_HAVE_ROCM_SMI ON)
    # Imported, so that checks which compile a small program can use it too.
    add_library(warmleg::rocm_smi UNKNOWN IMPORTED GLOBAL)
    set_target_properties(warmleg::rocm_smi PROPERTIES IMPORTED_LOCATION "${WARMLEG_ROCM_SMI_LIBRARY}"
                                                       INTERFACE_INCLUDE_DIRECTORIES "${WARMLEG_ROCM_SMI_INCLUDE}")
    message(STATUS "warmleg: rocm-smi ON (${WARMLEG_ROCM_SMI_LIBRARY})")
  else()
    set(problem "rocm-smi: librocm_smi64 and its CMake package not found (Debian/Ubuntu package librocm-smi-dev, ROCm package rocm-smi-lib)")
    message(STATUS "warmleg: rocm-smi OFF, ${problem}")
    list(APPEND warmleg_rocm_missing "${problem}")
  endif()

  find_path(WARMLEG_HIP_INCLUDE hip/hip_runtime_api.h HINTS ${warmleg_rocm_roots} PATH_SUFFIXES include)
  find_library(WARMLEG_HIP_LIBRARY amdhip64 HINTS ${warmleg_rocm_roots} PATH_SUFFIXES lib)
  mark_as_advanced(WARMLEG_HIP_INCLUDE WARMLEG_HIP_LIBRARY)
  if(WARMLEG_HIP_INCLUDE AND WARMLEG_HIP_LIBRARY)
    set(WARMLEG_HAVE_HIP ON)
    add_library(warmleg::hip_runtime UNKNOWN IMPORTED GLOBAL)
    set_target_properties(warmleg::hip_runtime PROPERTIES IMPORTED_LOCATION "${WARMLEG_HIP_LIBRARY}"
                                                          INTERFACE_INCLUDE_DIRECTORIES "${WARMLEG_HIP_INCLUDE}")
    message(STATUS "warmleg: HIP runtime found (${WARMLEG_HIP_LIBRARY})")
  else()
    set(problem "HIP: libamdhip64 and its headers not found (Debian/Ubuntu package libamdhip64-dev, ROCm package hip-dev)")
    message(STATUS "warmleg: HIP OFF, ${problem}")
    list(APPEND warmleg_rocm_missing "${problem}")
  endif()

  if(WARMLEG_ROCM STREQUAL "ON" AND warmleg_rocm_missing)
    list(JOIN warmleg_rocm_missing "\n  " lines)
    message(FATAL_ERROR "WARMLEG_ROCM=ON, but\n  ${lines}\nInstall what is named, set ROCM_PATH, or use WARMLEG_ROCM=AUTO.")
  endif()
endif()
