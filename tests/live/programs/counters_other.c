// The other source file of counters.c.
#define STAP_SDT_ARG_CONSTRAINT m
#include <sys/sdt.h>

static int counter = 1000;

void pass_other(void) {
  DTRACE_PROBE1(espy, other, counter);
  ++counter;
}
