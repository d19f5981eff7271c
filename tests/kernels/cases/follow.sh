# What a command starts is traced by kprobes, too, and nothing else is.
reading
for probe in kprobe fentry; do
  argument=$([ $probe = kprobe ] && echo arg2 || echo args.count)
  expect '@: 30' "$ESPY" --follow -c 'bash -c "for i in 1 2 3; do (dd if=/dev/zero of=/dev/null bs=1 count=10 status=none; true) & done; wait"' \
    -e "$probe:vfs_read /comm == \"dd\" && $argument == 1/ { @ = count(); }"
done
