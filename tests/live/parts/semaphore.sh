#!/usr/bin/env bash
# semaphore.sh PROGRAM: for a while traces what is behind the semaphore of PROGRAM, which then says how often it came
# there, and what the semaphore is at its end. ESPY is the tracer.
for signal in INT KILL; do
  said=$(mktemp)
  "$1" 2000 >"$said" &
  program=$!
  "$ESPY" -p $program -e "usdt:$1:espy:behind { @ = count(); }" >/dev/null 2>"$said.errors" &
  tracer=$!
  until grep -q '^Attached' "$said.errors" || ! kill -0 $tracer 2>/dev/null; do sleep 0.05; done
  sleep 0.2
  kill -$signal $tracer
  wait $tracer 2>/dev/null
  wait $program
  echo "$signal: $(cat "$said")"
  rm -f "$said" "$said.errors"
done
