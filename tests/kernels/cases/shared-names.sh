# Several functions of the kernel have one name; /proc/PID/maps and /proc/mounts, for example, have iterators of their own.
# kprobe and kretprobe see the calls of all, as ftrace counts them; fentry and fexit say that they do not.
tracing=/sys/kernel/tracing
functions=$(grep -xE '(m|s|swap|t)_(next|start|stop)' $tracing/available_filter_functions | sort | uniq -d | head -n 3)
[ -n "$functions" ] || skip "no function of this kernel shares its name"
cat >calls <<'EOF'
for i in 1 2 3 4 5; do cat /proc/self/maps /proc/mounts /proc/swaps /proc/modules /proc/kallsyms | head -n 200; done >/dev/null
EOF
for function in $functions; do
  # The truth: a second tracer, at the same time.
  echo nop >$tracing/current_tracer
  echo "$function" >$tracing/set_ftrace_filter
  echo >$tracing/trace
  echo function >$tracing/current_tracer
  "$ESPY" -q --strict -o counts -c 'sh calls' -e \
    "kprobe:$function /comm == \"cat\"/ { @in = count(); } kretprobe:$function /comm == \"cat\"/ { @out = count(); }"
  calls=$(grep -c "^ *cat-.*: $function" $tracing/trace || true)  # another tracer empties it
  echo nop >$tracing/current_tracer
  echo >$tracing/set_ftrace_filter
  echo "$function: $calls calls"
  grep -q "^@in: $calls$" counts && grep -q "^@out: $calls$" counts || { cat counts; exit 1; }
done
function=${functions%%$'\n'*}
expect ambiguous-function "$ESPY" -e "kprobe:$function+4 { }"
needs fentry
expect "partly-probed|no-fentry" "$ESPY" -e "fentry:$function { }" -c true  # pahole may leave out such functions
! "$ESPY" --strict -e "fentry:$function { }" -c true
