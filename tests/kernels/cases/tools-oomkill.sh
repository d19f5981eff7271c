# The kernel is asked to kill whoever has the most memory (sysrq f), which is a process made for that.
# kernels: 6.1
tools=$(dirname -- "$ESPY")/../tools
cat >hog.py <<'P'
import time
with open("/proc/self/oom_score_adj", "w") as file:
    file.write("1000")
memory = b"x" * (64 << 20)
open("hog.ready", "w")
time.sleep(1000)
P
python3 hog.py &
hog=$!
wait_until test -e hog.ready
expect '^[0-9:]{8} +[0-9]+ +kworker\S* +[0-9]+ +(python3|-) +[0-9-]+ +[0-9.]+ [0-9.]+ ' \
  "$ESPY" "$tools/oomkill.bt" -c "sh -c 'echo f >/proc/sysrq-trigger; while grep -qs State:.[RSD] /proc/$hog/status; do sleep 0.05; done'"
