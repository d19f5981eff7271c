#!/usr/bin/env bash
# cgroups.sh SCRIPT...: two containers, of control groups and namespaces, with known work in each, in a group of the first,
# and outside; espy is limited to the first, once for each SCRIPT, and ends when its group is removed. `cgroups.sh true`
# only tries whether that can be had.
set -e
mount=$(findmnt -n -o TARGET -t cgroup2 | head -1)
[ -n "$mount" ]
base=$mount/espy-test-$$
first=$base/docker-aaaabbbbcccc0123456789012345678901234567890123456789012345678901.scope
second=$base/aaaabbbbdddd0123456789012345678901234567890123456789012345678901
mkdir "$base"
trap 'rmdir "$first/inner" "$first" "$second" "$base" 2>/dev/null || :' EXIT
[ "$1" != true ] || { unshare -fp --mount-proc true; mkdir "$second"; sh -c "echo \$\$ >'$second/cgroup.procs'"; exit; }

work() { # GROUP READS: in a pid namespace, by a process that one of the group starts
  sh -c 'echo $$ >"$1/cgroup.procs"; exec unshare -fp --mount-proc sh -c "dd if=/dev/zero of=/dev/null bs=1 count=$2"' \
    work "$1" "$2" 2>/dev/null
}

for script in "$@"; do
  mkdir "$first" "$first/inner" "$second"
  : >"$SCRATCH/said"
  "$ESPY" --container aaaabbbbcccc -o "$SCRATCH/shown" -e "$script" 2>"$SCRATCH/said" &
  espy=$!
  until grep -q Attached "$SCRATCH/said"; do
    kill -0 "$espy" || { cat "$SCRATCH/said"; exit 1; }
    sleep 0.01
  done
  work "$first" 1000
  work "$second" 500
  work "$first/inner" 234
  work "$mount" 300
  rmdir "$first/inner" "$first" "$second"
  wait "$espy"
  grep . "$SCRATCH/shown"
  grep . "$SCRATCH/said" || :
done

mkdir "$first" "$second"
set +e
"$ESPY" --container aaaabbbb -e 'begin { }' 2>&1 | sed "s|$base|BASE|g"
"$ESPY" --container ffff -e 'begin { }' 2>&1
"$ESPY" --container '' -e 'begin { }' 2>&1
"$ESPY" --cgroup /tmp -e 'begin { }' 2>&1
"$ESPY" --cgroup "espy-test-$$/none" -e 'begin { }' 2>&1 | sed "s|$$|PID|"
"$ESPY" --cgroup "$first" -e 'iter:task { }' 2>&1
"$ESPY" --cgroup "$first" -c true -e 'begin { }' 2>&1
"$ESPY" -q --cgroup "espy-test-$$/$(basename "$second")" -e 'begin { printf("by path\n"); exit(); }' 2>&1
