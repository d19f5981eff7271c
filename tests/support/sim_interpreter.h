// An interpreter of BPF programs that is stricter than a CPU: every access must lie in memory the program was given.
//
// In: a program whose map references are indexes into `maps`, a context. Out: r0, or a fault, with the instruction
// disassembled. A fault is a bug of the compiler: the kernel's verifier would have refused the program, or worse, not.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "program/program.h"
#include "support/sim_map.h"
#include "support/sim_world.h"

namespace espy::simulator {

// Kernel functions by the ids that calls carry; 0: there is none.
struct KfuncIds {
  uint32_t rdonly_cast = 0;
  uint32_t map_sum_elem_count = 0;
  uint32_t strstr = 0;
  uint32_t session_is_return = 0;
};

class Interpreter {
 public:
  Interpreter(const program::BpfProgram& program, std::vector<SimMap>& maps, World& world, const KfuncIds& kfuncs)
      : program_(program), maps_(maps), world_(world), kfuncs_(kfuncs) {}

  // Runs the main function. `context` is read-only memory of exactly the size that the program may look at.
  Result<uint64_t> run(std::span<std::byte> context);

 private:
  struct Frame {
    uint32_t at = 0;
    std::array<uint64_t, 11> registers = {};
    std::array<std::byte, 512> stack = {};
  };
  using Arguments = std::array<uint64_t, 5>;

  Result<uint64_t> call(uint32_t function_at, const Arguments& arguments);
  Status step(Frame& frame, const program::BpfInsn& insn);
  Status step_memory(Frame& frame, const program::BpfInsn& insn);
  Status step_atomic(Frame& frame, const program::BpfInsn& insn);
  Status step_jump(Frame& frame, const program::BpfInsn& insn);
  Status step_call(Frame& frame, const program::BpfInsn& insn);
  Status load_constant(Frame& frame, const program::BpfInsn& insn);

  // Helpers: sim_helpers.cc.
  Result<uint64_t> helper(int32_t number, const Arguments& a);
  Result<uint64_t> map_helper(int32_t number, const Arguments& a);
  Result<uint64_t> read_helper(int32_t number, const Arguments& a);
  Result<uint64_t> task_helper(int32_t number, const Arguments& a);
  Result<uint64_t> stack_helper(int32_t number, const Arguments& a);
  Result<uint64_t> for_each(SimMap& map, const Arguments& a);
  Result<uint64_t> loop(const Arguments& a);
  Result<uint64_t> strncmp(const Arguments& a);
  Result<uint64_t> strstr(const Arguments& a);
  Result<uint64_t> kfunc(uint32_t id, const Arguments& a);
  Result<SimMap*> map_of(uint64_t handle);
  Result<std::span<std::byte>> bytes(uint64_t address, uint64_t size_bytes, Access access, std::string_view what);

  // Loads through pointers that bpf_rdonly_cast gave are caught: what cannot be read is 0.
  bool was_cast(uint64_t address) const;

  const program::BpfProgram& program_;
  std::vector<SimMap>& maps_;
  World& world_;
  const KfuncIds& kfuncs_;
  std::set<uint64_t> casts_;
  uint64_t context_ = 0;
  uint32_t depth_ = 0;
  uint64_t steps_ = 0;
  uint64_t may_goto_left_ = 0;
};

}  // namespace espy::simulator
