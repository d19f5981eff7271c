# An instruction inside a function, by whichever of the offsets is one that may be probed; an address only with --unsafe.
reading
for offset in 4 5 8; do
  "$ESPY" -e "kprobe:vfs_read+$offset { print(probe); exit() }" && break
done >out 2>&1
grep -Eq '^kprobe:vfs_read\+[458]$' out
address=$(awk '$3 == "vfs_read" { print $1; exit }' /proc/kallsyms)
expect 'needs --unsafe' "$ESPY" -e "kprobe:0x$address { print(1) }"
expect '^at' "$ESPY" --unsafe -e "kprobe:0x$address { printf(\"at %s\n\", probe); exit() }"
