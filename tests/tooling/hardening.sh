#!/usr/bin/env bash
# hardening.sh ESPY BUILD: the binary is built as SECURITY.md says. Status 77 without espy or readelf.
set -uo pipefail
skip() { printf 'hardening.sh:1: Skipped\n%s\n' "$1"; exit 77; }
[ -x "$1" ] || skip 'espy is not built'
command -v readelf >/dev/null || skip 'readelf is not installed'
failed=no
check() { # WHAT REGEX TEXT
  grep -Eq -- "$2" <<<"$3" && return
  echo "no $1: $2 is not in"
  echo "$3"
  failed=yes
}
headers=$(LC_ALL=C readelf -W -h -l -d "$1")
check 'position-independent executable' 'Type: +DYN' "$headers"
check 'relro' 'GNU_RELRO' "$headers"
check 'immediate binding' 'BIND_NOW|FLAGS_1.*NOW' "$headers"
check 'stack without code' 'GNU_STACK .* RW ' "$headers"
if grep -q INTERP <<<"$headers"; then echo 'it needs a dynamic linker'; failed=yes; fi
# Functions with buffers call the check. Those of base read files of others.
symbols=$(nm -u "$2/libespy_base.a" 2>/dev/null)
check 'stack protector' '__stack_chk_fail' "$symbols"
check '_FORTIFY_SOURCE' '__[a-z]+_chk$' "$(nm -u "$2"/libespy_*.a 2>/dev/null | grep -v stack_chk)"
[ $failed = no ]
