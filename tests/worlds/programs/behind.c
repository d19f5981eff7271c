// Passes a USDT probe with a semaphore five times, and ends with 7. With -DOTHER, has a number where the semaphore is,
// and no probe, and ends with 1 if the number changes, else with 0.
#ifndef OTHER
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
#endif
#include <unistd.h>

volatile unsigned short shop_sale_semaphore __attribute__((section(".probes"), used)) = 0;

int main(int argc, char** argv) {
  if (argc > 1) {
    char byte;
    if (write(1, "waiting\n", 8) != 8 || read(0, &byte, 1) < 0) return 2;
  }
  for (int i = 0; i < 5; ++i) {
#ifdef OTHER
    if (shop_sale_semaphore != 0) return 1;
#else
    DTRACE_PROBE2(shop, sale, i * 10, i);
#endif
  }
  (void)argv;
#ifdef OTHER
  return 0;
#else
  return 7;
#endif
}
