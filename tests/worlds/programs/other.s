# Ends with 1 if an instruction has another operand than is written here, as a breakpoint in its middle makes it.
.globl _start
.text
.org 0xfe
g: movabs $0x1122334455667788, %rax
 ret
.org 0x200
_start: call g
 mov $0x11223344, %ecx
 shl $32, %rcx
 mov $0x55667788, %edx
 or %rdx, %rcx
 xor %edi, %edi
 cmp %rax, %rcx
 je 1f
 inc %edi
1: mov $60, %eax
 syscall
.section .data
.org 0x1000
