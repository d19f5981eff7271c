// Integers of 128 bits, alone and among other arguments and members.
struct wide {
  __int128 low;
  unsigned __int128 high;
  int after;
  __int128 bits : 40;
};

__attribute__((noinline)) int show(const struct wide* wide, __int128 first, int second, const struct wide copy,
                                   int third) {
  __asm__ volatile("" ::"r"(wide) : "memory");
  return wide->after + (int)first + second + copy.after + third;
}

__attribute__((noinline)) __int128 give(int value) {
  __asm__ volatile("" ::"r"(value) : "memory");
  return (__int128)value << 64;
}

int main(void) {
  const struct wide wide = {-1, ((unsigned __int128)3 << 64) + 9, 5, -77};
  return (show(&wide, ((__int128)1 << 100) + 4, 6, wide, 7) + (int)give(8)) & 0;
}
