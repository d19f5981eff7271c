# Of a hundred trees of kernel functions, the one whose condition holds is shown; of a user function, too, with the
# kernel's below it.
# kernels: 6.1 6.12 7.2
head -c 100 /dev/zero >hundred
read_it='dd if=hundred of=/dev/null bs=1 status=none'
trees() { local pattern=$1; shift; expect "$pattern" "$ESPY" trace -q -v --graph -c "$read_it" "$@"; }
trees '^trees: 101 begun, 1 shown, 100 dropped, 0 left without a return, 0 in progress$' \
  --when 'return == 0' 'vfs_read(count == 1)' rw_verify_area
grep -Eq '^ +[0-9]+\) .* \|  vfs_read\(.*count = 1.*\) \{$' expect.out
grep -Eq '^ +[0-9]+\) .* \|    rw_verify_area\(.*\); /\* = 0 \*/$' expect.out
test "$(grep -c 'vfs_read(' expect.out)" = 1
trees '^trees: 101 begun, 1 shown, 100 dropped, 0 left' --no-feature fentry --before 1 --when 'return < count' \
  'vfs_read(count == 1)' 'rw_verify_*'
test "$(grep -c 'vfs_read(' expect.out)" = 1
grep -Eq '^ +[0-9]+\) .* \|  rw_verify_area\(\);$' expect.out
trees '^trees: .* shown, .* 0 left' --when 'return == 0' libc:read vfs_read
grep -Eq '^ +[0-9]+\) .* \|  read\(.*\) \{$' expect.out
grep -Eq '^ +[0-9]+\) .* \|    vfs_read\(.*\); /\* = 0 \*/$' expect.out
