# Booted with lockdown=confidentiality, the kernel keeps its memory, tracefs and kprobes to itself: what needs none of them
# works, and of the rest espy says why not.
reads='dd if=/dev/zero of=/dev/null bs=1 count=20 status=none'
programs=$(dirname -- "$ESPY")/tests/live/programs
expect '^lockdown: confidentiality \(/sys/kernel/security/lockdown\)$' "$ESPY" --info

# What works. Every kind of probe but kprobes:
expect '^@: 2[0-9]$' "$ESPY" -c "$reads" -e 'tracepoint:syscalls:sys_enter_read /pid == cpid/ { @ = count(); }'
expect '^@: 2[0-9]$' "$ESPY" -c "$reads" -e 'tracepoint:syscalls:sys_exit_re* /pid == cpid && probe == "tracepoint:syscalls:sys_exit_read"/ { @ = count(); }'
expect '^@: [1-9]' "$ESPY" -c "$reads" -e 'tracepoint:sched:sched_switch { @ = count(); }'
expect '^@: 20$' "$ESPY" -c "$reads" -e 'fentry:vfs_read /pid == cpid && args.count == 1/ { @ = count(); }'
expect '^tick$' "$ESPY" -e 'interval:ms:10 { print("tick"); exit(); }'
# Memory of the process, which it has not touched: short and long texts, in printf, maps and variables, whole or a part.
uprobe="uprobe:$programs/distant:look"
if has uprobe_sleep; then
  expect '^far away 8$' "$ESPY" -c "$programs/distant" -e "$uprobe { \$s = str(arg0); printf(\"%s %d\n\", \$s, strlen(\$s)); }"
  expect '^@\[far away, look\]: 1$' "$ESPY" -c "$programs/distant" -e "$uprobe { @[str(arg0), func] = count(); }"
  expect '^of it: far away$' "$ESPY" -c "$programs/distant" -e "$uprobe { @s = str(arg0); printf(\"%s%s\n\", \"of it: \", @s); }"
  expect '^is far away$' "$ESPY" -c "$programs/distant" -e "$uprobe { print(str_concat(\"is \", str(arg0))); }"
  expect '^far a far \\x00$' "$ESPY" -c "$programs/distant" -e "$uprobe { printf(\"%s %r\n\", buf(arg0, 5), buf(str(arg0, 5), 5)); }"
fi
# What moves within our own memory: the language's tests, but those of kernel memory and of what a kernel lacks.
for script in "$(dirname -- "$ESPY")"/../tests/language/*.bt; do
  timeout "$seconds_per_command" "$ESPY" --test "$script" >test.out 2>&1 || grep -Eq 'kernel-lacks|\[lockdown\]' test.out ||
    { echo "$script:"; grep -a -B3 -e FAILED -e error test.out; exit 1; }
done
# Stacks, and the process that runs.
expect 'vfs_read' "$ESPY" -c "$reads" -e 'fentry:vfs_read /pid == cpid/ { @[kstack] = count(); }'
expect '0x|main' "$ESPY" -c "$programs/calls 5" -e "uprobe:$programs/calls:work { @[ustack] = count(); }"
expect '^@\[dd\]: 20$' "$ESPY" -c "$reads" -e 'fentry:vfs_read /pid == cpid && args.count == 1/ { @[comm] = count(); }'

# What does not: one sentence each.
forbids='kernel.s lockdown \(confidentiality\) forbids'
expect "$forbids this: it reads memory of the kernel \[lockdown\]" "$ESPY" -e 'begin { print(*(uint64 *)kaddr("jiffies_64")); }'
expect "$forbids kprobes there" "$ESPY" -e 'kprobe:vfs_read+5 { exit(); }'
expect "$forbids .write_user" "$ESPY" --unsafe -e 'begin { write_user((uint8 *)1, "x", 1); }'
expect "cannot be looked up: the $forbids" "$ESPY" -e 'tracepoint:syscalls:sys_enter_openat { print(str(args.filename)); }'
expect "cannot look for .tracepoint:sched:.*: the $forbids" "$ESPY" -l 'tracepoint:sched:*'
! grep -q sudo expect.out

# By loads of typed pointers the kernel's structures can be read all the same (Linux 6.2).
"$ESPY" --info | grep -q '^  rdonly_cast_typed *yes' || exit 0
expect '^@: 20$' "$ESPY" -c "$reads" -e 'kprobe:vfs_read /pid == cpid && arg2 == 1/ { @ = count(); }'
expect '^@: 20$' "$ESPY" -c "$reads" -e 'fentry:vfs_read /curtask.parent.tgid == ppid && args.file.f_inode.i_ino > 0 && args.count == 1 && pid == cpid/ { @ = count(); }'
expect '^@: 20$' "$ESPY" --follow -c "sh -c '$reads & wait'" -e 'fentry:vfs_read /args.count == 1 && comm == "dd"/ { @ = count(); }'
expect '^1$' "$ESPY" -e 'iter:task { print(ctx.task.pid); }'
