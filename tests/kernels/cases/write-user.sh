# write_user() changes the memory of the process that is traced: here, what it is about to write. Before Linux 6.0 the page
# must be one that the process itself has written to.
expect '^right$' "$ESPY" --unsafe -c "sh -c 'echo wrong'" \
  -e 'tracepoint:syscalls:sys_enter_write /comm == "sh" && str(args.buf, 6) == "wrong"/ { write_user(args.buf, "right", 5); }'
expect '^written true$' "$ESPY" -q --unsafe -c "sh -c 'echo wrong'" \
  -e 'tracepoint:syscalls:sys_enter_write /comm == "sh" && str(args.buf, 6) == "wrong"/ {
    $done = write_user(args.buf, "right", 5); printf("written %s\n", $done ? "true" : "false"); }'
expect '^written false$' "$ESPY" -q --unsafe -c "sh -c 'echo wrong'" \
  -e 'tracepoint:syscalls:sys_enter_write /comm == "sh" && str(args.buf, 6) == "wrong"/ {
    $done = write_user((int8 *)16, "right", 5); printf("written %s\n", $done ? "true" : "false"); }'
