# A 32-bit program that calls getppid, number 64, a thousand times, below three functions with frame pointers.
.text
.globl work
.type work, @function
work:
  push %ebp
  mov %esp, %ebp
  mov $64, %eax
  int $0x80
  pop %ebp
  ret
.size work, . - work

.type outer, @function
outer:
  push %ebp
  mov %esp, %ebp
  call work
  pop %ebp
  ret
.size outer, . - outer

.globl _start
.type _start, @function
_start:
  xor %ebp, %ebp
  mov $1000, %esi
again:
  call outer
  dec %esi
  jnz again
  mov $1, %eax
  xor %ebx, %ebx
  int $0x80
.size _start, . - _start
