# The context of a kprobe, stacks that were kept, arguments on the stack.
reading
expect '^\(true, true, true\)$' "$ESPY" \
  -e 'kprobe:vfs_read /comm == "dd"/ { $s = kstack(4); print((ctx->ip == reg("ip"), len($s) == 4, sarg0 == sarg0)); exit(); }'
