#!/usr/bin/env bash
# container.sh PROGRAM SCRIPT: PROGRAM runs as process 1 of its own namespaces, from a file system that only these have;
# espy traces it, with PROGRAM in SCRIPT replaced by the path that it has in there.
inside=$(mktemp -d)
unshare -m -p -f bash -c "
  mount -t tmpfs none '$inside' && cp '$1' '$inside/program' && exec '$inside/program' 1000000000" >/dev/null &
outer=$!
trap 'kill -KILL $program; rmdir "$inside"' EXIT
program=
until [ "$(readlink "/proc/$program/exe")" = "$inside/program" ]; do program=$(pgrep -P $outer) || sleep 0.01; done
[ -e "$inside/program" ] && exit 1
$ESPY -p "$program" -e "${2//PROGRAM/$inside/program}"
echo "it was process $(awk '/^NSpid/ { print $NF }' "/proc/$program/status") there"
