// spans WAY: calls that end in their usual and unusual ways.
//   fib       fib(4)
//   longjmp   three rounds of outer() > middle() > inner(), which jumps out of them all, then after()
//   threads   fib(4) in four threads at once
//   exit      ends the process from within inner()
//   throw     inner() throws, outer() catches
//   tail      middle() ends in a call of inner()
#include <csetjmp>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

namespace {

jmp_buf target;
std::string_view way;

void work() {
  for (volatile int i = 0; i < 1000; ++i) continue;
}

}  // namespace

#define VISIBLE extern "C" __attribute__((noinline, used))

VISIBLE int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

VISIBLE int inner(int n) {
  work();
  if (way == "longjmp") ::longjmp(target, n);
  if (way == "exit") std::exit(0);
  if (way == "throw") throw std::runtime_error("out");
  return n + 1;
}

VISIBLE int middle(int n) {
  work();
  if (way == "tail") return inner(n);  // a jump
  const int result = inner(n);
  work();
  return result + 1;
}

VISIBLE int outer(int n) {
  try {
    return middle(n) + 1;
  } catch (const std::exception&) {
    return -1;
  }
}

VISIBLE int after(int n) {
  work();
  return n;
}

int main(int argc, char** argv) {
  way = argc > 1 ? argv[1] : "fib";
  if (way == "fib") return fib(4) == 3 ? 0 : 1;
  if (way == "threads") {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([] { fib(4); });
    for (std::thread& thread : threads) thread.join();
    return 0;
  }
  for (volatile int i = 1; i <= (way == "longjmp" ? 3 : 1); i = i + 1) {
    if (::setjmp(target) == 0) outer(i);
    after(i);
  }
}
