// floor nothing|tracepoint: the least a process can do in place of a tracer: start and end; or load a program of two
// instructions, attach it to a tracepoint and end. Linked statically, so its start-up is that of espy's kind of binary.
#include <linux/bpf.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static long bpf(int command, union bpf_attr* attributes) {
  return syscall(SYS_bpf, command, attributes, sizeof(*attributes));
}

int main(int argc, char** argv) {
  static const struct bpf_insn code[] = {
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
      {.code = BPF_JMP | BPF_EXIT},
  };
  union bpf_attr load, attach;

  if (argc < 2 || strcmp(argv[1], "tracepoint") != 0) return 0;
  memset(&load, 0, sizeof(load));
  load.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT;
  load.insns = (unsigned long)code;
  load.insn_cnt = 2;
  load.license = (unsigned long)"GPL";
  memset(&attach, 0, sizeof(attach));
  attach.raw_tracepoint.name = (unsigned long)"sys_enter";
  attach.raw_tracepoint.prog_fd = bpf(BPF_PROG_LOAD, &load);
  return bpf(BPF_RAW_TRACEPOINT_OPEN, &attach) < 0;
}
