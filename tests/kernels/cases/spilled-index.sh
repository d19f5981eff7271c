# An index that was checked and then kept on the stack, in a program of thousands of instructions.
exec 3</proc/version
expect '^\[/proc/version\] \[/\]$' "$ESPY" -c 'sleep 0' -e 'tracepoint:syscalls:sys_enter_exit_group /pid == cpid/ {
  printf("[%s] [%s]\n", path(curtask->files->fdt->fd[3]->f_path), path(curtask->fs->root)); }'
