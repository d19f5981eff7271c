@ A 32-bit program that calls getppid, number 64, a thousand times, below three functions with frame pointers as the
@ kernel follows them (struct compat_frame_tail in arch/arm64/kernel/stacktrace.c).
.text
.arm
.globl work
.type work, %function
work:
  mov ip, sp
  push {fp, ip, lr, pc}
  sub fp, ip, #4
  mov r7, #64
  svc #0
  ldm sp, {fp, sp, pc}
.size work, . - work

.type outer, %function
outer:
  mov ip, sp
  push {fp, ip, lr, pc}
  sub fp, ip, #4
  bl work
  ldm sp, {fp, sp, pc}
.size outer, . - outer

.globl _start
.type _start, %function
_start:
  mov fp, #0
  mov r4, #1000
again:
  bl outer
  subs r4, r4, #1
  bne again
  mov r7, #1
  mov r0, #0
  svc #0
.size _start, . - _start
