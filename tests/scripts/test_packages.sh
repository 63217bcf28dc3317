#!/usr/bin/env bash
# scripts/lib/packages.sh against pretended dpkg-query, id, sudo and apt-get: what is installed, by whom, and what is
# said when nobody may install.
set -u
root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/warmleg packages XXXXXX")  # a path with spaces, on purpose
trap 'rm -rf "$work"' EXIT
failures=0

# pretend NAME BODY: a program on the PATH of the code under test.
pretend() {
  printf '#!/bin/bash\n%s\n' "$2" >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}

# setup UID INSTALLED...: a machine with these packages and this user, without sudo.
setup() {
  rm -rf "${work:?}/bin" "$work/log"
  mkdir -p "$work/bin"
  : >"$work/log"
  pretend id "echo $1"
  shift
  printf '%s\n' "$@" >"$work/installed"
  pretend dpkg-query "grep -qxF -- \"\${@: -1}\" '$work/installed' && printf installed"
  pretend apt-get "echo \"\$@\" >>'$work/log'; exit \${APT_STATUS:-0}"
  pretend sudo 'exit 1'
}

# need ARGUMENTS...: need_packages with two made-up needs; its exit code in $status, its words in $said.
need() {
  said=$(cd / && PATH=$work/bin:$PATH bash -c '
    . "$1"; shift
    PACKAGES_build=(alpha beta); PACKAGES_test=(gamma)
    need_packages "$@"' bash "$root/scripts/lib/packages.sh" "$@" 2>&1)
  status=$?
}

# check WHAT CONDITION...
check() {
  local what=$1
  shift
  if ! "$@"; then
    printf 'FAILED: %s (status %s, said: %s, apt-get log: %s)\n' "$what" "$status" "$said" "$(cat "$work/log")"
    failures=$((failures + 1))
  fi
}
# The conditions of check, called by name.
# shellcheck disable=SC2317
says() { case $said in *"$1"*) ;; *) return 1 ;; esac; }
# shellcheck disable=SC2317
logged() { grep -qF -- "$1" "$work/log"; }
# shellcheck disable=SC2317
quiet_apt() { [ ! -s "$work/log" ]; }
# shellcheck disable=SC2317
status_is() { [ "$status" -eq "$1" ]; }

setup 1000 alpha beta gamma
need build test
check "everything there: success" status_is 0
check "everything there: apt-get is not called" quiet_apt

setup 0 alpha
need build test
check "root: success" status_is 0
check "root: only the missing ones" logged "install -y --no-install-recommends beta gamma"

setup 1000 alpha
need build test
check "no root: exit 3" status_is 3
check "no root: says what to install" says "sudo apt-get install beta gamma"
check "no root: apt-get is not called" quiet_apt

setup 1000 alpha
need build
check "only the asked needs" says "sudo apt-get install beta"
check "only the asked needs, nothing else" eval '! says gamma'

setup 1000 alpha
pretend sudo 'shift; exec "$@"'
need build
check "passwordless sudo: success" status_is 0
check "passwordless sudo: installs" logged "install -y --no-install-recommends beta"

setup 0 alpha
APT_STATUS=100 need build
check "apt-get fails: exit 3" status_is 3
check "apt-get fails: says what to run" says "sudo apt-get update && sudo apt-get install beta"

[ "$failures" -eq 0 ] && echo "all checks passed"
exit "$((failures > 0))"
