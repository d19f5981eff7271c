#!/bin/bash
# beside.sh TOOL PROGRAM...: runs a tool, with its options in $OPTIONS, while a program works that runs before it. The program is
# called with a directory more: it makes the file `ready` there, waits for `go`, works, and makes `done`.
"${@:2}" "$SCRATCH" >&2 &
program=$!
until [ -e "$SCRATCH/ready" ]; do
  kill -0 $program || exit 1
  sleep 0.05
done
printf '%s\n' ': >$SCRATCH/go' 'until [ -e $SCRATCH/done ]; do sleep 0.05; done' "${AFTER:-:}" >"$SCRATCH/work.sh"
# shellcheck disable=SC2086  # several options
"$ESPY" "$1" -c "sh $SCRATCH/work.sh" -- $OPTIONS
kill $program 2>/dev/null
wait $program 2>/dev/null
exit 0
