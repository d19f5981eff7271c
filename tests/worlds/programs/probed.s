# The function `f`, at an offset where other.s has the middle of an instruction. Calls it once, and ends with 7.
.globl _start, f
.text
.org 0x100
.type f, @function
f: nop
 ret
.size f, .-f
.org 0x200
_start: call f
 mov $60, %eax
 mov $7, %edi
 syscall
.section .data
.org 0x1000
