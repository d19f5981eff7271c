# What `espy check` says of a snapshot of this kernel is what happens here, for scripts that run and others that do not.
# kernels: 5.10 6.1
"$ESPY" snapshot >kernel
[ "$(stat -c %s kernel)" -lt 8000000 ] || exit 1
cat >member.bt <<'END'
profile:hz:99 { print(curtask.state); }
END
cat >moved.bt <<'END'
profile:hz:99 { @[curtask.cpu] = count(); }
END
cat >disk.bt <<'END'
kprobe:blk_account_io_start { $request = (struct request *)arg0; @[str($request.rq_disk.disk_name)] = count(); }
END
cat >function.bt <<'END'
kprobe:kernel_clone, kprobe:do_fork_no_such { @ = count(); }
END
cat >session.bt <<'END'
fentry:vfs_read { @[args.count] = count(); }
fexit:vfs_read { @results[args.ret] = count(); }
END
cat >loop.bt <<'END'
begin { for ($i : 0..1000000) { @n = $i; } @now = strftime("%H", nsecs(sw_tai)); }
END
tools=$(dirname -- "$ESPY")/../tools
for script in *.bt "$tools"/{biosnoop,runqlen,swapin,xfsdist}.bt; do
  status=0 checked=0
  timeout "$seconds_per_command" "$ESPY" --dry-run "$script" </dev/null >out 2>&1 || status=1
  "$ESPY" check --on kernel "$script" >table 2>&1 || checked=1
  [ "$status" = "$checked" ] && continue
  echo "$script: --dry-run $status, check $checked"
  cat out table
  exit 1
done
