// Functions of which a compiler makes copies, inlines calls, or which the loader replaces. Its arguments say how often
// each is called; the rest is volatile, so that nothing is computed beforehand.
volatile int sink;
#define APART __attribute__((noinline))

APART int cloned(int a, int b) {
  for (int i = 0; i < b; i++) sink += i * a * b;
  if (a == 3)
    for (int i = 0; i < b * 2; i++) sink ^= i;
  return sink;
}
APART static int split(int a, int b) {
  for (int i = 0; i < b; i++) sink += i * a;
  return sink;
}
static inline int inlined(int a) { return sink += a * 3; }

#ifdef INDIRECT
APART static int chosen_sse2(int a) { return sink += a; }
APART static int chosen_avx2(int a) { return sink -= a; }
static void *choose_one(void) { return chosen_sse2; }
int chosen(int a) __attribute__((ifunc("choose_one")));
void *other = chosen_avx2;
#endif

int call_same_one(int), call_same_two(int);

int main() {
  int (*volatile through)(int, int) = cloned;
  int (*volatile at)(int) = inlined;
  for (int i = 0; i < 10; i++) through(i, 2), at(i);
  for (int i = 0; i < 100; i++) cloned(i, 10), split(i, 10);
  for (int i = 0; i < 30; i++) split(7, i);
  for (int i = 0; i < 40; i++) inlined(i);
  for (int i = 0; i < 5; i++) call_same_one(i);
  for (int i = 0; i < 7; i++) call_same_two(i);
#ifdef INDIRECT
  for (int i = 0; i < 20; i++) chosen(i);
#endif
}
