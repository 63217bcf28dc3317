#!/usr/bin/env bash
# scripts/run and scripts/test in a copy of the scripts folder, with pretended cmake, ctest and warmleg: arguments,
# folders, exit codes, and what is made of a skipped test.
# shellcheck disable=SC2016  # bodies of pretended programs expand where they run
set -u
root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/warmleg scripts XXXXXX")
trap 'rm -rf "$work"' EXIT
failures=0
unset WARMLEG_REQUIRE_ALL  # the gate sets it, and it is what is tested here

# pretend FILE BODY: an executable bash script.
pretend() {
  mkdir -p "$(dirname -- "$1")"
  printf '#!/bin/bash\n%s\n' "$2" >"$1"
  chmod +x "$1"
}

# setup: a repository of the scripts alone, in which everything is installed and builds.
setup() {
  rm -rf "${work:?}"/*
  mkdir -p "$work/repo/scenarios" "$work/elsewhere"
  cp -r "$root/scripts" "$work/repo/"
  pretend "$work/bin/dpkg-query" 'printf installed'
  pretend "$work/bin/cmake" "echo \"cmake \$*\" >>'$work/log'"
  pretend "$work/bin/ctest" "echo \"ctest \$*\" >>'$work/log'"
  pretend "$work/repo/build/warmleg" 'printf "<%s>" "$@"; exit ${WARMLEG_STATUS:-0}'
}

# call FOLDER SCRIPT ARGUMENTS...: runs a script of the copy from a folder; exit code in $status, output in $said.
call() {
  local folder=$1 script=$2
  shift 2
  said=$(cd "$folder" && PATH=$work/bin:$PATH "$work/repo/scripts/$script" "$@" 2>&1)
  status=$?
}

# check WHAT CONDITION...
check() {
  local what=$1
  shift
  if ! "$@"; then
    printf 'FAILED: %s (status %s, said: %s)\n' "$what" "$status" "$said"
    failures=$((failures + 1))
  fi
}
# The conditions of check, called by name.
# shellcheck disable=SC2317
says() { case $said in *"$1"*) ;; *) return 1 ;; esac; }
# shellcheck disable=SC2317
says_not() { ! says "$1"; }
# shellcheck disable=SC2317
status_is() { [ "$status" -eq "$1" ]; }

repo=$work/repo

setup
call "$repo" run
check "run: the shipped scenario" says "<run><$repo/scenarios/tiny-code.json>"
check "run: in the repository warmleg chooses the file" says_not "--out"

call "$work/elsewhere" run --set plan.pairs=2
check "run elsewhere: arguments are passed on" says "<--set><plan.pairs=2>"
check "run elsewhere: the result goes to the repository" says "<--out><$repo/results/tiny-code-"

call "$work/elsewhere" run --out mine.json
check "run elsewhere: --out is the user's" test "$said" = "<run><$repo/scenarios/tiny-code.json><--out><mine.json>"

call "$work/elsewhere" run "other scenario.json" --plan
check "run: another scenario, with spaces" says "<run><other scenario.json><--plan>"

export WARMLEG_STATUS=1
call "$repo" run
check "run: the exit code of warmleg is passed on" status_is 1
unset WARMLEG_STATUS

pretend "$work/bin/cmake" 'echo "CMake Error: no such thing"; exit 1'
call "$repo" run
check "run: a failed configure is exit 3" status_is 3
check "run: and is shown" says "CMake Error: no such thing"

pretend "$work/bin/cmake" '[ "$1" != --build ]'
call "$repo" run
check "run: a failed build is exit 3" status_is 3

setup
log_of() { # PRESET_FOLDER TEXT: what ctest leaves behind
  pretend "$work/bin/ctest" "mkdir -p '$repo/$1/Testing/Temporary'; printf '%s\n' '$2' >'$repo/$1/Testing/Temporary/LastTest.log'"
}
log_of build '[       OK ] Suite.Runs (1 ms)'
call "$repo" test default
check "test: all run" status_is 0
check "test: nothing is called skipped" says_not Skipped

log_of build '[  SKIPPED ] Suite.NeedsNamespaces (0 ms)'
call "$repo" test default
check "test: a skipped case is named" says "  Suite.NeedsNamespaces"
check "test: and is no failure by itself" status_is 0
export WARMLEG_REQUIRE_ALL=1
call "$repo" test default
check "test: with WARMLEG_REQUIRE_ALL it is one" status_is 1
unset WARMLEG_REQUIRE_ALL

pretend "$work/bin/ctest" 'exit 8'
call "$repo" test default
check "test: failed tests are exit 1" status_is 1

setup
pretend "$work/bin/ctest" "echo \"ctest \$*\" >>'$work/log'; case \$* in *' -N') printf '  Test  #1: test_a\n  Test #12: test_b\n' ;; esac"
call "$repo" test
check "test: a second preset runs what the first lacks" grep -q -- 'out/sim .*-E ^(test_a|test_b)\$' "$work/log"
check "test: the first preset runs all" test "$(grep -- 'build .*-j' "$work/log" | grep -c -- ' -E ')" -eq 0

setup
call "$work/elsewhere" test default -- -R 'some test'
check "test: arguments for ctest" grep -q -- "-R some test" "$work/log"

[ "$failures" -eq 0 ] && echo "all checks passed"
exit "$((failures > 0))"
