// Runs code of alpha.so ten times, then other code twenty times at the addresses where it was. The argument says how it
// comes there.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef long (*Run)(long count);

__attribute__((noinline)) void at(Run run, long count) { __asm__ volatile("" : : "r"(run), "r"(count)); }

static void call(Run run, long count) {
  at(run, count);
  run(count);
}

struct Text {
  char* start;
  size_t bytes;
  off_t offset;
};

static int find_text(struct dl_phdr_info* info, size_t size, void* out) {
  void** wanted = out;
  (void)size;
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* each = &info->dlpi_phdr[i];
    const uintptr_t start = info->dlpi_addr + each->p_vaddr;
    if (each->p_type != PT_LOAD || (each->p_flags & PF_X) == 0) continue;
    if ((uintptr_t)wanted[0] - start >= each->p_memsz) continue;
    *(struct Text*)wanted[1] = (struct Text){(char*)(start & ~page), (each->p_memsz + (start & page) + page) & ~page,
                                             (off_t)(each->p_offset & ~page)};
    return 1;
  }
  return 0;
}

static struct Text text_of(Run run) {
  struct Text out = {0};
  void* wanted[] = {(void*)run, &out};
  dl_iterate_phdr(find_text, wanted);
  return out;
}

static Run load(const char* path) { return (Run)dlsym(dlopen(path, RTLD_NOW), "run"); }

static void check(int is_right, const char* what) {
  if (is_right) return;
  perror(what);
  exit(1);
}

static void load_in_turn(void) {
  const char* paths[] = {"./alpha.so", "./beta.so"};
  Run first = 0;
  for (int i = 0; i < 4; ++i) {
    void* library = dlopen(paths[i % 2], RTLD_NOW);
    const Run run = (Run)dlsym(library, "run");
    if (i == 0) first = run;
    check(text_of(run).start <= (char*)first && (char*)first < text_of(run).start + 4096, "another address");
    call(run, i % 2 == 0 ? 5 : 10);
    dlclose(library);
  }
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  if (strcmp(how, "turns") == 0) {
    load_in_turn();
    return 0;
  }
  const Run alpha = load("./alpha.so"), beta = load("./beta.so");
  const struct Text old = text_of(alpha), new = text_of(beta);
  check(old.bytes == 4096 && new.bytes == 4096, "other sizes");
  char copy[4096];
  memcpy(copy, old.start, old.bytes);
  call(alpha, 10);
  void* mapped = MAP_FAILED;
  Run other = (Run)(old.start + ((char*)beta - new.start));
  if (strcmp(how, "fixed") == 0) {
    const int file = open("./beta.so", O_RDONLY);
    mapped = mmap(old.start, old.bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, new.offset);
  } else if (strcmp(how, "moved") == 0) {
    mapped = mremap(new.start, new.bytes, old.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, old.start);
  } else if (strcmp(how, "made") == 0) {
    munmap(old.start, old.bytes);
    mapped = mmap(old.start, old.bytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (mapped != MAP_FAILED) memcpy(mapped, copy, old.bytes);
    other = alpha;
  }
  check(mapped == old.start, how);
  call(other, 20);
  usleep(200000);  // no event tells of mremap(2), so that espy has to look at the process
  return 0;
}
