# write_user() changes the memory of the process that is traced: here, the name of the file that it opens.
echo right >right
echo wrong >wrong
expect '^right$' "$ESPY" --unsafe -c 'cat wrong' \
  -e 'tracepoint:syscalls:sys_enter_openat /comm == "cat" && str(args.filename) == "wrong"/ { write_user(args.filename, "right", 5); }'
