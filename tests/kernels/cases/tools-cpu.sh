# The tools that read the kernel's variables of each CPU, and the one that sees modules.
# kernels: 5.10 7.2
tools=$(dirname -- "$ESPY")/../tools
# A process that is busy. User time is as much of the time that passes as the kernel's own numbers say (in 1/100 s), between
# the first line of the tool and the third.
sh -c 'while :; do :; done' & busy=$!
trap 'kill $busy 2>/dev/null || true' EXIT
now() { awk '/^cpu /{ user = $2 } NR == FNR { next } { print user, $1 }' /proc/stat /proc/uptime; }
lines() { [ "$(grep -c '^[0-9]' out)" -ge "$1" ]; }
"$ESPY" -q "$tools/cpustat.bt" 3 3 >out & tool=$!
wait_until lines 1
read -r user_before seconds_before <<<"$(now)"
wait_until lines 3
read -r user_after seconds_after <<<"$(now)"
wait $tool
share=$(awk "BEGIN { print ($user_after - $user_before) / ($seconds_after - $seconds_before) }")
awk -v share="$share" '/^[0-9]/ { n++ } n > 1 && /^[0-9]/ { user += $2 / 2 } END { print user, share; exit !(user > share - 15 && user < share + 15 && user > 2) }' out
# With one CPU that is busy, nothing is idle.
expect '^[0-9:]{8} +[1-9][0-9]+ +[0-9]+\.[0-9] +0\.0$' "$ESPY" -q "$tools/cpuunclaimed.bt" 2 1
kill $busy
# A module that is loaded and removed, and one that is not there.
modprobe -r dummy 2>/dev/null || true
"$ESPY" -q "$tools/modsnoop.bt" -c 'sh -c "modprobe dummy; rmmod dummy; rmmod dummy; true"' >out 2>&1
grep -Eq '^[0-9:]{8} [0-9]+ +modprobe +(finit_module +0 dummy\.ko\S*|init_module +0 dummy)$' out || { cat out; exit 1; }
grep -Eq '^[0-9:]{8} [0-9]+ +rmmod +delete_module +0 dummy$' out || { cat out; exit 1; }
