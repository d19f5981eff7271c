# in-namespace.sh SCRIPT: runs it with -p and the pid of a process that reads, for a second.
dd if=/dev/zero of=/dev/null bs=1 status=none &
reader=$!
timeout -s INT 1 "$ESPY" -p $reader "$1" $reader
kill $reader
