// An interpreter of BPF programs that is stricter than a CPU: every access must lie in memory the program was given.
//
// In: a program whose map references are indexes into `maps`, a context. Out: r0, or a fault, with the instruction
// disassembled. A fault is a bug of the compiler: the kernel's verifier would have refused the program, or worse, not.
// Instructions are decoded once, and a run allocates no memory.
#pragma once

#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "program/program.h"
#include "simulator/simulated_memory.h"

namespace espy::simulator {

// Kernel functions by the ids that calls carry; 0: there is none.
struct KfuncIds {
  uint32_t rdonly_cast = 0;
  uint32_t map_sum_elem_count = 0;
  uint32_t strstr = 0;
  uint32_t session_is_return = 0;
};

// The error code of a program that needs data that was not recorded.
constexpr int kUnrecorded = ENODATA;
// The highest byte of what a program has as the address of a function.
inline constexpr uint64_t kFunctionTag = uint64_t{0xf0} << 56;

class Interpreter {
 public:
  // The arguments must outlive the interpreter, and `maps` must not move.
  Interpreter(const program::BpfProgram& program, std::vector<SimMap>& maps, World& world, const KfuncIds& kfuncs);

  // Runs the main function. `context` is read-only memory of exactly the size that the program may look at.
  Result<uint64_t> run(std::span<std::byte> context);
  // The instruction that needed data that was not recorded, if the last run failed with kUnrecorded.
  uint32_t stopped_at() const { return stopped_at_; }
  // The address that it has read, if it was stopped for that.
  std::optional<uint64_t> unrecorded_address() const { return unrecorded_address_; }

 private:
  static constexpr uint32_t kMaxDepth = 8;  // frames, as in the kernel
  static constexpr size_t kStackBytes = 512;

  // An instruction with its operands in fields of their own. `constant`: of a 64-bit load, the value or the address of
  // the map; else imm, sign-extended.
  struct Decoded {
    uint8_t code = 0;
    uint8_t dst = 0, src = 0;
    int16_t offset = 0;
    int32_t imm = 0;
    uint64_t constant = 0;
  };
  using Registers = std::array<uint64_t, 16>;  // the encoding has room for 16; a program uses 11
  using Arguments = std::array<uint64_t, 5>;

  void decode();
  uint64_t constant_of(uint32_t at, const program::BpfInsn& insn, const program::BpfInsn& second);
  tl::unexpected<Error> fault(uint32_t at, const Error& error);

  Result<uint64_t> call(uint32_t function_at, const Arguments& arguments);
  Result<uint64_t> execute(uint32_t at, Registers& registers);
  Status step_load(Registers& registers, const Decoded& insn);
  Status step_memory(Registers& registers, const Decoded& insn);
  Status step_atomic(Registers& registers, const Decoded& insn);
  Status step_call(uint32_t next, Registers& registers, const Decoded& insn);

  // The program's own bytes at `address`: of the context, of a stack, of a region; null if there are none.
  std::byte* own_bytes(uint64_t address, uint64_t size_bytes, Access access) {
    const uint64_t on_stack = address - reinterpret_cast<uint64_t>(stacks_->data());
    if (on_stack < depth_ * kStackBytes)
      return on_stack % kStackBytes + size_bytes <= kStackBytes ? stacks_->data() + on_stack : nullptr;
    const uint64_t in_context = address - reinterpret_cast<uint64_t>(context_.data());
    if (in_context < context_.size() && size_bytes <= context_.size() - in_context)
      return access == Access::kRead ? context_.data() + in_context : nullptr;
    return world_.memory.find(address, size_bytes, access);
  }
  // The same for the reads of helpers, which may read foreign memory, too.
  bool read_anywhere(uint64_t address, std::span<std::byte> out);

  // Helpers.
  Result<uint64_t> helper(int32_t number, const Arguments& a);
  Result<uint64_t> map_helper(int32_t number, const Arguments& a);
  Result<uint64_t> read_helper(int32_t number, const Arguments& a);
  Result<uint64_t> task_helper(int32_t number, const Arguments& a);
  Result<uint64_t> stack_helper(int32_t number, const Arguments& a);
  Result<uint64_t> for_each(SimMap& map, const Arguments& a);
  Result<uint64_t> loop(const Arguments& a);
  // The error that `what` was not recorded.
  static tl::unexpected<Error> unrecorded(std::string_view what, std::string_view hint = {});
  tl::unexpected<Error> unrecorded_memory(uint64_t address);
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
  std::vector<Decoded> code_;
  std::unique_ptr<std::array<std::byte, kMaxDepth * kStackBytes>> stacks_;  // of the frames, outermost first
  std::vector<uint64_t> casts_;
  std::span<std::byte> context_;
  uint32_t depth_ = 0;
  uint32_t stopped_at_ = 0;
  bool is_stopped_ = false;
  std::optional<uint64_t> unrecorded_address_;
  uint64_t jumps_ = 0;
  uint64_t may_goto_left_ = 0;
};

}  // namespace espy::simulator
