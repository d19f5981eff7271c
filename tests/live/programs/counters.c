// Passes USDT probes of two source files whose operands are variables in memory. Both files have a `counter`; `own` is
// only here.
#define STAP_SDT_ARG_CONSTRAINT m
#include <sys/sdt.h>

static int counter = 7;
static int own = 33;

void pass_other(void);

int main(void) {
  DTRACE_PROBE2(espy, own, own, counter);
  pass_other();
  own += counter;
  counter += own;
}
