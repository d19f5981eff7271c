// A program whose debug information no compiler makes: f(struct self *p, struct self s, struct many *m), where `self`
// contains itself, and `many` has 2^40 parts and no bytes.
#include <unistd.h>

__attribute__((noinline, used)) int f(const void* p, long first, long second, const void* m) {
  (void)p, (void)m;
  __asm__ volatile("" : : "r"(first), "r"(second) : "memory");
  return 1;
}

__asm__(
    ".pushsection .debug_abbrev,\"\",@progbits\n"
    ".macro abbreviation number tag children attributes:vararg\n"
    " .uleb128 \\number, \\tag\n .byte \\children\n .uleb128 \\attributes, 0, 0\n"
    ".endm\n"
    "abbreviation 1 0x11 1 0x25,8, 0x13,11, 0x03,8, 0x11,1, 0x12,7\n"  // a unit: producer, language, name, code
    "abbreviation 2 0x2e 1 0x03,8, 0x11,1, 0x12,7, 0x27,0x19\n"        // a function
    "abbreviation 3 0x05 0 0x03,8, 0x49,0x13, 0x02,0x18\n"             // a parameter: name, type, place
    "abbreviation 4 0x13 1 0x03,8, 0x0b,11\n"                          // a struct: name, size
    "abbreviation 5 0x0d 0 0x03,8, 0x49,0x13, 0x38,11\n"               // a member: name, type, offset
    "abbreviation 6 0x0f 0 0x49,0x13\n"                                // a pointer
    ".byte 0\n.popsection\n"
    ".pushsection .debug_info,\"\",@progbits\n"
    "unit: .long unit_end - unit_begin\nunit_begin: .value 4\n .long .debug_abbrev\n .byte 8\n"
    " .uleb128 1\n .string \"GNU C17\"\n .byte 12\n .string \"contained.c\"\n .quad f, 1\n"
    " .uleb128 2\n .string \"f\"\n .quad f, 1\n"
    ".macro named number name type\n .uleb128 \\number\n .string \"\\name\"\n .long \\type - unit\n.endm\n"
    "named 3 p pointer_to_self\n .byte 1, 0x55\n named 3 s self\n .byte 1, 0x54\n"
    " named 3 m pointer_to_many\n .byte 1, 0x52\n .byte 0\n"
    "pointer_to_self: .uleb128 6\n .long self - unit\n"
    "pointer_to_many: .uleb128 6\n .long many40 - unit\n"
    ".macro structure name size\n .uleb128 4\n .string \"\\name\"\n .byte \\size\n.endm\n"
    "self: structure self 8\n named 5 inner self\n .byte 0\n .byte 0\n"
    "many0: structure many0 0\n .byte 0\n"
    ".macro many number before\n"
    "many\\number: structure many\\number 0\n named 5 a many\\before\n .byte 0\n named 5 b many\\before\n .byte 0\n "
    ".byte 0\n"
    ".endm\n"
    ".set i, 0\n.altmacro\n.rept 40\n many %(i+1), %(i)\n .set i, i+1\n.endr\n.noaltmacro\n"
    " .byte 0\nunit_end:\n.popsection\n");

int main(void) {
  static const long zeros[8];
  for (int i = 0; i < 3; ++i) f(zeros, 0, 0, zeros);
  return 0;
}
