# The context of a kprobe, stacks that were kept, arguments on the stack.
case $(uname -m) in
  aarch64) counter=pc ;;
  *) counter=ip ;;
esac
reading
expect '^\(true, true, true\)$' "$ESPY" -e 'kprobe:vfs_read /comm == "dd"/ {
  $s = kstack(4); print((ctx->'$counter' == reg("'$counter'"), len($s) == 4, sarg0 == sarg0)); exit(); }'
