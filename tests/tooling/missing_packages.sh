#!/usr/bin/env bash
# `make` with a package missing says which command installs it, in one sentence. cmake and dpkg-query are replaced.
# On a distribution without apt, install-deps names what is missing, and goes on if nothing is.
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

# Without apt: only these commands are there, and a compiler that finds some of the libraries.
bare=$scratch/bare
mkdir "$bare"
for tool in bash awk grep sed sort cat id make rm; do ln -s "$(command -v $tool)" "$bare/$tool"; done
compiler() { # FOUND: the libraries that it finds
  printf '#!/bin/sh\nPATH=/bin\ncase $1 in -std=*) cat >/dev/null ;; -print-file-name=*) file=${1#*=}; case " %s " in *" $file "* | *" all "*) echo "/lib/$file" ;; *) echo "$file" ;; esac ;; esac\n' \
    "$1" >"$bare/g++"
  chmod +x "$bare/g++"
}
expect_bare() { # DESCRIPTION STATUS REGEX ARGUMENT...
  local description=$1 wanted=$2 pattern=$3 said status=0
  shift 3
  said=$(PATH=$bare bash scripts/install-deps "$@" 2>&1) || status=$?
  [ $status = "$wanted" ] && grep -Eq -- "$pattern" <<<"$said" && return
  printf '%s: expected status %s and %s, got %s:\n%s\n' "$description" "$wanted" "$pattern" $status "$said"
  exit 1
}
for tool in cmake ninja; do ln -s /bin/true "$bare/$tool"; done
compiler all
expect_bare 'without apt, with all' 0 '^$' test
compiler 'libelf.a libevent_core.a libz.a liblzma.a libbz2.a libzstd.a liblz4.a libc.a libstdc++.a'
expect_bare 'without apt and libdw.a' 1 '^  libdw.a' build
expect_bare 'what to do then' 1 'make STATIC=no' build
STATIC=no expect_bare 'with shared libraries' 0 '^$' build
rm "$bare/cmake"
expect_bare 'without apt and cmake' 1 '^  cmake' build
expect_bare 'the names' 0 '^lib libdw.a +libdw-dev +elfutils-devel-static' --list
for column in 3 4 5 6 7; do
  [ -z "$(scripts/install-deps --list | awk -v n=$column '!/^#/ && NF != 7 || $n == ""')" ] || { echo "a row of the table is not whole"; exit 1; }
done
