#!/usr/bin/env bash
# build_options.sh: options of the build give the compiler and the linker what CONTRIBUTING says. Nothing is compiled.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=no

configure() { # OPTION...: the commands that compile and link espy
  rm -rf "$scratch/build"
  cmake -S "$root" -B "$scratch/build" -G Ninja -DESPY_TESTS=OFF "$@" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
  ninja -C "$scratch/build" -t commands espy >"$scratch/commands"
}
compiles() { grep -e ' -c ' "$scratch/commands" | grep -m 1 'src/cli/main.cc'; }
links() { grep -e ' -o espy ' "$scratch/commands"; }
check() { # WHAT wanted|unwanted REGEX TEXT
  local found=unwanted
  ! grep -Eq -- "$3" <<<"$4" || found=wanted
  [ $found != "$2" ] || return
  printf '%s: %s %s in\n%s\n' "$1" "$2" "$3" "$4"
  failed=yes
}

configure
check 'a Release build' wanted ' -s( |$)' "$(links)"
check 'a Release build' unwanted ' -g1? ' "$(compiles)"
check 'a Release build' wanted ' -static-pie ' "$(links)"
check 'a Release build' unwanted '\.so ' "$(links)"

configure -DESPY_STRIP=OFF -DESPY_STATIC=OFF -DESPY_LINKER=
check ESPY_STRIP=OFF unwanted ' -s( |$)' "$(links)"
check ESPY_STRIP=OFF wanted ' -g ' "$(compiles)"
check ESPY_STATIC=OFF unwanted ' -static-pie ' "$(links)"
for library in dw elf z lzma bz2 zstd lz4 event_core; do
  check ESPY_STATIC=OFF wanted "lib$library\.so " "$(links)"
  check ESPY_STATIC=OFF unwanted "/lib$library\.a " "$(links)"
done
check ESPY_LINKER= unwanted ' -fuse-ld=' "$(links)"

configure -DESPY_LINKER=other
check ESPY_LINKER=other wanted ' -fuse-ld=other ' "$(links)"
[ $failed = no ]
