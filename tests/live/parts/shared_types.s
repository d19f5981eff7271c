# A function with 20,000 parameters of a struct with 30,000 children, 400 of an array with 30,000 dimensions, and one of
# a struct whose 20,000 members are structs that are only declared.
  .text
  .globl main
  .type main, @function
main: ret
  .size main, 1
  .section .note.GNU-stack, "", @progbits
  .section .debug_abbrev, "", @progbits
  .uleb128 1, 0x11; .byte 1; .uleb128 0x3, 0x8, 0x11, 0x1, 0x12, 0x7, 0, 0
  .uleb128 2, 0x2e; .byte 1; .uleb128 0x3, 0x8, 0x11, 0x1, 0x12, 0x7, 0, 0
  .uleb128 3, 0x5; .byte 0; .uleb128 0x3, 0x8, 0x49, 0x13, 0, 0
  .uleb128 4, 0x13; .byte 1; .uleb128 0x3, 0x8, 0xb, 0xb, 0, 0
  .uleb128 5, 0x2f; .byte 0; .uleb128 0, 0
  .uleb128 6, 0x1; .byte 1; .uleb128 0x49, 0x13, 0, 0
  .uleb128 7, 0x21; .byte 0; .uleb128 0x37, 0xb, 0, 0
  .uleb128 8, 0xd; .byte 0; .uleb128 0x49, 0x13, 0, 0
  .uleb128 9, 0x13; .byte 0; .uleb128 0x3, 0x8, 0x3c, 0x19, 0, 0
  .uleb128 0
  .section .debug_info, "", @progbits
unit: .long end - begin
begin: .short 4; .long 0; .byte 8
  .uleb128 1; .string "program.c"; .quad main, 1
shared: .uleb128 4; .string "shared"; .byte 8
  .fill 30000, 1, 5
  .uleb128 0
array: .uleb128 6; .long shared - unit
  .rept 30000
  .byte 7, 1
  .endr
  .uleb128 0
  .altmacro
  .macro declared number
  .byte 9
  .string "\number"
  .endm
first:
  .set i, 10000
  .rept 20000
  declared %i
  .set i, i + 1
  .endr
holder: .uleb128 4; .string "holder"; .byte 8
  .set i, 0
  .rept 20000
  .byte 8
  .long first - unit + 7 * i
  .set i, i + 1
  .endr
  .uleb128 0
  .uleb128 2; .string "main"; .quad main, 1
  .rept 20000
  .uleb128 3; .string "x"; .long shared - unit
  .endr
  .rept 400
  .uleb128 3; .string "a"; .long array - unit
  .endr
  .uleb128 3; .string "h"; .long holder - unit
  .uleb128 0, 0
end:
