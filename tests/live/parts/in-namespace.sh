# in-namespace.sh SCRIPT: runs it with -p and the pid of a process that reads.
dd if=/dev/zero of=/dev/null bs=1 status=none &
reader=$!
"$ESPY" -p $reader "$1" $reader
kill $reader
