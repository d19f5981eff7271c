# The kernel is asked to kill whoever has the most memory (sysrq f), which is a process made for that.
tools=$(dirname -- "$ESPY")/../tools
cat >hog.py <<'P'
import time
with open("/proc/self/oom_score_adj", "w") as file:
    file.write("1000")
memory = b"x" * (64 << 20)
open("hog.ready", "w")
time.sleep(60)
P
python3 hog.py &
until [ -e hog.ready ]; do sleep 0.2; done
expect '^[0-9:]{8} +[0-9]+ +kworker\S* +[0-9]+ +python3 +[0-9]+ +[0-9.]+ [0-9.]+ ' \
  "$ESPY" "$tools/oomkill.bt" -c 'sh -c "sleep 1; echo f >/proc/sysrq-trigger; sleep 1"'
