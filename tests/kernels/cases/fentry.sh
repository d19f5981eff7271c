# Arguments by name and type, and what is returned.
reading
expect 'vfs_read dd 1 zero' "$ESPY" -e 'fentry:vfs_read /comm == "dd"/ {
  printf("%s %s %d %s\n", func, comm, args.count, str(args.file.f_path.dentry.d_name.name)); exit() }'
expect '@\[1, 1\]: [0-9]+' "$ESPY" -e 'fexit:vfs_read { @[retval, args.count] = count(); } interval:ms:500 { exit() }'
expect '@\[0\]: [0-9]+' "$ESPY" -e 'fentry:vfs_read /comm == "dd"/ { @[usermode] = count(); } interval:ms:500 { exit() }'
# Functions that never return have no exit; a wildcard goes without them.
expect 'error: `do_exit` never returns' "$ESPY" -e 'fexit:do_exit { }'
expect 'Attached [1-9][0-9]* probes?' "$ESPY" --dry-run -e 'fexit:do_e* { }'
# A trampoline cannot pass the arguments of all functions; on older kernels those of fewer.
expect 'error: `seq_printf` has variable arguments, which fentry cannot pass' "$ESPY" -e 'fentry:seq_printf { }'
expect 'Attached [1-9][0-9]* probes?' "$ESPY" --dry-run -e 'fentry:seq_p* { }'
expect 'Attached [1-9][0-9]* probes?' "$ESPY" --dry-run -e 'fentry:tcp_set* { }'
has struct_arguments || expect 'error: `tcp_setsockopt` takes a struct by value' "$ESPY" -e 'fentry:tcp_setsockopt { }'
has stack_arguments || expect 'error: `do_error_trap` has 7 words of arguments' "$ESPY" -e 'fexit:do_error_trap { }'
