# late-readers.sh: a reader that is there from the first, and another, a grandchild, that is started later.
dd if=/dev/zero of=/dev/null bs=1 status=none &
early=$!
sleep 2
kill $early
(bash -c '(dd if=/dev/zero of=/dev/null bs=1 count=20 status=none); true'; true)
