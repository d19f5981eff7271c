# -lv of kernel functions has their arguments.
# kernels: 6.12
expect '^    struct file \* file$' "$ESPY" -lv kprobe:vfs_read
expect '^    size_t count$' "$ESPY" -lv kprobe:vfs_read
expect '^    ssize_t retval$' "$ESPY" -lv kretprobe:vfs_read
# Only functions that the file of --traceable-functions has.
echo vfs_write >functions
"$ESPY" --traceable-functions functions --dry-run -e 'kprobe:vfs_write { }'
expect 'error: no probe matches `kprobe:vfs_read`' "$ESPY" --traceable-functions functions -e 'kprobe:vfs_read { }'
# Alternatives of several kernels: what may not be traced is left out.
refused=$(sed -n '/^[0-9a-fx]* *[^+]*/s/.*\t//p' /sys/kernel/debug/kprobes/blacklist | grep -m 1 '^[a-z_0-9]*$')
[ -n "$refused" ]
expect "error: a probe of .$refused. can make the machine hang: the kernel's own list" "$ESPY" --dry-run -e "kprobe:vfs_read { } kprobe:$refused { }"
expect "warning: a probe of .$refused. can make" "$ESPY" --dry-run -e "config = { missing_probes = warn } kprobe:vfs_read { } kprobe:$refused { }"
expect 'Attached 1 probe' "$ESPY" --dry-run -e "config = { missing_probes = ignore } kprobe:vfs_read { } kprobe:$refused { }"
# With --unsafe the kernel decides.
expect "cannot attach to kprobe:$refused: the kernel does not allow a probe there" "$ESPY" --unsafe --dry-run -e "kprobe:vfs_read { } kprobe:$refused { }"
expect "WARNING: cannot attach to kprobe:$refused: " "$ESPY" --unsafe --dry-run -e "config = { missing_probes = warn } kprobe:vfs_read { } kprobe:$refused { }"
expect 'Attached 1 probe' "$ESPY" --unsafe --dry-run -e "config = { missing_probes = ignore } kprobe:vfs_read { } kprobe:$refused { }"
expect 'hint: nothing else is left to attach' "$ESPY" --unsafe --dry-run -e "config = { missing_probes = warn } begin { } kprobe:$refused { }"
