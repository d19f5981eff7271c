# Entry and return of the same functions, as one program where the kernel has sessions; all kernels count the same.
programs=2
! has kprobe_session || programs=1
has perf_link_cookie || programs=4  # without cookies each function has programs of its own
[ "$("$ESPY" --dump=program -e 'kprobe:vfs_read,kprobe:vfs_write { } kretprobe:vfs_read,kretprobe:vfs_write { }' | grep -c '^program')" = $programs ]
expect 'session: 50 50 50 1' "$ESPY" -c 'dd if=/dev/zero of=/dev/null bs=3 count=50 status=none' -e '
  kprobe:vfs_read,kprobe:vfs_write /pid == cpid/ {
    if (func == "vfs_write") { @begun++; } else { @reads++; }
    @size[tid, func] = arg2;
  }
  kretprobe:vfs_read,kretprobe:vfs_write /pid == cpid/ {
    if (probe == "kretprobe:vfs_read") { @reads--; return; }
    @ended++;
    if (retval == @size[tid, func]) { @whole++; }
  }
  end { printf("session: %d %d %d %d\n", @begun, @ended, @whole, @reads == 0); }'
