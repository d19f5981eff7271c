// exceptions COUNT: calls functions of each kind COUNT times, in a third of which an exception passes them, and prints
// how often each returned. Everything is caught, so that the status is 0 unless an exception was stopped.
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

volatile int sink;
static int returned_plain, returned_landing, returned_tail, returned_deep, returned_cases, returned_jumping;

__attribute__((noinline)) static void maybe(int i) {
  sink = i;
  if (i % 3 == 0) throw std::runtime_error("x");
}

// An exception passes the function.
__attribute__((noinline)) int plain(int i) {
  maybe(i);
  sink = i;
  return i + 1;
}

// It catches exceptions itself, and destroys an object on the way of the others.
__attribute__((noinline)) int landing(int i) {
  const std::string text(static_cast<size_t>(40 + i % 7), 'x');
  try {
    maybe(i);
  } catch (const std::logic_error&) {
    return -1;
  } catch (const std::runtime_error&) {
    if (i % 2 == 0) return -2;
    throw;
  }
  return static_cast<int>(text.size());
}

// Compilers end it in a jump to `plain`.
__attribute__((noinline)) int tail(int i) {
  sink = 2;
  return plain(i);
}

// Calls of it are within one another.
__attribute__((noinline)) int deep(int i, int depth) {
  if (depth == 0) return plain(i);
  const int below = deep(i, depth - 1);
  sink = below;
  return below + 1;
}

__attribute__((noinline)) int cases(int i) {
  switch (i % 8) {
    case 0:
      sink = 1;
      maybe(i);
      return 4;
    case 1:
      sink = 2;
      maybe(i + 1);
      return 7;
    case 2:
      maybe(i);
      sink = 3;
      return 9;
    case 3:
      sink = 8;
      maybe(i);
      return 1;
    case 4:
      maybe(i);
      sink = 31;
      return 13;
    case 5:
      sink = 9;
      maybe(i + 1);
      sink = 4;
      return 2;
    case 6: sink = 12; return 27;
    default: return i;
  }
}

// The outermost call catches what passes all others: of these, none returns.
__attribute__((noinline)) int nested(int depth, int mark) {
  sink = depth;
  if (depth == 0) maybe(0);
  try {
    nested(depth - 1, 0);
  } catch (const std::runtime_error&) {
    if (mark == 0) throw;
  }
  sink = mark;
  return mark;
}

static std::jmp_buf back;

__attribute__((noinline)) int jumping(int i) {
  sink = i;
  if (i % 3 == 0) std::longjmp(back, 1);
  return i;
}

template <typename Function>
static void call(int& returned, Function function) {
  try {
    function();
    ++returned;
  } catch (const std::runtime_error&) {
  }
}

int main(int, char** argv) {
  const int count = std::atoi(argv[1]);
  for (volatile int i = 0; i < count; i = i + 1) {
    call(returned_plain, [&] { plain(i); });
    call(returned_landing, [&] { landing(i); });
    call(returned_tail, [&] { tail(i); });
    call(returned_deep, [&] { deep(i, 3); });
    call(returned_cases, [&] { cases(i); });
    nested(3, i + 1);
    if (setjmp(back) == 0) {
      jumping(i);
      ++returned_jumping;
    }
  }
  std::printf("plain %d\nlanding %d\ntail %d\ndeep %d\ncases %d\njumping %d\n",
              returned_plain + returned_tail + returned_deep, returned_landing, returned_tail, returned_deep * 4,
              returned_cases, returned_jumping);
}
