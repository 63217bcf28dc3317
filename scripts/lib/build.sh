# shellcheck shell=bash
# Where the repository is and how its presets are built. Sourced by the scripts, never run.

ROOT=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=scripts/lib/packages.sh
. "$ROOT/scripts/lib/packages.sh"

# The presets compile most files with the same flags in different folders: let ccache see that they are the same.
export CCACHE_NOHASHDIR=1

# build_dir PRESET: prints the build folder of a preset.
build_dir() {
  if [ "$1" = default ]; then
    printf '%s\n' "$ROOT/build"
  else
    printf '%s\n' "$ROOT/out/$1"
  fi
}

# jobs: parallel tests; every test may use OpenMP itself, so more than 4 only crowd one another.
jobs() {
  local cores
  cores=$(nproc)
  printf '%s\n' "$((cores < 4 ? cores : 4))"
}

# configure PRESET [-DNAME=VALUE]...: quiet unless it fails; starts afresh when the folder was moved or copied.
configure() {
  local preset=$1 dir launcher fresh=() log
  shift
  dir=$(build_dir "$preset")
  launcher=$(command -v ccache || true)
  if [ -f "$dir/CMakeCache.txt" ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$ROOT" "$dir/CMakeCache.txt"; then
    fresh=(--fresh)
  fi
  mkdir -p "$dir"
  log="$dir/configure.log"
  if ! (cd "$ROOT" && cmake --preset "$preset" "${fresh[@]}" "-DCMAKE_C_COMPILER_LAUNCHER=$launcher" \
    "-DCMAKE_CXX_COMPILER_LAUNCHER=$launcher" "$@") >"$log" 2>&1; then
    cat "$log" >&2
    exit 3
  fi
  grep '^-- warmleg:' "$log" >&2 || true
}

# build PRESET [TARGET]...: everything, or the named targets.
build() {
  local preset=$1 targets=()
  shift
  [ "$#" -eq 0 ] || targets=(--target "$@")
  (cd "$ROOT" && cmake --build --preset "$preset" "${targets[@]}") >&2
}
