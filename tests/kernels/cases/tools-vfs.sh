# The tools that count calls of the virtual file system, while a process reads a byte a call.
# kernels: 5.10 6.12
tools=$(dirname -- "$ESPY")/../tools
reading
expect '^@\[vfs_read\]: [0-9]{3,}$' "$ESPY" "$tools/vfscount.bt" 2
expect '^[0-9:]{8} +[0-9]{3,} +[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+$' "$ESPY" "$tools/vfsstat.bt" 1 2
