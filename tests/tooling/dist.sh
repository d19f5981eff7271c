#!/usr/bin/env bash
# dist.sh ESPY BUILD: what is packed does not depend on where and when it was built. The binary names no directory of the
# builder; the same files in two directories, with other dates and another umask, give equal packages; what is installed
# can be removed. Formats whose tools are missing are left out; status 77 for a build that is not for packages.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
espy=$1 build=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() {
  echo "$*"
  exit 1
}

[ -x "$espy" ] || { printf 'dist.sh:1: Skipped\nespy is not built\n'; exit 77; }
! readelf -lW "$espy" | grep -q INTERP || { printf 'dist.sh:1: Skipped\nthe binary is not static\n'; exit 77; }
for directory in "$root/src/" "$build/"; do
  ! grep -qF -- "$directory" "$espy" || fail "the binary contains $directory"
done
version=$(sed -n 's/^project(espy VERSION \([0-9.]*\) .*/\1/p' "$root/CMakeLists.txt")
said=$("$espy" --version | head -n 1)
[ "$said" = "espy $version" ] || fail "the version is $version in CMakeLists.txt, and the binary says $said"

formats=tarball
! command -v dpkg-deb >/dev/null || formats+=,deb
! command -v rpmbuild >/dev/null || formats+=,rpm
export SOURCE_DATE_EPOCH=1700000000
head -c 200000 "$espy" >"$scratch/espy"  # a smaller one is packed faster
pack() { # DIRECTORY
  mkdir -p "$1"
  (cd "$root" && cp -r --parents scripts/make-dist scripts/install-tree cmake packaging docs editors fleet tools bench/README.md tests/kernels/README.md README.md CHANGELOG.md SECURITY.md CONTRIBUTING.md LICENSE CMakeLists.txt "$1")
  "$1/scripts/make-dist" --formats $formats "$scratch/espy" "$1/dist" >"$scratch/log" 2>&1 || fail "make-dist: $(<"$scratch/log")"
}
pack "$scratch/one"
(umask 077 && HOME=/nonexistent TZ=Asia/Tokyo pack "$scratch/another/place") || exit
cmp "$scratch/one/dist/SHA256SUMS" "$scratch/another/place/dist/SHA256SUMS" || fail 'two packages of the same files differ'
(cd "$scratch/one/dist" && sha256sum --quiet -c SHA256SUMS) || fail 'SHA256SUMS is wrong'
others=$(TZ=UTC tar -tvf "$scratch"/one/dist/*.tar.gz | grep -v ' 2023-11-14 22:13 ')
[ -z "$others" ] || fail "files with another date than SOURCE_DATE_EPOCH: $others"

other=aarch64
[ "$(uname -m)" != aarch64 ] || other=x86_64
said=$("$root/scripts/make-dist" --arch $other --formats tarball "$espy" "$scratch/other" 2>&1) && fail 'packs a binary of another CPU'
[ "$said" = "make-dist: $espy is not a program for $other" ] || fail "of a binary of another CPU: $said"

files() { (cd "$1" && find . ! -type d | sort); } # DIRECTORY
DESTDIR=$scratch/destination cmake --install "$build" --prefix /usr >/dev/null || fail 'cmake --install'
DESTDIR=$scratch/wrong "$root/scripts/install-tree" "$espy" "$scratch/prefix"
differ=$(diff <(files "$scratch/destination/usr") <(files "$scratch/prefix")) || fail "cmake --install and install-tree: $differ"
[ "$(files "$scratch/prefix" | grep -c -e bin/espy -e man8/espy.8 -e tools/opensnoop.bt)" = 3 ] || fail 'files are not installed'
"$root/scripts/install-tree" --remove "$espy" "$scratch/prefix"
left=$(find "$scratch/prefix" ! -type d)
[ -z "$left" ] || fail "left after the removal: $left"
