# --cgroup: function probes act in a control group alone. --user: the maps stay readable without capabilities, or with
# CAP_BPF where the kernel asks for it, and return probes that are defined in tracefs are removed.
# kernels: 6.1 6.12
needs for_each_map_elem
groups=$(mktemp -d)
mount -t cgroup2 none "$groups" || skip 'there is no cgroup2'
mkdir "$groups/traced"
reading
other=$!
sh -c 'echo $$ >"$1/cgroup.procs"; exec dd if=/dev/zero of=/dev/null bs=1 status=none' sh "$groups/traced" &
traced=$!
trap 'kill $other $traced' EXIT
expect "^seen 1, $traced\$" "$ESPY" --cgroup "$groups/traced" \
  -e 'kprobe:vfs_read { @[pid] = count(); } interval:ms:100 { @ticks++; if (len(@) > 0 && @ticks > 4) { exit(); } }
      end { printf("seen %d, ", len(@)); for ($each : @) { printf("%d\n", $each.0); } clear(@); clear(@ticks); }'
expect '^keys 1$' "$ESPY" --user 65534:65534 --unsafe \
  -e 'kretprobe:vfs_read { @[comm] = count(); } interval:ms:100 { if (len(@) > 0) { system("id -u"); exit(); } }
      end { printf("keys %d\n", len(@) > 0); clear(@); }'
grep -qx 65534 expect.out
if [ -e /sys/kernel/tracing/kprobe_events ]; then wait_until sh -c '! grep -q vfs_read /sys/kernel/tracing/kprobe_events'; fi
