#!/usr/bin/env python3
"""linked.py ESPY [CASE...]: what linkers and compilers make of functions, and functions that a probe could break. Each
count is that of the calls, or espy says that it is not; the program stays right. Status 77 where that cannot be tried."""

import platform
import re
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import world as w
from world import SOURCES, check, count_of, skip

COUNT = "{ @n = count(); }"


def prepare(world):
    if platform.machine() != "x86_64":
        skip("the functions are compiled in this way for x86_64")


def compiled(world, compiler, *options, sources=("linked.c",), program="program"):
    if shutil.which(compiler) is None:
        return False
    paths = [source if str(source).endswith(".o") else SOURCES / source for source in sources]
    done = subprocess.run([compiler, "-w", *options, *paths, "-o", program], cwd=world.directory, capture_output=True)
    return done.returncode == 0


def said(done):
    return done.stdout + done.stderr


def renamed(world):
    """Static functions of one name, in files that are compiled as one."""
    tried = 0
    for compiler, *options in (("clang", "-flto", "-fuse-ld=lld"), ("clang", "-flto=thin", "-fuse-ld=lld"), ("gcc", "-flto")):
        parts = [compiled(world, compiler, "-O2", options[0], "-DRENAMED", *more, "-c", program=name)
                 for more, name in ((("-DOTHER",), "first.o"), ((), "second.o"))]
        if not all(parts) or not compiled(world, compiler, "-O2", *options, sources=("first.o", "second.o")):
            continue
        tried += 1
        done = world.run("-q", "--strict", "-c", "./program", "-e", f"uprobe:./program:same {COUNT}")
        check(count_of(done) == 11 or done.returncode == 1, f"{compiler} {options}: {said(done)}")
        check(compiler == "gcc" or count_of(done) == 11, f"{compiler} {options}: {said(done)}")
    return None if tried else "no compiler with link-time optimisation"


def folded(world):
    """Functions with the same code, or with a jump to it."""
    tried = 0
    for compiler, *options in (("gcc", "-O2"), ("gcc", "-O2", "-g"), ("gcc", "-O1"), ("gcc", "-O2", "-DSCOPE="),
                               ("clang", "-O2", "-ffunction-sections", "-fuse-ld=lld", "-Wl,--icf=all")):
        if "-DSCOPE=" in options:
            parts = [compiled(world, compiler, *options, "-DFOLDED", part, "-c", program=f"{part[2:]}.o")
                     for part in ("-DCALLED_ONLY", "-DCALLS")]
            is_built = all(parts) and compiled(world, compiler, sources=("CALLED_ONLY.o", "CALLS.o"))
        else:
            is_built = compiled(world, compiler, *options, "-DFOLDED")
        if not is_built:
            continue
        tried += 1
        done = world.run("-q", "--strict", "-c", "./program", "-e", f"uprobe:./program:one {COUNT}")
        is_told = re.search("calls of `two` count as calls of `one`: (they have|it jumps there and may have) the same code",
                            done.stderr)
        check(done.returncode == 1 if is_told else count_of(done) == 5, f"{compiler} {options}: {said(done)}")
        check("-DSCOPE=" not in options or "it jumps there" in done.stderr, said(done))
    return None if tried else "no compiler"


def folded_probes(world):
    """USDT probes of functions with the same code."""
    (world.directory / "notes.cc").write_text(r'''
#define PROBE __asm__ volatile("990: nop\n.pushsection .note.stapsdt,\"?\",\"note\"\n.balign 4\n" \
  ".4byte 992f-991f, 994f-993f, 3\n991: .asciz \"stapsdt\"\n992: .balign 4\n993: .8byte 990b\n.8byte _.stapsdt.base\n" \
  ".8byte 0\n.asciz \"shop\"\n.asciz \"push\"\n.asciz \"\"\n994: .balign 4\n.popsection\n")
__asm__(".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n.weak _.stapsdt.base\n"
        ".hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n.size _.stapsdt.base,1\n.popsection\n");
template <class T> struct Queue {
  __attribute__((noinline)) void push(T x) { PROBE; last = x; n++; }
  T last; int n = 0;
};
int a; long b;
int main() {
  Queue<int*> q; Queue<long*> r; Queue<char*> s;
  for (int i = 0; i < 5; i++) q.push(&a);
  for (int i = 0; i < 2; i++) r.push(&b);
  s.push(nullptr);
  return q.n + r.n + s.n == 8 ? 0 : 1;
}
''')
    options = ["clang++", "-O1", "-ffunction-sections", "-fuse-ld=lld", "-Wl,--icf=all", "notes.cc", "-o", "program"]
    if shutil.which("clang++") is None or subprocess.run(options, cwd=world.directory, capture_output=True).returncode:
        return "no clang++ with lld"
    done = world.run("-q", "--strict", "-c", "./program", "-e", f"usdt:./program:shop:push {COUNT}")
    check(count_of(done) == 8 and done.returncode == 0, said(done))


def ends_well(world, *arguments):
    """The program is refused or ends as it does alone."""
    done = world.run("-q", "--strict", "-c", "sh -c './program; echo ended $?'", *arguments)
    check("ended 7" in done.stdout or done.returncode == 1 and "ended" not in done.stdout, said(done))
    return done


def refused(world, part, probe, why, *options):
    if not compiled(world, "gcc", "-O1", *options, f"-D{part}"):
        return "the linker does not make it"
    done = ends_well(world, "-e", f"{probe} {COUNT}")
    check(why in done.stderr and done.returncode == 1, said(done))


def text_relocations(world):
    return refused(world, "CHANGED", "uprobe:./program:where_is", "the loader changes the code of this file",
                   "-fPIC", "-pie", "-Wl,-z,notext")


def pushed_flags(world):
    return refused(world, "FLAGS", "uprobe:./program:flags", "cannot step over the instruction")


def callers_of_the_loader(world):
    for probe in ("uretprobe:libc:dlsym", "uretprobe:libc:dlopen"):
        reason = refused(world, "CALLER", probe, "uses its return address", "-ldl")
        if reason:
            return reason


def writable_code(world):
    options = ("-O1", "-static", "-Wl,--omagic", "-DFOLDED")
    if not compiled(world, "clang", *options, "-fuse-ld=lld") and not compiled(world, "gcc", *options):
        return "the linker does not make it"
    done = world.run("-q", "--strict", "-c", "./program", "-e", f"uprobe:./program:main {COUNT}")
    check(count_of(done) == 1 or ("would never fire" in done.stderr and done.returncode == 1), said(done))


def writable_mapping(world):
    """Code that a process has made writable."""
    (world.directory / "writable.c").write_text("""
        #include <stdint.h>
        #include <stdio.h>
        #include <sys/mman.h>
        __attribute__((noipa)) void tick(int n) { __asm__ volatile("" ::"r"(n)); }
        int main(int count, char** arguments) {
          void* page = (void*)((uintptr_t)tick & ~4095ul);
          mprotect(page, 4096, PROT_READ | PROT_EXEC | (count > 1 ? PROT_WRITE : 0));
          puts("ready");
          fflush(stdout);
          char line[9];
          while (fgets(line, sizeof line, stdin) != NULL) {
            for (int i = 0; i < 10; i++) tick(i);
            puts("called");
            fflush(stdout);
          }
        }""")
    check(subprocess.run(["gcc", "-O1", "writable.c", "-o", "program"], cwd=world.directory).returncode == 0, "gcc")
    for more, is_seen in (((), True), (("writable",), False)):
        traced = w.Traced(world, "./program", *more)
        script = f"uprobe:./program:tick {COUNT} interval:s:2 {{ exit(); }}"
        espy = subprocess.Popen([world.espy, "-q", "-p", str(traced.pid), "-e", script], cwd=world.directory,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        traced.call()
        out, errors = espy.communicate(timeout=30)
        traced.end()
        is_told = "writable or shared, where the kernel puts no probes" in errors
        check(("@n: 10" in out and not is_told) if is_seen else is_told, f"{more}: {out}{errors}")


def switched_stacks(world):
    """Their returns are those of their own stacks."""
    for part, probes, counts in (("COROUTINES", "uretprobe:./program:step", [9]),
                                 ("OTHER_STACK", "uretprobe:./program:outer,uretprobe:./program:inner", [3, 3])):
        for level in ("-O0", "-O1", "-O2"):
            check(compiled(world, "gcc", level, "-pthread", f"-D{part}"), part)
            done = ends_well(world, "-e", probes + " { @n[func] = count(); }")
            if "stops" in done.stderr or "can break" in done.stderr:
                continue
            shown = [int(count) for count in re.findall(r"^@n\[.*\]: (\d+)$", done.stdout, re.M)]
            check(shown == counts and "ended 7" in done.stdout and done.returncode == 0, f"{part} {level}: {said(done)}")


def coroutines(world):
    """A coroutine is called once, and resumed several times, by functions that a compiler has made of it."""
    (world.directory / "coroutine.cc").write_text("""
        #include <coroutine>
        struct Task {
          struct promise_type {
            Task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
            std::suspend_always initial_suspend() { return {}; }
            std::suspend_always final_suspend() noexcept { return {}; }
            void return_void() {}
            void unhandled_exception() {}
          };
          std::coroutine_handle<promise_type> handle;
        };
        Task turns(int n) { for (int i = 0; i < n; i++) co_await std::suspend_always(); }
        int main() {
          for (int i = 0; i < 3; i++) {
            Task task = turns(4);
            while (!task.handle.done()) task.handle.resume();
            task.handle.destroy();
          }
        }""")
    tried = 0
    for compiler in ("g++", "clang++"):
        options = [compiler, "-std=c++20", "-O0", "-g", "-w", "coroutine.cc", "-o", "program"]
        if shutil.which(compiler) is None or subprocess.run(options, cwd=world.directory, capture_output=True).returncode:
            continue
        tried += 1
        done = world.run("-q", "--strict", "-c", "./program", "-e", f'uprobe:./program:cpp:"turns" {COUNT}')
        check(count_of(done) == 3 and done.returncode == 0, f"{compiler}: {said(done)}")
    return None if tried else "no compiler of C++20"


def forks_behind_nops(world):
    """A function that begins with a nop of five bytes, as -fpatchable-function-entry makes it, and children."""
    (world.directory / "forks.c").write_text("""
        #include <sys/mman.h>
        #include <sys/wait.h>
        #include <unistd.h>
        long plus_one(long x);
        __asm__(".text\\n.balign 16\\n.globl plus_one\\n.type plus_one, @function\\n"
                "plus_one: .byte 0x0f, 0x1f, 0x44, 0, 0\\nlea 1(%rdi), %rax\\nret\\n.size plus_one, .-plus_one\\n");
        int main(void) {
          int died = 0;
          for (int i = 0; i < 20; i++) {
            if (plus_one(i) != i + 1) return 2;
            if (fork() == 0) _exit(plus_one(1) + plus_one(2) == 5 ? 5 : 6);
            int status;
            wait(&status);
            died += !WIFEXITED(status) || WEXITSTATUS(status) != 5;
          }
          return died == 0 ? 7 : 1;
        }""")
    check(subprocess.run(["gcc", "-O1", "forks.c", "-o", "program"], cwd=world.directory).returncode == 0, "gcc")
    for kind in ("uprobe", "uretprobe"):
        done = ends_well(world, "-e", f"{kind}:./program:plus_one {COUNT}")
        check(count_of(done) == 60 or done.returncode == 1, said(done))


def repeated(world):
    """A string instruction, each iteration of which fires; instructions that the kernel does not step over."""
    (world.directory / "string.c").write_text("""
        void copy(char* to, const char* from, long n);
        __asm__(".text\\n.globl copy\\n.type copy, @function\\ncopy: rep movsb\\nret\\n.size copy, .-copy\\n");
        __asm__(".globl call\\n.type call, @function\\ncall: int $0x80\\nret\\n.size call, .-call\\n");
        int main(void) {
          char to[9];
          for (int i = 0; i < 3; i++) copy(to, "12345678", 9);
          return to[7] == '8' ? 7 : 1;
        }""")
    check(subprocess.run(["gcc", "-O1", "-w", "string.c", "-o", "program"], cwd=world.directory).returncode == 0, "gcc")
    done = ends_well(world, "-e", f"uprobe:./program:copy {COUNT}")
    check("each iteration of the string instruction at `copy` counts" in done.stderr and done.returncode == 1, said(done))
    done = ends_well(world, "-e", f"uprobe:./program:call {COUNT}")
    check("cannot step over the instruction" in done.stderr and done.returncode == 1, said(done))


CASES = [coroutines, forks_behind_nops, repeated, renamed, folded, folded_probes, text_relocations, pushed_flags, callers_of_the_loader, writable_code,
         writable_mapping, switched_stacks]


if __name__ == "__main__":
    w.main(CASES, prepare)
