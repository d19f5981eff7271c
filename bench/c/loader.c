// loader OBJECT: loads and attaches every program of a BPF object, and waits for SIGINT.
#include <bpf/libbpf.h>
#include <signal.h>
#include <stdio.h>

static int quiet(enum libbpf_print_level level, const char* format, va_list arguments) {
  return level == LIBBPF_WARN ? vfprintf(stderr, format, arguments) : 0;
}

int main(int argc, char** argv) {
  struct bpf_program* program;
  sigset_t stop;
  int signal_number;

  if (argc != 2) return 2;
  libbpf_set_print(quiet);
  sigemptyset(&stop);
  sigaddset(&stop, SIGINT);
  sigprocmask(SIG_BLOCK, &stop, NULL);

  struct bpf_object* object = bpf_object__open(argv[1]);
  if (!object || bpf_object__load(object)) return 1;
  bpf_object__for_each_program(program, object) {
    if (!bpf_program__attach(program)) return 1;
  }
  sigwait(&stop, &signal_number);
  return 0;
}
