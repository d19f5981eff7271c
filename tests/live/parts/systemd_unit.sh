#!/usr/bin/env bash
# systemd_unit.sh: the unit of `espy build --systemd` under systemd, which is the first process of a namespace: the tool is
# active when all is attached, prints to the journal, has its capabilities and limits, ends in order, and is not restarted
# for ever. `systemd_unit.sh true` only tries whether that can be had.
set -e
mount=$(findmnt -n -o TARGET -t cgroup2 | head -n 1)
[ -n "$mount" ] && [ -x /lib/systemd/systemd ] && [ -x /lib/systemd/systemd-journald ] || exit
group=$mount/espy-systemd-$$
mkdir "$group"
remove_groups() { find "$group" -depth -type d -exec rmdir {} +; } 2>/dev/null
trap remove_groups EXIT
[ "$1" != true ] || { unshare --pid --fork --mount --cgroup --mount-proc true; exit; }
# The controllers of the limits, where they are not those of version 1.
echo '+cpu +memory +pids' 2>/dev/null >"$mount/cgroup.subtree_control" || :

cat >opens.bt <<'END'
begin { printf("it begins\n"); }
tracepoint:syscalls:sys_enter_openat { @opened = count(); }
interval:ms:100 /(int64)@opened > 0 && @seen == 0/ { @seen = 1; printf("it sees calls\n"); }
end { clear(@opened); clear(@seen); printf("it ends\n"); }
END
"$ESPY" build opens.bt --systemd -q

# Of the distribution's units only the journal's, so that little is started.
mkdir units units/opens.service.d
for unit in sysinit.target basic.target sockets.target shutdown.target umount.target final.target; do
  printf '[Unit]\nDefaultDependencies=no\n' >units/$unit
done
printf '[Unit]\nDefaultDependencies=no\nRequires=systemd-journald.service\nAfter=systemd-journald.service\n' >units/box.target
cp /lib/systemd/system/systemd-journald.service /lib/systemd/system/systemd-journald*.socket opens.service units/
printf '[Service]\nRestartSec=100ms\n' >units/opens.service.d/soon.conf

cat >box <<'END'
echo $$ >"$1/cgroup.procs"
exec unshare --pid --fork --kill-child --mount --cgroup --mount-proc bash -ec '
  mkdir -m 755 run bin
  mount -t tmpfs -o mode=755 tmpfs run
  cp -r units run/
  mount -t tmpfs -o mode=755 tmpfs bin
  install -m 755 opens bin/
  mount -n --move run /run
  mount -n --move bin /usr/local/bin
  umount -n /sys/fs/cgroup 2>/dev/null || :
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
  exec env -i container=espy PATH="$PATH" SYSTEMD_UNIT_PATH=/run/units /lib/systemd/systemd --system --unit=box.target \
    --log-target=console'
END
bash box "$group" >booted 2>&1 </dev/null &
box=$!
first() { pgrep -P "$box" | head -n 1; }  # the first process of the namespace
inside() { nsenter -t "$(first)" -m -p -C "$@"; }
show() { inside systemctl show -P "$1" opens.service; }
is() { [ "$(show "$1")" = "$2" ]; }
says() { inside journalctl -q -o cat -u opens.service | grep -qx "$1"; }
must() {
  "$@" && return
  echo "not so: $*"
  inside journalctl -q -o cat -n 12 -u opens.service || :
  tail -n 20 booted
  exit 1
}
wait_until() {
  local deadline=$((SECONDS + 120))
  until "$@"; do
    [ $SECONDS -lt $deadline ] || return 1
    sleep 0.05
  done
}
end() {
  kill -KILL $(first) || :
  wait "$box" || :
  wait_until remove_groups
} 2>/dev/null
trap end EXIT
# The outer process must not stay in a group whose controllers systemd passes on.
has_first() { [ -n "$(first)" ]; }
must wait_until has_first
echo "$box" >"$mount/cgroup.procs"
has_booted() { inside systemctl -q is-active box.target; } 2>/dev/null
must wait_until has_booted

must inside systemctl start opens.service
must is ActiveState active
must wait_until says 'it sees calls'
must says 'it begins'
echo "active"

pid=$(show MainPID)
status() { inside sed -n "s/^$1:[[:space:]]*//p" "/proc/$pid/status" | cut -f 1; }
readonly needed=000000c000000004  # CAP_BPF, CAP_PERFMON, CAP_DAC_READ_SEARCH
for set in CapEff CapPrm CapBnd; do must [ "$(status $set)" = $needed ]; done
must [ "$(status Uid)" -ge 61184 ]  # of DynamicUser
must [ "$(status NoNewPrivs) $(status Seccomp)" = '1 2' ]
must inside grep -qz -- --budget=2% "/proc/$pid/cmdline"
if [ -e "$group/cpu.max" ]; then
  limits=$(cd "$group/system.slice/opens.service" && cat cpu.max memory.max pids.max | tr '\n' ' ')
  must [ "$limits" = '20000 100000 536870912 16 ' ]
fi
echo "limited"

must inside systemctl stop opens.service
must is Result success
must says 'it ends'
echo "ended"

# Killed again and again: it is started five times at most, of which the one above may be one.
must inside systemctl start opens.service
changed() { is ActiveState failed || { is ActiveState active && ! is MainPID "$before"; }; }
killed=0
while ! is ActiveState failed; do
  must [ $killed -lt 9 ]
  before=$(show MainPID)
  inside kill -KILL "$before"
  must wait_until changed
  killed=$((killed + 1))
done
echo "killed $killed times"
