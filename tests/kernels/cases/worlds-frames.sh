# kernels: 6.1 6.12 7.2
# Several threads are in one user probe on one CPU: each keeps its variables, keys, texts and stacks.
here=$(dirname -- "$ESPY")/tests/worlds
[ -x "$here/held_pages" ] || skip "the programs of tests/worlds are not built"
status=0
"$(dirname -- "$ESPY")/../tests/worlds/frames" "$ESPY" "$here" || status=$?
[ $status != 77 ] || skip "userfaultfd(2) cannot be used"
exit $status
