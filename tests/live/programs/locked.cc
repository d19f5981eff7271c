// Functions of which some begin with an instruction that no uprobe can stand on.
#include <cstdio>
#include <cstdlib>

extern "C" {
int step_counter = 0;
__attribute__((noinline)) void step_plain() { __asm__ volatile("incl step_counter(%rip)"); }
void step_locked();
void step_vector();  // never called: not every CPU has it
__attribute__((noinline)) void step_other() { __asm__ volatile("addl $2, step_counter(%rip)"); }
}

// The compiler would put something before the `lock`.
__asm__(R"(
.globl step_locked
.type step_locked, @function
step_locked:
  lock incl step_counter(%rip)
  ret
.size step_locked, .-step_locked
.globl step_vector
.type step_vector, @function
step_vector:
  vpor %xmm0, %xmm1, %xmm2
  ret
.size step_vector, .-step_vector
)");

int main(int argc, char** argv) {
  const int turns = argc > 1 ? std::atoi(argv[1]) : 1;
  for (int i = 0; i < turns; ++i) {
    step_plain();
    step_locked();
    step_other();
  }
  std::printf("%d\n", step_counter);
}
