// What builtins and probe types use to write IR.
//
// A value is an `Operand`: a scalar in a register, or the address of its bytes. Strings, tuples, structs and anything
// else larger than a register are passed by address: in memory of the program itself ("our memory", `kBpf`: stack,
// per-CPU scratch, map values), or, for objects that were not copied yet, in kernel or user memory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "check/checked.h"
#include "ir/builder.h"
#include "kernel/kernel.h"
#include "lower/control.h"
#include "program/program.h"
#include "spec/builtin.h"

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
  ValueId length = {};                      // of strings (without the NUL) and buffers, in bytes; invalid if not known
};

// An argument of an event: an expression, or an operand.
struct EventArgument {
  ExprId expr = {};
  Operand operand = {};
};

// Memory of a thread that takes its records instead of the ring (program/span_buffer.h).
struct SpanBuffer {
  program::MapId map;
  ValueId address;
  uint32_t data_bytes = 0;   // of the map's values, a power of two
  uint32_t limit_bytes = 0;  // of the tree with this record; `if_full` runs beyond it
  bool wraps = false;        // records outside of trees are kept as well; otherwise a tree begins at position 0
  std::function<void()> if_full;
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
  // The value of an integer, pointer or the like, extended to 64 bits by the sign of its type.
  virtual ValueId scalar(ExprId expr) = 0;
  // Not 0 if the value is true, as a condition.
  virtual ValueId truth(ExprId expr) = 0;
  // Returns, inside loops and in actions with many `if`s, a copy of `number` that the verifier cannot relate to it: the
  // bounds that a comparison gives the copy do not keep the states of the loop from converging.
  virtual ValueId opaque_copy(ValueId number) = 0;
  TypeId type(ExprId expr) const { return unit().fact(expr).type; }
  const check::Constant& constant(ExprId expr) const { return unit().fact(expr).constant; }
  std::optional<int64_t> integer(ExprId expr) const { return check::constant_as<int64_t>(constant(expr)); }
  std::optional<std::string> text(ExprId expr) const { return check::constant_as<std::string>(constant(expr)); }
  // Converts to another type: integers, capacities of strings, tuples member by member. Requires a conversion that the
  // checker allows.
  virtual Operand convert(Operand operand, TypeId to) = 0;
  Operand scalar_operand(TypeId type, ValueId value) { return Operand{type, value}; }

  // ---- Memory
  // Allocates `size_bytes` of our memory, undefined at first, until the action ends: on the stack if small, else in
  // per-CPU scratch.
  virtual ValueId memory(uint32_t size_bytes, std::string_view name = {}) = 0;
  // Both take our memory and any size.
  virtual void zero(ValueId address, uint32_t size_bytes) = 0;
  virtual void copy(ValueId destination, ValueId source, uint32_t size_bytes) = 0;
  // Reads `size_bytes` from any address space into our memory; zeros if the address is bad.
  virtual void read(ValueId destination, uint32_t size_bytes, ValueId source, AddressSpace space) = 0;
  // Reads a scalar of 1, 2, 4 or 8 bytes from any address space; 0 if the address is bad. Extended to 64 bits.
  // `struct_type` is the struct at `base`, invalid if not known; it permits the kernel's type-checked plain loads.
  virtual ValueId read_scalar(ValueId base, int64_t offset_bytes, uint8_t size_bytes, bool is_signed,
                              AddressSpace space, TypeId struct_type = {}) = 0;
  // Reads a NUL-terminated string. Returns its length without the NUL; 0 if the address is bad. The bytes after its end
  // are zeroed if `zero_rest`, else undefined.
  virtual ValueId read_string(ValueId destination, uint32_t capacity_bytes, ValueId source, AddressSpace space,
                              bool zero_rest) = 0;
  // Copies a string, of any kind and in any address space, to `destination`, which has the size of its type. Returns
  // its length.
  virtual ValueId read_text(ValueId destination, const Operand& text, bool zero_rest) = 0;
  // Calls a helper that reads memory (probe_read_user, probe_read_kernel_str, ...), reports its failure and returns its
  // result. Requires 1 <= size <= `most_bytes`. If the program may sleep, pages of user memory that are not present are
  // brought in.
  virtual ValueId call_reader(ir::Helper helper, ValueId destination, ValueId size, uint32_t most_bytes,
                              ValueId source) = 0;
  // The operand with its bytes copied to our memory, unless they are there or it is a scalar.
  virtual Operand in_our_memory(Operand operand) = 0;
  // Stores and loads a value in the layout of its type, in our memory.
  virtual void store(ValueId address, Operand operand) = 0;
  virtual Operand load(ValueId address, TypeId type) = 0;
  // Reserves zeroed bytes in `globals`, aligned to their size, which is a power of two. Returns their offset.
  virtual uint32_t add_global(uint32_t size_bytes) = 0;
  // The address of constant bytes in .rodata. Equal ones are stored once.
  virtual ValueId constant_bytes(std::string_view bytes) = 0;

  // ---- Context and task
  virtual Operand context_field(const spec::ContextField& field) = 0;
  // A register from the probe's pt_regs; 0 if it has none.
  virtual ValueId register_value(const kernel::Register& reg) = 0;
  // The index of the probe that fired.
  virtual ValueId probe_index() = 0;
  // Whether the unit calls a builtin that is lowered by this function.
  virtual bool calls(decltype(spec::Builtin::lower) emitter) = 0;
  // The value of `probe`, `func` or `probetype` when that probe fires: the index of the first one with the same name.
  virtual uint32_t fired_index(types::Kind kind, program::ProbeId probe) = 0;
  // A member of the current task_struct by its path, such as {"group_leader", "pid"}; 0 if the kernel has no such
  // member, its address if it is not a scalar.
  virtual ValueId current_task_field(std::span<const std::string_view> path) = 0;
  ValueId current_task_field(std::initializer_list<std::string_view> path) {
    return current_task_field(std::span(path.begin(), path.size()));
  }
  virtual ValueId cpu() = 0;
  bool is_preemptible() const { return unit().context.is_preemptible; }

  // ---- Maps
  struct MapElement {
    program::ScriptMapId map;
    ValueId key;  // address of the key's bytes; invalid for a map without keys
  };
  // The element that a map expression names, with an index or without.
  virtual MapElement element(ExprId map_expr) = 0;
  // The same with the key as an expression of its own: has_key(@m, k).
  virtual MapElement element(program::ScriptMapId map, ExprId key) = 0;
  // Runs `then` with the value's address if the key is present, else `otherwise`. Both may be null.
  virtual void with_value(const MapElement& element, const std::function<void(ValueId address)>& then,
                          const std::function<void()>& otherwise) = 0;
  // If the key is present, assigns the value to a variable. Returns 1 if it is, else 0.
  virtual ValueId find_into(const MapElement& element, ExprId variable) = 0;
  // Returns whether the key was present.
  virtual ValueId remove(const MapElement& element, bool is_statement) = 0;
  // The number of values that an element of recent() has.
  virtual ValueId kept_count(const MapElement& element) = 0;
  // The number of keys.
  virtual ValueId length(program::ScriptMapId map) = 0;

  // ---- Events and exits
  // Emits a record for `builtin`, whose handler gets the arguments in order. If the ring is full, counts a loss. With
  // `buffer`, the record goes there.
  virtual void emit_event(std::string_view builtin, std::vector<EventArgument> arguments, source::Span span,
                          std::vector<std::string> literals = {}, std::vector<int64_t> numbers = {},
                          program::ScriptMapId map = {}, const SpanBuffer* buffer = nullptr) = 0;
  // If `result`, which `helper` returned, is negative: emits a warning under -k, and counts a failed read if losses are
  // counted. Otherwise costs nothing.
  virtual void report_failure(ir::Helper helper, ValueId result) = 0;
  // If `size_bytes` and `limit` meet the condition, counts a string that max_strlen has truncated, unless that is
  // allowed for the call.
  virtual void count_truncated(ExprId call, ValueId size_bytes, ir::Condition condition, uint32_t limit) = 0;
  // The result of the call is shown with a mark if it is truncated, or what is computed from it does not need the rest.
  virtual void allow_truncation(ExprId call) = 0;
  // Adds one to this program's loss counter, which is shown at the end as "WHAT: N".
  virtual void count_loss(program::LossKind kind, std::string_view what) = 0;
  // Ends the action. Continues in a new, unreachable block.
  virtual void end_action() = 0;
  // Sets the flag that makes other programs return at once (spec::AfterExit).
  virtual void set_exit_flag(ValueId status) = 0;

  // ---- Control flow and functions
  // See control.h.
  ValueId select(ir::Condition condition, ValueId a, ValueId b, const std::function<ValueId()>& if_true,
                 const std::function<ValueId()>& if_false) {
    return lower::select(ir(), condition, a, b, if_true, if_false);
  }
  void when(ir::Condition condition, ValueId a, ValueId b, const std::function<void()>& then,
            const std::function<void()>& otherwise = nullptr) {
    lower::when(ir(), condition, a, b, then, otherwise);
  }
  // The maps of the stacks of this type (Program::stacks), added at first use.
  virtual program::StackMaps stack_maps(TypeId type) = 0;
  // A function with this name that helpers such as bpf_loop call back. `body` writes it the first time, by ir(); it
  // must not use memory(), variables or the context.
  virtual ir::FunctionId callback(const std::string& name, uint32_t parameters, const std::function<void()>& body) = 0;
  // A function with this name that takes numbers, which the kernel verifies once, wherever it is called. `body` writes
  // it the first time, as that of a callback.
  virtual ir::FunctionId global_function(const std::string& name, uint32_t parameters,
                                         const std::function<void()>& body) = 0;
  // The address of `size_bytes` that this program has on this CPU, by their name; zero at first. They keep what is
  // stored from one event to the next, and global functions have them too.
  virtual ValueId cpu_memory(const std::string& name, uint32_t size_bytes) = 0;
};

}  // namespace espy::lower
