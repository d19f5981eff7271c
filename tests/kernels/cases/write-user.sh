# write_user() changes the memory of the process that is traced: here, the name of the file that it opens.
echo right > /tmp/right
echo wrong > /tmp/wrong
expect '^right$' "$ESPY" --unsafe -c 'cat /tmp/wrong' \
  -e 'tracepoint:syscalls:sys_enter_openat /comm == "cat" && str(args.filename) == "/tmp/wrong"/ { write_user(args.filename, "/tmp/right", 10); }'
