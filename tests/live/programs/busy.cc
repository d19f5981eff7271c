// Burns a CPU in one function.
extern "C" __attribute__((noinline)) void burn(volatile unsigned long* counter) {
  for (;;) ++*counter;
}

int main() {
  volatile unsigned long counter = 0;
  burn(&counter);
}
