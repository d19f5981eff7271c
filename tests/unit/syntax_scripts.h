// Scripts that must parse: the one-liners of a day with a tracer, and one of every construct of the language.
#pragma once

#include <string_view>

namespace espy::syntax {

inline constexpr std::string_view kScripts[] = {
    R"bt(tracepoint:syscalls:sys_enter_execve { printf("%s -> %s\n", comm, str(args->filename)); })bt",
    R"bt(tracepoint:syscalls:sys_enter_execve { join(args->argv); })bt",
    R"bt(tracepoint:syscalls:sys_enter_openat { printf("%s %s\n", comm, str(args->filename)); })bt",
    R"bt(tracepoint:raw_syscalls:sys_enter { @[comm] = count(); })bt",
    R"bt(tracepoint:syscalls:sys_enter_* { @[probe] = count(); })bt",
    R"bt(tracepoint:raw_syscalls:sys_enter { @[pid, comm] = count(); })bt",
    R"bt(tracepoint:syscalls:sys_exit_read /args->ret/ { @[comm] = sum(args->ret); })bt",
    R"bt(tracepoint:syscalls:sys_exit_read { @[comm] = hist(args->ret); })bt",
    R"bt(tracepoint:block:block_rq_issue { printf("%d %s %d\n", pid, comm, args->bytes); })bt",
    R"bt(software:major-faults:1 { @[comm] = count(); })bt",
    R"bt(software:faults:1 { @[comm] = count(); })bt",
    R"bt(profile:hz:49 /pid == 189/ { @[ustack] = count(); })bt",
    R"bt(kprobe:vfs_read { @start[tid] = nsecs; } kretprobe:vfs_read /@start[tid]/ { @us[pid, comm] = hist((nsecs - @start[tid]) / 1000); delete(@start[tid]); })bt",
    R"bt(t:syscalls:sys_*_execve { printf("%s %s PID %d\n", probe, comm, pid); })bt",
    R"bt(t:syscalls:sys_enter_setuid { printf("setuid by PID %d (%s), UID %d\n", pid, comm, uid); })bt",
    R"bt(t:block:block_rq_insert { @[kstack(3), comm] = count(); })bt",
    R"bt(tracepoint:timer:hrtimer_start { @[ksym(args->function)] = count(); })bt",
    R"bt(ur:/bin/bash:readline { printf("%s\n", str(retval)); })bt",
    R"bt(uprobe:/bin/bash:readline { printf("PS1: %s\n", str(*uaddr("ps1_prompt"))); })bt",
    R"bt(t:syscalls:sys_enter_read { @reads = count(); } interval:s:5 { exit(); })bt",
    R"bt(tracepoint:block:block_rq_i* { @[probe] = count(); } interval:s:1 { print(@); clear(@); })bt",
    R"bt(tracepoint:syscalls:sys_exit_read { @ret = lhist(args->ret, 0, 1000, 100); })bt",
    R"bt(tracepoint:syscalls:sys_exit_read /args->ret < 0/ { @[- args->ret] = count(); })bt",
    R"bt(kprobe:vfs_* { @[probe] = count(); } END { print(@, 5); clear(@); })bt",
    R"bt(kprobe:vfs_read { @start[tid] = nsecs; } kretprobe:vfs_read /@start[tid]/ { @ms[comm] = sum(nsecs - @start[tid]); delete(@start[tid]); } END { print(@ms, 0, 1000000); clear(@ms); clear(@start); })bt",
    R"bt(k:do_nanosleep { printf("%s", ustack(perf)); })bt",
    R"bt(BEGIN { printf("Hello, World!\n"); })bt",
    R"bt(uprobe:BIN:function+142 { print(reg("ax")); exit() })bt",
    R"bt(uprobe:BIN@file.cpp:123 { print(locals.printf_id) })bt",
    R"bt(usdt:BIN:provider:name { printf("%s %d\n", str(arg0), arg1); })bt",
    R"bt(begin { @h=hist(-3); @h=hist(0); @h=hist(1); @h=hist(9); @l=lhist(-1,0,10,5); @n["a",1]=hist(5); })bt",
    R"bt(begin { @k=hist(10,2); @k=hist(100,2) })bt",
    R"bt(begin { @d=stats(4); @e["x",1]=avg(4); @f=(1,"a",(2,3)); @r=(a=1,b="x"); @b=true; @p=(int8*)0x1234; @arr=(uint8[4])0x04030201 })bt",
    R"bt(begin { print((1,"x")); print("hi"); print(@m[3]); @m[1]=30;@m[2]=10;@m[3]=20; print(@m,2,10) })bt",
    R"bt(begin { @k=kstack; @[kstack(3), comm]=count(); @t = tseries(3, 1s, 5); })bt",
    R"bt(interval:s:1 { time("%H:%M:%S "); print(@); clear(@); })bt",
    R"bt(begin { for ($kv : @map) { print($kv.0); print($kv.1.2) } for ($i : 0..10) { if ($i > 3) { break } continue; } })bt",
    R"bt(begin { let $x; let $y = 1; let $z : int8; let $w : string[64] = "a"; _ = pid; })bt",
    R"bt(begin { $a = $b ?: 3; $c = $a ? 1 : $b ? 2 : 3; $d = if $c { 1 } else { 2 }; $e = { $f = 1; $f + 1 }; })bt",
    R"bt(begin { if comptime (is_str(typeof($x))) { print(1) } else if (comptime sizeof(struct foo) == 8) { } else { exit(); } })bt",
    R"bt(begin { $x = (struct task_struct *)curtask; print($x->pid, $x.comm, ((struct qstr *)arg0)->len, *$x, &$x); })bt",
    R"bt(begin { $x++; --$x; @y[1]++; @z -= -1; @z <<= 2; $q = - -1; $q = !~1; $r = (pid_t)-1; $s = (a[1]) - 2; })bt",
    R"bt(begin { unroll(3) { print(1) } while ($x < 3) { $x++ } return 1; })bt",
    R"bt(config = { stack_mode = perf; max_strlen = 200 } import "x.bt"; let @m = lruhash(100); name=begin { exit(1) })bt",
    R"bt(macro add($a, @m, c = 3) { $a + c } fn f($a : struct foo *, $b:int64) : int8 { return $a.x; } begin { print(add(1)) })bt",
    R"bt(i:ms:$1,BEG$1 { print($1, str($2), $#, nsecs(boot)); })bt",
    R"bt(uprobe:"/a b":"f",usdt:./lib/x.so:p:*,kprobe:[a-z]?_* /pid == 1 / 2 && 1 | 2 == 3/ { print(args.return, args->if) })bt",
    R"bt(watchpoint:0x10000000:8:rw,iter:task:/sys/fs/bpf/x { print(offsetof(struct x, a.b), container_of($p, struct foo, m)) })bt",
    R"bt(profile:hz:99/@x[1]/{ @ = count(); @[1, "a"] = sum(2); delete(@x[1]); })bt",
    R"bt(#define MAX(a, b) ((a) > (b) ? (a) : (b)))bt",
    R"bt(struct foo { int a; char b[16]; unsigned c : 3; union { int d; long e; }; } begin { print(sizeof(struct foo)) })bt",
    R"bt(uprobe:/lib/*:f,tracepoint:*:* { printf("%s\n", probe) } // behind)bt",
    R"bt(#!/usr/bin/env bpftrace
/* What the file
 * is about. */
#include <linux/fs.h>
#ifndef BPFTRACE_HAVE_BTF
#include <linux/path.h>
#endif

enum e { A, B = 2 };  // values
config = {
  // about the stack
  stack_mode = perf;  // mode

  max_strlen = 100
}

// Before the action.
kprobe:vfs_read,   // first
// second
kprobe:vfs_write /* both */
/ pid == 1 /
{ // open
  $x = 1; // one
  /* two */ print($x, // inside
        2);


  if ($x) { print(1) /* last */ } // after if
  else { // in else
    print(2);
  }
  // at the end
}
// the very end)bt",
};

}  // namespace espy::syntax
