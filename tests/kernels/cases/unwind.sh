# User stacks of code without frame pointers, through the C library, from the first on.
# The program stays until the file `seen` is there: while it is traced, its memory is read.
stay_until() { # PATTERN in the output
  rm -f seen
  (wait_until grep -qsE -- "$1" expect.out && touch seen) &
}
cat >frameless.c <<'END'
#include <stdlib.h>
#include <unistd.h>
int sum;
__attribute__((noinline, noclone)) int leaf(int value) { __asm__ volatile("" ::: "memory"); return sum += value; }
__attribute__((noinline, noclone)) int compare(const void* a, const void* b) { return leaf(*(const int*)a) - *(const int*)b; }
int main(void) { int numbers[] = {2, 1}; qsort(numbers, 2, sizeof(int), compare); while (access("seen", F_OK) != 0) usleep(1000); }
END
command -v gcc >/dev/null || skip "no C compiler"
gcc -O2 -fomit-frame-pointer -fno-optimize-sibling-calls frameless.c -o frameless
stay_until ' main\+'
expect ' main\+[0-9]+ .*/frameless\)' "$ESPY" -B line -c "$PWD/frameless" -e "uprobe:$PWD/frameless:leaf { print(dw_ustack(perf)); }"
stay_until '^frames'
expect '^frames ([6-9]|1[0-9])$' "$ESPY" -B line -c "$PWD/frameless" -e "uprobe:$PWD/frameless:leaf { printf(\"frames %d\n\", len(ustack)); }"
