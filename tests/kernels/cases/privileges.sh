# The table of docs/reference/privileges.md, also for what the distribution's setting leaves to root.
# kernels: 6.12
as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
"${as_nobody[@]}" "$ESPY" --version >/dev/null || skip 'the program cannot be run by others'
sysctl -qw kernel.perf_event_paranoid=2
script=$(dirname "${BASH_SOURCE[0]}")/../privileges
expect '^[1-9][0-9]* lines hold, ' "$script" "$ESPY"
! grep -E '^(does not|no test)' expect.out
