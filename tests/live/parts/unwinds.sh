# unwinds.sh ESPY: whether the kernel lets espy unwind user stacks by tables.
! "$1" --dry-run -e 'tracepoint:syscalls:sys_enter_read { print(dw_ustack); }' 2>&1 | grep -q 'unwinding needs'
