# What a command starts is traced by kprobes, too, and nothing else is.
# kernels: 5.10 7.2
reading
for probe in kprobe fentry; do
  argument=$([ $probe = kprobe ] && echo arg2 || echo args.count)
  expect '^@: ' "$ESPY" --follow -c 'bash -c "for i in 1 2 3; do (dd if=/dev/zero of=/dev/null bs=1 count=10 status=none; true) & done; wait"' \
    -e "$probe:vfs_read /comm == \"dd\" && $argument == 1/ { @ = count(); }"
  # A preemptible kernel leaves out a program that it has interrupted on the same CPU; espy says how often. A start of a
  # process that is left out is ten reads.
  seen=$(sed -n 's/^@: //p' expect.out)
  skipped=$(sed -n 's/^WARNING: \([0-9]*\) process events\{0,1\} skipped by the kernel.*/10 * \1/p;
    s/^WARNING: \([0-9]*\) events\{0,1\} skipped by the kernel.*/\1/p' expect.out | paste -sd+)
  [ "$seen" = 30 ] || { [ "$seen" -lt 30 ] && [ $((seen + ${skipped:-0})) -ge 30 ]; } || { cat expect.out; exit 1; }
done
# The map of processes of programs of perf events, which old kernels want preallocated.
expect '^@: [1-9]' "$ESPY" --follow -c "sh -c 'cat /dev/null; true'" -e 'software:page-faults:1 { @ = count(); }'
