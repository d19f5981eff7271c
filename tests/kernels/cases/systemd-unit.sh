# The unit of `espy build --systemd` under systemd, with the limits that a host without control groups of version 2 lacks.
# kernels: 6.12
unit=$(dirname -- "$ESPY")/../tests/live/parts/systemd_unit.sh
"$unit" true || skip 'systemd is not installed, or cannot be started in a namespace'
echo 2 >/proc/sys/kernel/perf_event_paranoid  # above it the unit needs CAP_SYS_ADMIN
expect '^killed [45] times$' "$unit"
