// spawn COMMAND...: runs a command and writes its wall time (ns), peak memory (KiB) and exit status to descriptor 3.
//
// A process of its own, and a tiny one, because the kernel counts into a child's peak memory what its parent had when
// it forked: started by an interpreter, every command would seem to need the interpreter's memory.
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000L + now.tv_nsec;
}

int main(int argc, char** argv) {
  struct rusage usage;
  int status;

  if (argc < 2) return 2;
  long start_ns = now_ns();
  pid_t child = vfork();
  if (child == 0) {
    close(3);
    execvp(argv[1], argv + 1);
    _exit(127);
  }
  if (child < 0 || wait4(child, &status, 0, &usage) != child) return 1;
  long wall_ns = now_ns() - start_ns;
  int exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  dprintf(3, "%ld %ld %d\n", wall_ns, usage.ru_maxrss, exit_status);
  return 0;
}
