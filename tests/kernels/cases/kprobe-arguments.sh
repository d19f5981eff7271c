# A kprobe sees the arguments, and follows pointers among them.
reading
expect 'vfs_read 1 zero' "$ESPY" -e 'kprobe:vfs_read /comm == "dd"/ {
  printf("%s %d %s\n", func, arg2, str(((struct file *)arg0)->f_path.dentry->d_name.name)); exit() }'
