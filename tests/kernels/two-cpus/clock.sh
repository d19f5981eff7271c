# The clock is set during a run.
expect 'the clock was set by [0-9.]+ s during the run' "$ESPY" --strict -c "date -s 10minutes" \
  -e 'begin { print(strftime("%Y", nsecs)); } tracepoint:syscalls:sys_exit_clock_settime { @ = strftime("%Y", nsecs); }'
# A recording keeps it.
"$ESPY" record -q -o recording -c 'date -s 10minutes' tracepoint:syscalls:sys_exit_clock_settime >/dev/null
expect 'while the events were recorded: the clock was set by' "$ESPY" --strict -i recording \
  -e 'tracepoint:syscalls:sys_exit_clock_settime { @ = count(); }'
