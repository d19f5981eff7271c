// A program that looks like one of Go, whose 200 functions all reach to the end of BYTES bytes of code.
asm(".pushsection .go.buildinfo, \"a\", @progbits\n"
    ".ascii \"\\377 Go buildinf:\"; .byte 8, 2; .fill 16; .byte 8; .ascii \"go1.20.1\"; .fill 16\n"
    ".popsection\n"
    ".macro function\n"
    ".globl f\\@; .type f\\@, @function; .size f\\@, last - f\\@\n"
    "f\\@: nop\n"
    ".endm\n"
    ".globl first\n"
    "first:\n"
    ".rept 200\n"
    "function\n"
    ".endr\n"
    ".fill " BYTES ", 1, 0x90\n"
    "ret\n"
    "last:\n");

void first(void);

int main(void) {
  first();
  return 0;
}
