# late-readers.sh: a reader that is there from the first, and another, a grandchild, that is started when espy
# traces: $ERR is what it says.
dd if=/dev/zero of=/dev/null bs=1 status=none &
early=$!
until grep -q '^Attached' "$ERR"; do sleep 0.1; done
kill $early
(bash -c '(dd if=/dev/zero of=/dev/null bs=1 count=20 status=none); true'; true)
