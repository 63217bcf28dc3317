# shellcheck shell=bash
# The one list of Debian/Ubuntu packages, by need, and how the scripts install them. Sourced, never run.
# The names are the same on Debian 12 and on Ubuntu 24.04 (universe).

# shellcheck disable=SC2034  # read through a name reference in missing_packages
PACKAGES_build=(
  g++ cmake ninja-build pkg-config git
  nlohmann-json3-dev libcli11-dev libfmt-dev libspdlog-dev libssl-dev libsqlite3-dev libxxhash-dev libpcre2-dev libutf8proc-dev libbenchmark-dev
)
# shellcheck disable=SC2034
PACKAGES_test=(libgtest-dev libgmock-dev python3 python3-jsonschema)
# shellcheck disable=SC2034
PACKAGES_rocm=(librocm-smi-dev)
# shellcheck disable=SC2034
PACKAGES_sim=(libboost-context-dev)
# shellcheck disable=SC2034  # kernels for AMD cards where there is no ROCm tree
PACKAGES_hip=(libamdhip64-dev rocm-device-libs clang-19 clang-tools-19 lld-19 llvm-19)
# shellcheck disable=SC2034
PACKAGES_ccache=(ccache)
# shellcheck disable=SC2034
PACKAGES_format=(clang-format-14)
# shellcheck disable=SC2034
PACKAGES_lint=(clang-tidy-14 shellcheck)
# shellcheck disable=SC2034
PACKAGES_sanitize=(clang libomp-dev llvm)
# shellcheck disable=SC2034
PACKAGES_fuzz=(clang libomp-dev llvm)

# missing_packages NEED...: prints the packages of these needs that are not installed, one a line.
missing_packages() {
  local need package
  for need in "$@"; do
    local -n list="PACKAGES_$need"
    for package in "${list[@]}"; do
      # shellcheck disable=SC2016  # dpkg's own variable
      if [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
        printf '%s\n' "$package"
      fi
    done
  done
}

# as_root COMMAND...: as root, or through sudo when it asks for no password; fails when neither is possible.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    env DEBIAN_FRONTEND=noninteractive "$@"
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    sudo -n env DEBIAN_FRONTEND=noninteractive "$@"
  else
    return 127
  fi
}

# need_packages NEED...: installs what is missing, or says what to install and stops with exit 3. Asks nothing of the
# network when everything is there. On a system without dpkg the check is left to CMake, which names what it misses.
need_packages() {
  command -v dpkg-query >/dev/null || return 0
  local missing status=0
  mapfile -t missing < <(missing_packages "$@")
  [ "${#missing[@]}" -gt 0 ] || return 0
  if ! as_root true; then
    printf 'Missing packages, and neither root nor passwordless sudo to install them. Run:\n  sudo apt-get install %s\n' \
      "${missing[*]}" >&2
    exit 3
  fi
  printf 'Installing: %s\n' "${missing[*]}" >&2
  local apt=(as_root apt-get -o DPkg::Lock::Timeout=300 -qq)
  "${apt[@]}" update >&2 || printf 'apt-get update failed; trying with the package lists at hand\n' >&2
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >&2 || status=$?
  if [ "$status" -ne 0 ]; then
    printf 'apt-get could not install the missing packages. Run:\n  sudo apt-get update && sudo apt-get install %s\n' \
      "${missing[*]}" >&2
    exit 3
  fi
}
