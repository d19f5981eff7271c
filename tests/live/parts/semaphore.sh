#!/usr/bin/env bash
# semaphore.sh PROGRAM: traces the probe behind the semaphore of PROGRAM until it has fired ten times. PROGRAM prints how
# often it passed the probe, and the semaphore's value at its end. ESPY is the tracer.
for signal in INT KILL; do
  said=$(mktemp)
  "$1" 2000 >"$said" &
  program=$!
  "$ESPY" -p $program -e "usdt:$1:espy:behind { print(\"behind\"); }" -B line >"$said.events" 2>"$said.errors" &
  tracer=$!
  until [ "$(grep -c behind "$said.events")" -ge 10 ] || ! kill -0 $tracer 2>/dev/null; do sleep 0.05; done
  kill -$signal $tracer
  wait $tracer 2>/dev/null
  wait $program
  echo "$signal: $(cat "$said")"
  rm -f "$said" "$said.events" "$said.errors"
done
