# The tools that watch the kernel make room: a control group at its limit, and memory that is compacted because somebody asks.
# What they count is compared with the kernel's own counters.
# kernels: 5.10 6.12
tools=$(dirname -- "$ESPY")/../tools
group=/sys/fs/cgroup/espy-drsnoop
echo +memory >/sys/fs/cgroup/cgroup.subtree_control && mkdir $group || skip "no memory control groups"
echo 16M >$group/memory.max
cat >write.py <<'P'
import os
with open("/sys/fs/cgroup/espy-drsnoop/cgroup.procs", "w") as group:
    group.write(str(os.getpid()))
with open("/tmp/espy-drsnoop", "wb") as file:
    for _ in range(60):
        file.write(b"x" * 1000000)
P
expect '^[0-9:]{8} [0-9]+ +python3 +cgroup +[0-9]+ +[0-9]+ +[0-9]+$' "$ESPY" "$tools/drsnoop.bt" -c 'python3 write.py'
expect '^[0-9:]{8} +[0-9]+ +[0-9]+ +[0-9]+ +[1-9][0-9]* +[0-9]+ +[0-9]+ ' "$ESPY" "$tools/vmscan.bt" -c 'python3 write.py'
rm /tmp/espy-drsnoop
counter() { sed -n "s/^$1 //p" /proc/vmstat; }
before=$(counter pgmigrate_success)
"$ESPY" "$tools/numamove.bt" -c "sh -c 'echo 1 >/proc/sys/vm/compact_memory'" >out
awk -v all=$(($(counter pgmigrate_success) - before)) '/^@moved.*MR_COMPACTION/ { n += $NF } END { exit !(n <= all && (n > 0 || all == 0)) }' out || { cat out; exit 1; }
expect '^[0-9:]{8} [0-9]+ +sh +sync +[0-9]+ COMPACT_[A-Z_]+$' "$ESPY" "$tools/compactsnoop.bt" -c "sh -c 'echo 1 >/proc/sys/vm/compact_memory'"
