#!/usr/bin/env bash
# kill.sh BUILD: a short form of the campaign `kill`: tracers that are ended by signals at random moments leave nothing.
cd "$(dirname "$0")/../.." || exit 1
skip() { printf 'kill.sh:1: Skipped\n%s\n' "$1"; exit 77; }
[ "$(id -u)" = 0 ] || skip 'needs root'
[ -x "$1/espy" ] || skip 'espy is not built'
[ -x "$1/tests/live/programs/bells" ] || skip 'needs sys/sdt.h'
command -v readelf >/dev/null || skip 'needs readelf'
unshare --mount mount -t bpf bpf /sys/fs/bpf 2>/dev/null || skip 'needs a BPF file system'
state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT
BUILD=$1 ESPY=$1/espy tests/campaigns/kill --state "$state" --seconds 100 --seed 100 --trials 60
