// Loads compiled IR into the running kernel and runs it: a SYSCALL program, whose context is a block of words that the
// kernel copies in and back out.
#pragma once

#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "../support/ir_machine.h"
#include "bpf/disassemble.h"
#include "bpf/emit.h"
#include "ir/builder.h"
#include "ir/ir_text.h"
#include "opt/pipeline.h"

namespace espy::bpf {

using Words = std::vector<uint64_t>;
inline constexpr size_t kWords = 16;

inline long bpf_call(int command, union bpf_attr& attr) { return syscall(__NR_bpf, command, &attr, sizeof(attr)); }

// Owns a descriptor of the kernel.
class Descriptor {
 public:
  explicit Descriptor(long fd = -1) : fd_(static_cast<int>(fd)) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

inline Descriptor make_map(uint32_t type, uint32_t key_size, uint32_t value_size, uint32_t entries,
                           uint32_t flags = 0) {
  union bpf_attr attr = {};
  attr.map_type = type;
  attr.key_size = key_size;
  attr.value_size = value_size;
  attr.max_entries = entries;
  attr.map_flags = flags;
  return Descriptor(bpf_call(BPF_MAP_CREATE, attr));
}

inline bool may_load_programs() {
  Descriptor map = make_map(BPF_MAP_TYPE_ARRAY, 4, 8, 1);
  return map.get() >= 0;
}

// A module with one main function, and what the tests need round it.
struct Code {
  ir::Module module;
  program::Program program;
  std::vector<Descriptor> maps;  // by MapId

  Code() {
    program.programs.add({.name = "test", .kind = program::ProgramKind::kSyscall, .is_sleepable = true});
    module.functions.add({.name = "main"});
    module.units.push_back({program::ProgramId{0}, {ir::FunctionId{0}}});
  }
  ir::Function& main() { return module.functions[ir::FunctionId{0}]; }
  ir::FunctionId add_function(ir::Function function) {
    ir::FunctionId id = module.functions.add(std::move(function));
    module.units[0].functions.push_back(id);
    return id;
  }
  program::MapId add_map(std::string name, Descriptor map) {
    maps.push_back(std::move(map));
    return program.maps.add({.name = std::move(name)});
  }
};

struct Loaded {
  Descriptor program;
  std::string problem;  // empty if it was loaded
};

inline Loaded load(Code& code, const Target& target) {
  std::string wrong = ir::verify(code.module);
  if (!wrong.empty()) return {Descriptor(), "IR: " + wrong};
  if (!emit(code.module, target, code.program).empty()) return {Descriptor(), "the stack frame is too large"};
  program::BpfProgram& out = code.program.programs[program::ProgramId{0}];
  std::vector<program::BpfInsn> insns = out.code;
  for (const program::MapReference& reference : out.map_references)
    insns[reference.insn].imm = code.maps[reference.map.index].get();
  std::vector<char> log(1 << 20);
  union bpf_attr attr = {};
  attr.prog_type = BPF_PROG_TYPE_SYSCALL;
  attr.prog_flags = BPF_F_SLEEPABLE;
  attr.insns = reinterpret_cast<uint64_t>(insns.data());
  attr.insn_cnt = static_cast<uint32_t>(insns.size());
  attr.license = reinterpret_cast<uint64_t>("GPL");
  Descriptor fd(bpf_call(BPF_PROG_LOAD, attr));
  if (fd.get() >= 0) return {std::move(fd), ""};
  std::string why = std::strerror(errno);
  attr.log_level = 1;
  attr.log_size = static_cast<uint32_t>(log.size());
  attr.log_buf = reinterpret_cast<uint64_t>(log.data());
  bpf_call(BPF_PROG_LOAD, attr);
  std::string tail = log.data();
  if (tail.size() > 3000) tail = "..." + tail.substr(tail.size() - 3000);
  return {Descriptor(), why + "\n" + tail + "\n" + ir::print(code.module) + disassemble(out, code.program)};
}

// Runs it on `words`, which it may change; false if the kernel did not run it.
inline bool run(const Descriptor& program, Words& words) {
  union bpf_attr attr = {};
  attr.test.prog_fd = static_cast<uint32_t>(program.get());
  attr.test.ctx_in = reinterpret_cast<uint64_t>(words.data());
  attr.test.ctx_size_in = static_cast<uint32_t>(words.size() * 8);
  return bpf_call(BPF_PROG_RUN, attr) == 0;
}

}  // namespace espy::bpf
