// The lowering of one unit, as builtins see it.
//
// A value is an `Operand`: a scalar in a register, or the address of its bytes. Strings, tuples, structs and all else
// larger than a register go by address, in our own memory (`kBpf`: stack, per-CPU scratch, map values) or, for structs
// that nobody has copied yet, in kernel or user memory. `read` and `in_our_memory` bring bytes over.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "check/checked.h"
#include "ir/builder.h"
#include "kernel/kernel.h"
#include "program/program.h"

namespace espy::lower {

using check::ExprId;
using ir::ValueId;
using types::AddressSpace;
using types::TypeId;

struct Operand {
  TypeId type;    // invalid: no value (void)
  ValueId value;  // the scalar, or the address
  bool is_address = false;
  AddressSpace space = AddressSpace::kBpf;  // of the address
  ValueId length = {};  // strings and buffers: bytes that count, NUL aside, where known; else invalid
};

// An argument of an event: an expression, or something already lowered.
struct EventArgument {
  ExprId expr = {};
  Operand operand = {};
};

class Lowering {
 public:
  virtual ~Lowering() = default;

  virtual ir::Builder& ir() = 0;
  virtual types::Types& types() = 0;
  virtual kernel::Kernel& kernel() = 0;
  virtual const check::Unit& unit() const = 0;
  virtual const check::Checked& checked() const = 0;
  virtual program::Program& program() = 0;
  const syntax::Ast& ast() const { return checked().ast; }
  const spec::Config& config() const { return checked().config; }

  // ---- Expressions
  virtual Operand value(ExprId expr) = 0;
  virtual ValueId scalar(ExprId expr) = 0;  // an integer-like value, sign- or zero-extended to 64 bits by its type
  // The number itself, to be compared: in a loop a copy, so that the verifier learns nothing of the number, with which
  // the ways through the loop would differ from each other.
  virtual ValueId opaque_copy(ValueId number) = 0;
  TypeId type(ExprId expr) const { return unit().fact(expr).type; }
  const check::Constant& constant(ExprId expr) const { return unit().fact(expr).constant; }
  std::optional<int64_t> integer(ExprId expr) const { return check::constant_as<int64_t>(constant(expr)); }
  std::optional<std::string> text(ExprId expr) const { return check::constant_as<std::string>(constant(expr)); }
  // Widening, truncation, string capacity, tuple by tuple. The checker has said that it can be done.
  virtual Operand convert(Operand operand, TypeId to) = 0;
  Operand scalar_operand(TypeId type, ValueId value) { return Operand{type, value}; }

  // ---- Memory
  // `size_bytes` of our own, good until the action ends, contents undefined: a stack slot where small, else per-CPU
  // scratch.
  virtual ValueId memory(uint32_t size_bytes, std::string_view name = {}) = 0;
  virtual void zero(ValueId address, uint32_t size_bytes) = 0;  // any size
  virtual void copy(ValueId destination, ValueId source,
                    uint32_t size_bytes) = 0;  // our memory to our memory, any size
  // `size_bytes` from anywhere into our memory; zeros where the address is bad.
  virtual void read(ValueId destination, uint32_t size_bytes, ValueId source, AddressSpace space) = 0;
  // A scalar of `size_bytes` (1, 2, 4, 8) from anywhere, extended to 64 bits. `struct_type` and `offset_bytes` let the
  // kernel's type-checked plain loads be used; invalid if unknown.
  virtual ValueId read_scalar(ValueId base, int64_t offset_bytes, uint8_t size_bytes, bool is_signed,
                              AddressSpace space, TypeId struct_type = {}) = 0;
  // A NUL-terminated string into `destination`; returns the length without its NUL (0 where the address is bad). What
  // lies behind the string's end is zeroed if `zero_rest`.
  virtual ValueId read_string(ValueId destination, uint32_t capacity_bytes, ValueId source, AddressSpace space,
                              bool zero_rest) = 0;
  // What a helper that reads memory (probe_read_user, probe_read_kernel_str, ...) returns; a failure is reported.
  // `size` is at least 1 and at most `most_bytes`. Where the program may sleep, a page of user memory that is not there
  // is brought in.
  virtual ValueId call_reader(ir::Helper helper, ValueId destination, ValueId size, uint32_t most_bytes,
                              ValueId source) = 0;
  // The operand's bytes in our memory: itself if it is there already.
  virtual Operand in_our_memory(Operand operand) = 0;
  // Writes the operand's value as its type lies in memory.
  virtual void store(ValueId address, Operand operand) = 0;
  virtual Operand load(ValueId address, TypeId type) = 0;  // from our memory
  // Constant bytes in .rodata; equal ones are kept once.
  virtual ValueId constant_bytes(std::string_view bytes) = 0;

  // ---- Context and task
  virtual Operand context_field(const spec::ContextField& field) = 0;
  virtual ValueId register_value(const kernel::Register& reg) = 0;  // from the probe's pt_regs
  virtual ValueId probe_index() = 0;                                // ProbeId of what fired
  // What `probe`, `func` or `probetype` is where that probe fires: the first one with the same name.
  virtual uint32_t fired_index(types::Kind kind, program::ProbeId probe) = 0;
  // A member of the current task_struct by its path, {"group_leader", "pid"}, by the cheapest way this kernel has.
  virtual ValueId current_task_field(std::span<const std::string_view> path) = 0;
  ValueId current_task_field(std::initializer_list<std::string_view> path) {
    return current_task_field(std::span(path.begin(), path.size()));
  }
  virtual ValueId cpu() = 0;
  bool is_preemptible() const { return unit().context.is_preemptible; }

  // ---- Maps
  struct MapElement {  // what a Map or an Index of one names
    program::ScriptMapId map;
    ValueId key;  // address of the key's bytes; invalid for scalars
  };
  virtual MapElement element(ExprId map_expr) = 0;
  // The key given on its own: has_key(@m, k).
  virtual MapElement element(program::ScriptMapId map, ExprId key) = 0;
  // Runs `then` with the value's address if the key is there, `otherwise` if not; both may be null.
  virtual void with_value(const MapElement& element, const std::function<void(ValueId address)>& then,
                          const std::function<void()>& otherwise) = 0;
  // Writes the value, or zeros where the key is absent, into a variable; 1 if the key is there.
  virtual ValueId find_into(const MapElement& element, ExprId variable) = 0;
  virtual ValueId remove(const MapElement& element) = 0;  // 1 if it was there
  virtual ValueId length(program::ScriptMapId map) = 0;   // number of keys

  // ---- Events and ends
  // Emits a record for `builtin`; its handler will see the arguments in order. A record that finds no room is counted.
  virtual void emit_event(std::string_view builtin, std::vector<EventArgument> arguments, source::Span span,
                          std::vector<std::string> literals = {}, std::vector<int64_t> numbers = {},
                          program::ScriptMapId map = {}) = 0;
  // Where `result`, what `helper` returned, is negative: tells user space under -k, counts a failed read where a ledger
  // is kept. Else costs nothing.
  virtual void report_failure(ir::Helper helper, ValueId result) = 0;
  // Adds one to this program's counter, which is shown at exit as "WHAT: N".
  virtual void count_loss(program::LossKind kind, std::string_view what) = 0;
  // Ends the action here: what follows is a fresh, unreachable block.
  virtual void end_action() = 0;
  // Sets the flag that makes all programs return at once.
  virtual void set_exit_flag() = 0;

  // ---- Control, for builtins that need it
  ValueId select(ir::Condition condition, ValueId a, ValueId b, const std::function<ValueId()>& if_true,
                 const std::function<ValueId()>& if_false);
  void when(ir::Condition condition, ValueId a, ValueId b, const std::function<void()>& then,
            const std::function<void()>& otherwise = nullptr);
  // The map in which the stacks of `type` are kept; made at first use.
  virtual program::MapId stack_map(TypeId type) = 0;
  // A function that helpers such as bpf_loop call back, of this name; `body` writes it, once, by ir(), and has no use
  // of memory(), variables or the context.
  virtual ir::FunctionId callback(const std::string& name, uint32_t parameters, const std::function<void()>& body) = 0;
};

}  // namespace espy::lower
