// Functions whose arguments and results have all kinds of types. a_NAME gets `t` and then 77 as `z`; r_NAME and s_NAME,
// which no other file can call, return a value. The truth is in conventions.py.
#include <cstddef>
#include <string>
#ifdef __clang__
#define NOCLONE
#else
#define NOCLONE noclone
#endif
#define FUNCTION extern "C" __attribute__((noinline, NOCLONE))
#define USE(x) asm volatile("" : : "g"(&(x)) : "memory")
#define TAKE(name, type)                 \
  FUNCTION int a_##name(type t, int z) { \
    USE(t);                              \
    USE(z);                              \
    return z;                            \
  }
#define GIVE(name, type, ...)     \
  FUNCTION type r_##name(int i) { \
    USE(i);                       \
    return type __VA_ARGS__;      \
  }
#define GIVE_INSIDE(name, type, ...)                      \
  extern "C" {                                            \
  __attribute__((noinline)) static type s_##name(int i) { \
    USE(i);                                               \
    return type __VA_ARGS__;                              \
  }                                                       \
  }

struct Three {
  int a, b, c;
};
struct Pair {
  long a, b;
};
struct Large {
  long a, b, c;
};
struct Mixed {
  double d;
  long l;
};
struct Extended {
  long double x;
};
struct __attribute__((packed)) Packed {
  char c;
  int i;
};
struct Bits {
  long a;
  long b : 40;
  long c : 24;
};
struct Copied {
  int a;
  Copied(int x) : a(x) {}
  Copied(const Copied& other) : a(other.a) {}
  ~Copied() { asm volatile(""); }
};
struct Virtual {
  int a;
  Virtual(int x) : a(x) {}
  virtual int value() { return a; }
};
struct alignas(32) Aligned {
  int a;
};
struct Empty {};
struct Complex {
  _Complex double c;
};
typedef int Vector __attribute__((vector_size(16)));
struct HoldsVector {
  Vector v;
};
union Either {
  float f;
  int i;
};

TAKE(three, Three)
TAKE(mixed, Mixed)
TAKE(pair, Pair)
TAKE(large, Large)
TAKE(packed, Packed)
TAKE(bits, Bits)
TAKE(copied, Copied)
TAKE(virtual, Virtual)
TAKE(aligned, Aligned)
TAKE(empty, Empty)
TAKE(text, std::string)
TAKE(either, Either)
TAKE(extended, Extended)
TAKE(extended_number, long double)
TAKE(complex, _Complex double)
TAKE(complex_extended, _Complex long double)
TAKE(holds_complex, Complex)
TAKE(vector, Vector)
TAKE(holds_vector, HoldsVector)
TAKE(wide, __int128)
TAKE(null, std::nullptr_t)
GIVE(three, Three, {i, i + 1, i + 2})
GIVE(pair, Pair, {i, i + 1})
GIVE(large, Large, {i, i + 1, i + 2})
GIVE(packed, Packed, {'c', i})
GIVE(bits, Bits, {i, i + 1, i + 2})
GIVE(copied, Copied, (i))
GIVE(virtual, Virtual, (i))
GIVE(aligned, Aligned, {i})
GIVE(either, Either, {(float)i})
GIVE(mixed, Mixed, {1.5, i})
GIVE(extended, Extended, {(long double)i})
GIVE(holds_complex, Complex, {(double)i})
GIVE(holds_vector, HoldsVector, {Vector{i, i, i, i}})
FUNCTION long double r_extended_number(int i) { return i; }
FUNCTION _Complex double r_complex(int i) { return i; }
FUNCTION _Complex float r_complex_float(int i) { return i; }
FUNCTION _Complex long double r_complex_extended(int i) { return i; }
FUNCTION double r_number(int i) { return i; }
FUNCTION short r_short(int i) { return i - 9; }
GIVE_INSIDE(large, Large, {i, i + 1, i + 2})
GIVE_INSIDE(pair, Pair, {i, 8})
GIVE_INSIDE(unused, int, {i + 1})
GIVE_INSIDE(constant, int, {9})

template <class... Any>
void use(const Any&... each) {
  const void* all[] = {&each...};
  USE(all);
}

int main() {
  a_three({31, 32, 33}, 77), a_mixed({1.5, 32}, 77), a_pair({31, 32}, 77), a_large({31, 32, 33}, 77),
      a_packed({'c', 31}, 77);
  a_bits({31, 32, 33}, 77), a_copied(31, 77), a_virtual(31, 77), a_aligned({31}, 77), a_empty({}, 77),
      a_text("hey", 77);
  a_either({1.5}, 77), a_extended({1}, 77), a_extended_number(1, 77), a_complex(1, 77), a_complex_extended(1, 77);
  a_holds_complex({1}, 77), a_vector(Vector{1, 2, 3, 4}, 77), a_holds_vector({Vector{1, 2, 3, 4}}, 77), a_wide(31, 77);
  a_null(nullptr, 77);
  use(r_three(7), r_pair(7), r_large(7), r_packed(7), r_bits(7), r_copied(7), r_virtual(7), r_aligned(7), r_either(7));
  use(r_mixed(7), r_extended(7), r_holds_complex(7), r_holds_vector(7), r_extended_number(7), r_complex(7));
  use(r_complex_float(7), r_complex_extended(7), r_number(7), r_short(7));
  s_unused(7);
  use(s_large(7).b, s_pair(7).b, s_constant(7));
}
