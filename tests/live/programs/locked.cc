// Functions of which some begin with an instruction that no uprobe can stand on.
#include <cstdio>
#include <cstdlib>

extern "C" {
int step_counter = 0;
__attribute__((noinline)) void step_plain(int* counter) { *counter += 1; }
void step_locked(int* counter);
void step_vector();  // never called: not every CPU has it
__attribute__((noinline)) void step_other(int* counter) { *counter += 2; }
}

// The compiler would put something before these instructions.
#ifdef __aarch64__
__asm__(R"(
.globl step_locked
.type step_locked, %function
step_locked:
  ldxr w1, [x0]
  add w1, w1, 1
  stxr w2, w1, [x0]
  cbnz w2, step_locked
  ret
.size step_locked, .-step_locked
.globl step_vector
.type step_vector, %function
step_vector:
  ldr q0, 1f
  ret
  .balign 16
1:.quad 0, 0
.size step_vector, .-step_vector
)");
#else
__asm__(R"(
.globl step_locked
.type step_locked, @function
step_locked:
  lock incl (%rdi)
  ret
.size step_locked, .-step_locked
.globl step_vector
.type step_vector, @function
step_vector:
  vpor %xmm0, %xmm1, %xmm2
  ret
.size step_vector, .-step_vector
)");
#endif

int main(int argc, char** argv) {
  const int turns = argc > 1 ? std::atoi(argv[1]) : 1;
  for (int i = 0; i < turns; ++i) {
    step_plain(&step_counter);
    step_locked(&step_counter);
    step_other(&step_counter);
  }
  std::printf("%d\n", step_counter);
}
