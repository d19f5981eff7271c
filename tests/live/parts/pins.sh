#!/usr/bin/env bash
# pins.sh: ends tracers that have pinned an iterator, and prints what is left of it. In a mount namespace of its own.
# ESPY is the tracer.
[ "$1" = inside ] || exec unshare --mount "$0" inside
mount -t bpf bpf /sys/fs/bpf || exit
pin=/sys/fs/bpf/espy_pin

left() { # whether the file is there a little later
  for _ in $(seq 300); do [ -e $pin ] || { echo gone; return; }; sleep 0.1; done
  echo left
}

timeout -s KILL 60 "$ESPY" -q -c true -e 'iter:task:espy_pin { } iter:task:espy_pin { }' 2>/dev/null
echo "a second one that fails: $?, $(left)"
for signal in INT KILL; do
  "$ESPY" -q -e 'iter:task:espy_pin { }' & tracer=$!
  until [ -e $pin ] || ! kill -0 $tracer; do sleep 0.05; done
  kill -$signal $tracer
  wait $tracer 2>/dev/null
  echo "$signal: $?, $(left)"
done
