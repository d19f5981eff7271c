// floats: passes USDT probes with floating-point arguments: espy:memory has 1.5 and 2.5f in memory, espy:vector has 7
// in a register and 1.5 in a vector register.
#define STAP_SDT_ARG_CONSTRAINT m
#include <sys/sdt.h>

int main() {
  volatile double large = 1.5;
  volatile float small = 2.5;
  DTRACE_PROBE2(espy, memory, large, small);
#undef STAP_SDT_ARG_CONSTRAINT
#ifdef __aarch64__
#define STAP_SDT_ARG_CONSTRAINT rw
#else
#define STAP_SDT_ARG_CONSTRAINT rx
#endif
  const double read = large;
  DTRACE_PROBE2(espy, vector, 7, read);
}
