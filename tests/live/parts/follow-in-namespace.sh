# follow-in-namespace.sh SCRIPT: follows a command into pid namespaces within ours.
dd if=/dev/zero of=/dev/null bs=1 status=none &
"$ESPY" --follow -c "bash -c 'dd if=/dev/zero of=/dev/null bs=1 count=10 status=none; unshare -fp dd if=/dev/zero of=/dev/null bs=1 count=7 status=none'" "$1"
kill $!
