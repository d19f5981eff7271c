# An instruction inside a function, by whichever of two offsets is one; an address only with --unsafe.
reading
{ "$ESPY" -e 'kprobe:vfs_read+4 { print(probe); exit() }' || "$ESPY" -e 'kprobe:vfs_read+5 { print(probe); exit() }'; } \
  >out 2>&1
grep -Eq '^kprobe:vfs_read\+[45]$' out
address=$(awk '$3 == "vfs_read" { print $1; exit }' /proc/kallsyms)
expect 'needs --unsafe' "$ESPY" -e "kprobe:0x$address { print(1) }"
expect '^at' "$ESPY" --unsafe -e "kprobe:0x$address { printf(\"at %s\n\", probe); exit() }"
