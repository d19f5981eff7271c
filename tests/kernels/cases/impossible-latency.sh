# A return whose beginning nobody saw took since the machine was started: a histogram without a filter shows it, printing
# the parts shows why, and the filter takes it away.
# kernels: 5.10
reading
begin='kprobe:vfs_read /comm == "dd" && rand % 2 == 0/ { @start[tid] = nsecs; }'
end='kretprobe:vfs_read /comm == "dd"'
stop='interval:s:1 { exit(); } end { clear(@start); }'
expect '^\[[0-9]+G, [0-9]+G\)' "$ESPY" -e "$begin $end/ { @ns = hist(nsecs - @start[tid]); delete(@start, tid); } $stop"
expect '^start 0 ' "$ESPY" -e "$begin $end/ { printf(\"start %d took %d\\n\", @start[tid], nsecs - @start[tid]); delete(@start, tid); } $stop"
"$ESPY" -e "$begin $end && @start[tid]/ { @ns = hist(nsecs - @start[tid]); delete(@start, tid); } $stop" >out 2>&1
expect '^\[[0-9]+K?, [0-9]+K\)' cat out
! grep -E '^\[[0-9]+G' out
