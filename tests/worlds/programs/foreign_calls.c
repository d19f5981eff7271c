// foreign_calls: system calls by other ways than glibc's, whose numbers mean something else there. x86-64 only.
//
// The truth, as calls of x86-64: getpid 7 by `syscall`, and 5 by `syscall` with a number of more than 32 bits, of which
// the kernel looks at 32. No execve, no openat, no kill, and no fstat behind the line "begin".
// By int $0x80, which is the table of i386, the numbers of these calls mean oldolduname, remap_file_pages, ustat, open and
// mkdir: none does anything. Status 77 if the kernel has no such calls.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kGetpid = 39, kFstat = 5, kExecve = 59, kOpenat = 257, kKill = 62 };

static long by_syscall(long number) {
  long result;
  asm volatile("syscall" : "=a"(result) : "a"(number) : "rcx", "r11", "memory");
  return result;
}

static void by_interrupt(long number, const char* text, char** arguments) {
  long result;
  asm volatile("int $0x80"
               : "=a"(result)
               : "a"(number), "b"(0), "c"(0), "d"(0), "S"(arguments), "D"(text)
               : "memory", "r8", "r9", "r10", "r11");
}

static void no_such_calls(int signal) {
  (void)signal;
  _exit(77);
}

int main(void) {
  signal(SIGSEGV, no_such_calls);
  char* low = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  strcpy(low, "/usr/bin/passwd");
  char** arguments = (char**)(low + 64);
  arguments[0] = low;
  write(1, "begin\n", 6);
  for (int i = 0; i < 7; i++) by_syscall(kGetpid);
  for (int i = 0; i < 5; i++) by_syscall(kGetpid | 0xdead00000000);
  for (int i = 0; i < 10; i++) by_interrupt(kGetpid, low, arguments);
  for (int i = 0; i < 100; i++) by_interrupt(kFstat, low, arguments);
  for (int i = 0; i < 3; i++) by_interrupt(kExecve, low, arguments);
  for (int i = 0; i < 3; i++) by_interrupt(kOpenat, low, arguments);
  for (int i = 0; i < 3; i++) by_interrupt(kKill, low, arguments);
  return 0;
}
