#!/usr/bin/env bash
# nothing-left.sh LIBRARY: starts tracers, ends each in another way, and wants none of their programs to be loaded a little
# later. Which are loaded, an iterator of the kernel tells. ESPY is the tracer.
programs_of() { sed -n 's/^prog_id:\t//p' /proc/"$1"/fdinfo/* 2>/dev/null | sort -un; }
loaded() { "$ESPY" -q -e 'iter:bpf_prog { printf("%d\n", ctx.prog.aux.id); }' | sort -un; }

# ends_with SIGNAL SCRIPT
ends_with() {
  local signal=$1 ids left
  rm -f errors.$$
  BPFTRACE_MAX_PROBES=20000 "$ESPY" -e "$2" >/dev/null 2>errors.$$ &
  local tracer=$!
  until grep -qs '^Attached' errors.$$ || ! kill -0 $tracer 2>/dev/null; do sleep 0.05; done
  ids=$(programs_of $tracer)
  [ -n "$ids" ] || { echo "$2 loaded nothing:"; cat errors.$$; return 1; }
  kill -"$signal" $tracer
  wait $tracer 2>/dev/null
  for _ in $(seq 300); do
    left=$(comm -12 <(echo "$ids" | sort) <(loaded | sort))
    [ -z "$left" ] && return
    sleep 0.1
  done
  echo "$2, after $signal, left the programs" $left
  return 1
}

cd "$(mktemp -d)" || exit 1
status=0
for signal in INT KILL SEGV; do
  ends_with $signal 'tracepoint:syscalls:sys_enter_read { @ = count(); } profile:hz:99 { @s = count(); } interval:s:1 { }' || status=1
  ends_with $signal "uprobe:$1:str* { @[func] = count(); } rawtracepoint:sched_* { @r[probe] = count(); }" || status=1
done
rm -rf "$PWD"
[ $status = 0 ] && echo nothing is left
exit $status
