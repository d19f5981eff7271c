# The tools for processes and the scheduler; the live tests compare more.
# kernels: 5.10 7.2
tools=$(dirname -- "$ESPY")/../tools
live=$(dirname -- "$ESPY")/../tests/live/tools
[ -x /usr/bin/python3 ] || skip 'python3 is not installed'
expect '^[0-9:]{8} [0-9]+ +[0-9]+ +sh +[0-9.]+ code 7$' "$ESPY" -q "$tools/exitsnoop.bt" -c "sh -c 'sh -c \"exit 7\"; true'"
expect '^[0-9:]{8} [0-9]+ +[0-9]+ +sh +0 /bin/true one two$' "$ESPY" -q "$tools/execsnoop.bt" -c "sh -c '/bin/true one two; :'"
expect '^[0-9:]{8} [0-9]+ +[0-9]+ +sh +2 /nowhere/x y$' "$ESPY" -q "$tools/execsnoop.bt" -c "sh -c '/nowhere/x y; :'" -- --failed
expect '^[0-9:]{8} [0-9]+ +sh +SIGUSR1 +[0-9]+ +sh +delivered$' "$ESPY" -q "$tools/sigsnoop.bt" -c "sh -c 'kill -USR1 \$\$'"
expect '^[0-9:]{8} ([0-9]+) +python3 +SIGWINCH +[0-9]+ +0$' "$ESPY" -q "$tools/killsnoop.bt" -c "/usr/bin/python3 $live/pidfd_signal.py"
expect '^[0-9:]{8} [0-9]+ +[0-9]+ +python3 +SIGSEGV +1 0x18 +no$' "$ESPY" -q \
  "$tools/segvsnoop.bt" -c "/usr/bin/python3 -c 'import ctypes; ctypes.string_at(24)'"
expect '^[0-9:]{8} [0-9]+ +python3 +clone +0 ipc ' "$ESPY" -q "$tools/nssnoop.bt" -c "/usr/bin/python3 $live/clone_namespace.py"
expect '^@failed\[[0-9]+, python3, rmdir, No such file or directory\]: 37$' "$ESPY" -q "$tools/errsnoop.bt" -c "/usr/bin/python3 $live/failing.py" \
  -- --top=1000
expect '^, sleep\]: [5-9][0-9]{5}$' "$ESPY" -q "$tools/offcputime.bt" -c 'sleep 0.5'
# The waits and the turns of a process are those that the kernel counts.
[ -r /proc/self/schedstat ] || skip 'the kernel does not count waits (CONFIG_SCHED_INFO)'
"$ESPY" -q "$tools/runqslower.bt" 1 -c "/usr/bin/python3 $live/busy_pair.py run pair" >out
/usr/bin/python3 "$live/busy_pair.py" waits pair <out
"$ESPY" -q "$tools/cpudist.bt" -c "/usr/bin/python3 $live/busy_pair.py run pair" -- --pids >out
/usr/bin/python3 "$live/busy_pair.py" turns pair <out
