# strcontains() and strstr() find strings in all kinds of programs, whether or not the kernel has string functions.
# kernels: 6.12 7.2
reading
expect 'zero 1 0 1 5 -1' "$ESPY" -e 'kprobe:vfs_read /comm == "dd"/ {
  $name = str(((struct file *)arg0)->f_path.dentry->d_name.name);
  printf("%s %d %d %d %d %d\n", $name, strcontains($name, "er"), strcontains($name, "null"), strcontains(comm, ""),
         strstr("/dev/zero", $name), strstr($name, "/dev/zero"));
  exit() }'
expect '/dev/zero 1 5' "$ESPY" -c 'dd if=/dev/zero of=/dev/null count=1' -e '
  tracepoint:syscalls:sys_enter_openat /pid == cpid/ {
    $path = str(args.filename);
    if (strcontains($path, "zero")) { printf("%s %d %d\n", $path, strcontains($path, "/dev/zero"), strstr($path, "zero")); }
  }'
expect '^HOME 1 2$' "$ESPY" -c '/bin/bash -c "echo ~ >/dev/null"' -e 'uprobe:libc:getenv {
  $name = str(arg0);
  printf("%s %d %d\n", $name, strcontains($name, "OM"), strstr($name, "ME")); }' ||
  expect '^PATH 1 2$' "$ESPY" -c '/usr/bin/env true' -e 'uprobe:libc:getenv {
    $name = str(arg0);
    printf("%s %d %d\n", $name, strcontains($name, "AT"), strstr($name, "TH")); }' ||
  expect '@: [0-9]+' "$ESPY" -c '/bin/bash -c true' -e 'uprobe:libc:malloc { @ = sum(strcontains(comm, "bash")); }'
