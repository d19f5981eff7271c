# Actions on one function run in the order of the script: kprobe, kretprobe, fentry, fexit, and at an offset; each alone,
# with wildcards that overlap, with sessions where they would be possible.
# kernels: 5.10 6.12
run() { timeout "$seconds_per_command" "$ESPY" -q -c 'dd if=/dev/zero of=/dev/null bs=1 count=1 status=none' -e "$1" >order.out 2>&1; }
# in_order EXPECTED SCRIPT: the first line of its output.
in_order() {
  run "$2" || { cat order.out; return 1; }
  [ "$(head -n 1 order.out)" = "$1" ] && return
  echo "expected $1 from $2; got:"
  head -n 5 order.out
  return 1
}
# four TYPE FUNCTION WILDCARD
four() {
  echo "$1:$2 /pid == cpid && @n == 0/ { printf(\"1 \"); @a++; }
        $1:$2 /pid == cpid && @n == 0/ { printf(\"2 \"); @b += @a == 1; }
        $1:$3 /pid == cpid && @n == 0 && func == \"vfs_read\"/ { printf(\"3 \"); @c += @b == 1; }
        $1:$2 /pid == cpid && @n == 0/ { printf(\"4 %d\\n\", @c); @n = 1; exit(); }"
}
for type in kprobe kretprobe; do in_order "1 2 3 4 1" "$(four $type vfs_read 'vfs_rea*')"; done
for type in fentry fexit; do in_order "1 2 3 4 1" "$(four $type vfs_read vfs_read | sed 's/&& func == "vfs_read"//')"; done
in_order "1 2 3 4 5 6" 'kprobe:vfs_read /pid == cpid && @n == 0/ { printf("1 "); } kretprobe:vfs_read /pid == cpid && @n == 0/ { printf("4 "); }
  kprobe:vfs_read /pid == cpid && @n == 0/ { printf("2 "); } kretprobe:vfs_read /pid == cpid && @n == 0/ { printf("5 "); }
  kprobe:vfs_read /pid == cpid && @n == 0/ { printf("3 "); } kretprobe:vfs_read /pid == cpid && @n == 0/ { printf("6\n"); @n = 1; }'
