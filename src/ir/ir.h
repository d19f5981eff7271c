// ir: functions of basic blocks in SSA form, one step above BPF. docs/internals/ir.md specifies the IR.
//
// `lower` builds it (ir/builder.h), `opt` transforms it, `bpf` selects instructions from it; ir/ir_text.h prints and
// reads it. A value is 64 bits wide: a scalar, or a pointer that the kernel's verifier tracks. Larger objects are in
// memory: stack slots, per-CPU scratch (a map value), map values, records. Blocks have parameters, to which jumps pass
// arguments; there are no phi nodes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "program/program.h"
#include "source/source.h"

namespace espy::ir {

using ValueId = Id<struct ValueTag>;
using BlockId = Id<struct BlockTag>;
using SlotId = Id<struct SlotTag>;
using FunctionId = Id<struct FunctionTag>;
using program::MapId;

enum class Op : uint8_t {
#define OP(name, operands, result, effect) k_##name,
#include "ir/ops.def"
#undef OP
  kCount,
};

enum class Effect : uint8_t { pure, read, write, end };

struct OpInfo {
  std::string_view name;
  int operands;  // -1: variable
  bool has_result;
  Effect effect;
};
const OpInfo& info(Op op);

enum class Helper : uint16_t {
#define HELPER(name, number, arguments, effect) name = number,
#include "ir/helpers.def"
#undef HELPER
};

struct HelperInfo {
  std::string_view name;
  Helper helper;
  int arguments;
  Effect effect;
};
const HelperInfo& info(Helper helper);

enum class Condition : uint8_t { eq, ne, ult, ule, ugt, uge, slt, sle, sgt, sge, test };  // test: (a & b) != 0

struct Target {
  BlockId block;
  std::vector<ValueId> arguments;  // as many as the block's parameters
};

// One operation and its result, if it has one. Instruction and value share the id.
struct Instruction {
  Op op = Op::k_konst;
  uint8_t width = 8;         // load, store, atomic: bytes
  bool is_signed = false;    // load
  bool is_pure = false;      // kfunc
  bool is_nullable = false;  // the result may be a null pointer
  Condition condition = Condition::eq;
  Helper helper = Helper{0};
  int64_t imm = 0;
  MapId map = {};
  SlotId slot = {};
  FunctionId function = {};
  std::vector<ValueId> operands;
  std::vector<Target> targets;  // jump: 1; branch, may_goto: 2
  source::Span span;            // for the line map; may be invalid
};

struct Block {
  std::string name;                   // for printing; may be empty
  std::vector<ValueId> parameters;    // values with op k_param, whose imm is unused
  std::vector<ValueId> instructions;  // the last has effect `end`
};

struct Slot {  // an object on the BPF stack
  uint32_t size_bytes = 8;
  uint32_t align_bytes = 8;
  std::string name;
  bool is_variable = false;  // a script variable of 8 bytes, loaded and stored as a whole; mem2reg turns it into values
};

// blocks[0] is the entry and has no parameters. Block parameters are instructions with op `param` that are listed only
// in `parameters` of their block.
struct Function {
  std::string name;
  uint32_t parameter_count = 0;  // of a subprogram or callback; a main function uses `context`
  bool is_callback = false;      // called by the kernel (for_each_map_elem, loop): needs func_info
  // Verified once, by itself, for any arguments: numbers, or with `memory_bytes` a single one, which is null or points
  // to this many bytes.
  bool is_global = false;
  uint32_t memory_bytes = 0;
  Table<ValueId, Instruction> values;
  Table<BlockId, Block> blocks;
  Table<SlotId, Slot> slots;
};

// One BPF program. The first function is the main one.
struct Unit {
  program::ProgramId program;
  std::vector<FunctionId> functions;
};

struct Module {
  Table<FunctionId, Function> functions;
  std::vector<Unit> units;
};

// ---- Negation, mirroring and evaluation of branch conditions.

Condition as_condition(Op comparison);  // eq to sle
// Returns the negation; nullopt for `test`.
std::optional<Condition> negation(Condition condition);
// Returns the equivalent condition with exchanged operands.
Condition mirrored(Condition condition);

}  // namespace espy::ir
