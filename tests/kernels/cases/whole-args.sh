# All arguments of a function at once; what it returned.
reading
expect '^\{ \.file = 0x[0-9a-f]+, \.buf = 0x[0-9a-f]+, \.count = 1, \.pos = 0x[0-9a-f]+ \}$' \
  "$ESPY" -e 'fentry:vfs_read /comm == "dd" && args.count == 1/ { print(args); exit(); }'
expect '^1 1$' "$ESPY" -e 'fexit:vfs_read /comm == "dd" && args.count == 1/ { printf("%d %d\n", args.count, retval); exit(); }'
