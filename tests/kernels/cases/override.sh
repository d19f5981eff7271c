# override() is refused in a sentence where the kernel is not built for it.
grep -qw bpf_override_return /proc/kallsyms && skip "this kernel can override"
expect 'this kernel cannot override return values' "$ESPY" --unsafe -e 'kprobe:vfs_read { override(1); }'
