#!/usr/bin/env bash
# `make` with a package missing says which command installs it, in one sentence. cmake and dpkg-query are replaced.
cd "$(dirname "$0")/../.." || exit 1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
stub() { # NAME BODY
  printf '#!/bin/sh\n%s\n' "$2" >"$scratch/$1"
  chmod +x "$scratch/$1"
}
stub apt-get 'echo "apt-get was called" >&2; exit 1'
stub cmake 'echo "the log of cmake"; exit 1'

check() { # DESCRIPTION EXPECTED
  local said
  said=$(env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u DEPS PATH="$scratch:$PATH" make -s all BUILD="$scratch/build" 2>&1 | grep -v '^make: ')
  [ "$said" = "$2" ] && return
  printf '%s: expected\n%s\ngot\n%s\n' "$1" "$2" "$said"
  exit 1
}

stub dpkg-query 'case "$*" in *libdw-dev | *g++) exit 1 ;; esac; printf "installed "'
check 'with packages missing' 'packages are missing (g++ libdw-dev): run sudo scripts/install-deps build'
stub dpkg-query 'printf "installed "'
check 'with all packages' 'the log of cmake'
