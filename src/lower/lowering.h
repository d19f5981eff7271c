// Lowers a check::Unit, an action on probes with the same context, to a BPF program, or to a part of one that serves
// several (lower.cc).
//
// The style follows CodeGenFunction in Clang: one class has the state of the action that is lowered, and nine files
// implement it by topic. The methods recurse over the tree, and nearly every topic needs every other one, so classes
// for the topics would only be lists of references to each other. ModuleContext has what all programs of a script
// share.
//
// A value is an `Operand`: a scalar in a register, or the address of its bytes. Strings, tuples, structs and other
// values larger than a register are passed by address. The address is in memory of the program itself ("our memory",
// `kBpf`: stack, per-CPU scratch, map values). For objects that were not copied yet, it is in kernel or user memory. A
// scalar is 64 bits wide in a register, extended by the sign of its type.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "check/checked.h"
#include "ir/builder.h"
#include "kernel/kernel.h"
#include "lower/ir_functions.h"
#include "lower/module_context.h"
#include "program/program.h"
#include "spec/builtin.h"

namespace espy::lower {

using check::ExprId;
using check::StmtId;
using check::VariableId;
using ir::Condition;
using ir::Helper;
using ir::Op;
using program::ScriptMapId;
using types::AddressSpace;
using types::Kind;

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

// Memory of a thread that takes its records instead of the ring (program/layout.h).
struct SpanBuffer {
  program::MapId map;
  ValueId address;
  uint32_t data_bytes = 0;   // of the map's values, a power of two
  uint32_t limit_bytes = 0;  // of the tree with this record; `if_full` runs beyond it
  bool wraps = false;        // records outside of trees are kept as well; otherwise a tree begins at position 0
  std::function<void()> if_full;
};

// What distinguishes a unit that shares its program with others (lower.cc).
struct Part {
  int64_t cookie_distance = 0;    // from the attach cookie to the index of the probe
  bool shares_number = false;     // with Dispatch::kNumber: the number is in the first slot, common to all parts
  bool begins_session = false;    // the entry of calls, whose return another part sees
  bool ends_session = false;      // ... that part
  uint32_t max_traced_depth = 0;  // not 0: of nested calls, deeper ones return unseen, and are counted at entry
};

// Makes one visitor of several lambdas.
template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

// Returns the indices of the unit's variables that must be in the frame. These are used in the body of a `for` over a
// map, which is a function of its own, and outside of it, or have their address taken.
std::set<uint32_t> find_shared_variables(const syntax::Ast& ast, const check::Unit& unit);

// Returns the name that the script uses for a value: "fd" for `args.fd`, "name" for `str($name)`.
std::string value_name(const syntax::Ast& ast, const check::Unit& unit, ExprId expr);

class Lowering {
 public:
  // `out` is the program; its main function exists already, other functions are added to it.
  Lowering(ModuleContext& module, const check::Unit& unit, ir::Unit& out, Part part = {});

  ir::Builder& ir() { return functions_.ir(); }
  types::Types& types() const { return module_.types; }
  kernel::Kernel& kernel() const { return module_.kernel; }
  // The action, or the function that is inlined at present.
  const check::Unit& unit() const { return *activation_->unit; }
  const check::Checked& checked() const { return module_.checked; }
  const syntax::Ast& ast() const { return checked().ast; }
  const spec::Config& config() const { return checked().config; }
  program::Program& program() { return module_.program; }

  // ---- Expressions
  Operand value(ExprId expr);
  // The value of an integer, pointer or the like, extended to 64 bits by the sign of its type.
  ValueId scalar(ExprId expr);
  // Not 0 if the value is true, as a condition.
  ValueId truth(ExprId expr) { return truth(value(expr)); }
  // Returns, inside loops and in actions with many `if`s, a copy of `number` that the verifier cannot relate to it. The
  // bounds that a comparison gives the copy do not keep the states of the loop from converging.
  ValueId opaque_copy(ValueId number);
  TypeId type(ExprId expr) const { return unit().fact(expr).type; }
  const check::Constant& constant(ExprId expr) const { return unit().fact(expr).constant; }
  std::optional<int64_t> integer(ExprId expr) const { return check::constant_as<int64_t>(constant(expr)); }
  std::optional<std::string> text(ExprId expr) const { return check::constant_as<std::string>(constant(expr)); }
  // Converts to another type: integers, capacities of strings, tuples member by member. Requires a conversion that the
  // checker allows.
  Operand convert(Operand operand, TypeId to);
  Operand scalar_operand(TypeId type, ValueId value) { return Operand{type, value}; }

  // ---- Memory
  // Allocates `size_bytes` of our memory, undefined at first, until the action ends: on the stack if small, else in
  // per-CPU scratch.
  ValueId memory(uint32_t size_bytes, std::string_view name = {});
  // Both take our memory and any size.
  void zero(ValueId address, uint32_t size_bytes);
  void copy(ValueId destination, ValueId source, uint32_t size_bytes);
  // Reads `size_bytes` from any address space into our memory; zeros if the address is bad.
  void read(ValueId destination, uint32_t size_bytes, ValueId source, AddressSpace space);
  // Reads a scalar of 1, 2, 4 or 8 bytes from any address space; 0 if the address is bad. Extended to 64 bits.
  // `struct_type` is the struct at `base`, invalid if not known; it permits the kernel's type-checked plain loads.
  ValueId read_scalar(ValueId base, int64_t offset_bytes, uint8_t size_bytes, bool is_signed, AddressSpace space,
                      TypeId struct_type = {});
  // Reads a NUL-terminated string. Returns its length without the NUL; 0 if the address is bad. The bytes after its end
  // are zeroed if `zero_rest`, else undefined.
  ValueId read_string(ValueId destination, uint32_t capacity_bytes, ValueId source, AddressSpace space, bool zero_rest);
  // Copies a string, of any kind and in any address space, to `destination`, which has the size of its type. Returns
  // its length. The string may be an array without a NUL.
  ValueId read_text(ValueId destination, const Operand& text, bool zero_rest);
  // Calls a helper that reads memory (probe_read_user, probe_read_kernel_str, ...), reports its failure and returns its
  // result. Requires 1 <= size <= `most_bytes`. If the program may sleep, pages of user memory that are not present are
  // brought in.
  ValueId call_reader(Helper helper, ValueId destination, ValueId size, uint32_t most_bytes, ValueId source);
  // The operand with its bytes copied to our memory, unless they are there or it is a scalar.
  Operand in_our_memory(Operand operand);
  // Stores and loads a value in the layout of its type, in our memory.
  void store(ValueId address, Operand operand);
  Operand load(ValueId address, TypeId type);
  // Reserves zeroed bytes in `globals`, aligned to their size, which is a power of two. Returns their offset.
  uint32_t add_global(uint32_t size_bytes) { return module_.add_global(size_bytes, size_bytes); }
  // The address of constant bytes in .rodata. Equal ones are stored once.
  ValueId constant_bytes(std::string_view bytes);
  // The address of `size_bytes` that this program has on this CPU, by their name; zero at first. They keep their
  // content from one event to the next, and global functions have them too.
  ValueId cpu_memory(const std::string& name, uint32_t size_bytes);

  // ---- Context and task
  Operand context_field(const spec::ContextField& field);
  // A register from the probe's pt_regs; 0 if it has none.
  ValueId register_value(const kernel::Register& reg);
  // The index of the probe that fired.
  ValueId probe_index();
  // Whether the unit calls a builtin that is lowered by this function.
  bool calls(decltype(spec::Builtin::lower) emitter);
  // The value of `probe`, `func` or `probetype` when that probe fires: the index of the first one with the same name.
  uint32_t fired_index(Kind kind, program::ProbeId probe) { return module_.fired_index(kind, probe); }
  // A member of the current task_struct by its path, such as {"group_leader", "pid"}; 0 if the kernel has no such
  // member, its address if it is not a scalar.
  ValueId current_task_field(std::span<const std::string_view> path);
  ValueId current_task_field(std::initializer_list<std::string_view> path) {
    return current_task_field(std::span(path.begin(), path.size()));
  }
  ValueId cpu() { return ir().call(Helper::get_smp_processor_id, {}); }
  bool is_preemptible() const { return context_.is_preemptible; }

  // ---- Maps
  struct MapElement {
    ScriptMapId map;
    ValueId key;  // address of the key's bytes; invalid for a map without keys, and for a map of threads
  };
  // The element that a map expression names, with an index or without.
  MapElement element(ExprId map_expr);
  // The same with the key as an expression of its own: has_key(@m, k).
  MapElement element(ScriptMapId map, ExprId key);
  // Runs `then` with the value's address if the key is present, else `otherwise`. Both may be null.
  void with_value(const MapElement& element, const std::function<void(ValueId address)>& then,
                  const std::function<void()>& otherwise);
  // If the key is present, assigns the value to a variable. Returns 1 if it is, else 0.
  ValueId find_into(const MapElement& element, ExprId variable);
  // Returns whether the key was present.
  ValueId remove(const MapElement& element, bool is_statement);
  // The number of values that an element of recent() has.
  ValueId kept_count(const MapElement& element);
  // The number of keys.
  ValueId length(ScriptMapId map);

  // ---- Events and exits
  // Emits a record for `builtin`, whose handler gets the arguments in order. If the ring is full, counts a loss. With
  // `buffer`, the record goes there.
  void emit_event(std::string_view builtin, std::vector<EventArgument> arguments, source::Span span,
                  std::vector<std::string> literals = {}, std::vector<int64_t> numbers = {}, ScriptMapId map = {},
                  const SpanBuffer* buffer = nullptr);
  // If `result`, which `helper` returned, is negative: emits a warning under -k, and counts a failed read if losses are
  // counted. Otherwise costs nothing.
  void report_failure(Helper helper, ValueId result);
  // If `size_bytes` and `limit` meet the condition, counts a string that max_strlen has truncated, unless that is
  // allowed for the call.
  void count_truncated(ExprId call, ValueId size_bytes, Condition condition, uint32_t limit);
  // The result of the call is shown with a mark if it is truncated, or if later computations do not need the rest.
  void allow_truncation(ExprId call) { may_truncate_.insert(call.index); }
  // Adds one to this program's loss counter, which is shown at the end as "WHAT: N".
  void count_loss(program::LossKind kind, std::string_view what) {
    module_.count_loss(ir(), functions_.program(), kind, what);
  }
  // Ends the action. Continues in a new, unreachable block.
  void end_action();
  // Sets the flag that makes other programs return at once (spec::AfterExit).
  void set_exit_flag(ValueId status);

  // ---- Control flow and functions
  // See functions.h.
  ValueId select(Condition condition, ValueId a, ValueId b, const std::function<ValueId()>& if_true,
                 const std::function<ValueId()>& if_false) {
    return lower::select(ir(), condition, a, b, if_true, if_false);
  }
  void when(Condition condition, ValueId a, ValueId b, const std::function<void()>& then,
            const std::function<void()>& otherwise = nullptr) {
    lower::when(ir(), condition, a, b, then, otherwise);
  }
  // The maps of the stacks of this type (Program::stacks), added at first use.
  program::StackMaps stack_maps(TypeId type) { return module_.stack_maps(type); }
  // A function with this name that helpers such as bpf_loop call back. `body` writes it the first time, by ir(); it
  // must not use memory(), variables or the context.
  FunctionId callback(const std::string& name, uint32_t parameters, const std::function<void()>& body) {
    return functions_.shared_callback(name, parameters, body);
  }
  // A function with this name that takes numbers, which the kernel verifies once, wherever it is called. `body` writes
  // it the first time, like in a callback.
  FunctionId global_function(const std::string& name, uint32_t parameters, const std::function<void()>& body) {
    return functions_.global_function(name, parameters, body);
  }

  // ---- The whole action: lower.cc calls one of these, once
  // Returns the main function, or this unit's part of it.
  ir::Function lower_action();
  // Returns the part for the entry of a session whose action is at the return only.
  ir::Function lower_entry_alone();
  // Returns the code before all parts that share a number. It ends the program if no part has the number, and otherwise
  // returns in its last block.
  ir::Function lower_dismissal(std::span<const uint64_t> numbers);

 private:
  // Where a variable is: in one of these, if it has a place yet. It is not a value of the IR: the copies of an unrolled
  // body share the place, and a value of one copy need not dominate the others.
  struct VariableStorage {
    ir::SlotId slot;  // of `owner`, the function that may use it
    FunctionId owner;
    uint32_t frame_offset = 0;               // 0: not in the frame
    std::optional<uint32_t> scratch_offset;  // of values that are not scalars

    bool is_placed() const { return slot.valid() || frame_offset != 0 || scratch_offset; }
  };

  // What `continue` and `break` jump to.
  struct Loop {
    BlockId next;
    BlockId done;
  };

  // An action, or one call of a script's function.
  struct Activation {
    const check::Unit* unit = nullptr;
    std::set<uint32_t> shared_variables = {};   // variables that must be in the frame: find_shared_variables()
    std::vector<VariableStorage> storage = {};  // by VariableId
    BlockId return_block = {};                  // of a function
    ir::SlotId result = {};                     // the value of `return`, or its address
    uint32_t result_offset = 0;                 // not 0: it is in the frame instead
    std::vector<Loop> loops = {};               // the innermost last, of the current callback alone
    size_t callback_depth = 0;
  };

  bool is_scalar(TypeId type) const { return !types::is_by_reference(types()[type]); }
  bool is_constant(ExprId expr) const { return !std::holds_alternative<std::monostate>(constant(expr)); }
  // Runs `body` with `activation` as the current one.
  void with_activation(Activation& activation, const std::function<void()>& body);

  // ---- Instructions
  ValueId offset(ValueId address, int64_t offset_bytes) {
    return offset_bytes == 0 ? address : ir().binary(Op::k_add, address, offset_bytes);
  }
  // The low `size_bytes` of `value`, extended to 64 bits.
  ValueId extend(ValueId value, uint8_t size_bytes, bool is_signed);
  // Slots of 8 bytes that mem2reg promotes to values.
  ir::SlotId new_slot(std::string name) { return ir().add_variable(std::move(name)); }
  ValueId read_slot(ir::SlotId slot) { return ir().load(8, ir().slot(slot)); }
  void write_slot(ir::SlotId slot, ValueId value) { ir().store(8, ir().slot(slot), value); }
  // The index of a CPU's slot in an array with slots for all CPUs, bounded for the verifier.
  ValueId cpu_slot(ValueId cpu) { return ir().binary(Op::k_and, cpu, module_.cpu_slots() - 1); }
  // As count_loss(), reported with the place that is being lowered.
  void count_loss_here(program::LossKind kind, std::string_view what) {
    module_.count_loss(ir(), functions_.program(), kind, what, ir().span());
  }

  // ---- The program around the action (program.cc)
  void begin_action();
  void finish_action();
  void write_entry();
  void write_predicate();
  void write_setup();
  void write_exit();
  bool needs_recursion_guard();
  void begin_recursion_guard();
  void end_recursion_guard();
  bool may_exit();
  void count_deep_nesting();
  void count_hit(int64_t change);
  void add_to_counter(const program::HitCounters& counters, int64_t change);
  void count_caller();

  // ---- Exits (program.cc)
  // These continue in an unreachable block.
  void end_function();  // ends the current activation: `return`
  void go_to(BlockId block);
  void leave_callback(int64_t how);
  // Ends this program if the flag is set, and what it does then says so.
  void leave_if_exited(spec::AfterExit after);

  // ---- Which of its probes the program serves when it fires (program.cc)
  // Adds the slot that parts by number share. It must be the main function's first one.
  void begin_dispatch();
  // Writes the number to the slot that parts share, and ends the program if it is not in `numbers`, which are sorted
  // and different.
  void leave_if_none_of(std::span<const uint64_t> numbers);
  // With Dispatch::kNumber: ends the program if no probe of the unit has the number.
  void leave_if_other_number();
  bool is_by_number() const { return context_.dispatch == spec::ProbeContext::Dispatch::kNumber; }
  ValueId event_number();
  ValueId field_value(const char* name, const spec::Recipe& recipe);
  ValueId table_entry(ValueId number, std::string_view table, uint8_t entry_bytes, BlockId if_beyond);
  void match_one(ValueId number, BlockId match, BlockId other);
  void match_by_table(ValueId number, BlockId match, BlockId other);
  void skip_compat_calls();

  // ---- The gate (program.cc)
  // False for programs that are never turned off: timers, for example, which a script needs to show its results.
  bool has_gate() const;
  bool has_call_pairs() const;
  void leave_if_closed();
  // Ends the current block by a branch to `open` or `closed`.
  void branch_on_gate(BlockId open, BlockId closed);
  void branch_on_gate_state(BlockId open, BlockId closed);
  void branch_at_entry(ValueId calls, ValueId key, ValueId is_leader, BlockId open, BlockId closed);
  void branch_at_return(ValueId calls, ValueId key, ValueId is_leader, BlockId open, BlockId closed);
  // Continues where the thread is in a call that is seen, in a new block; else goes to `other`. Returns the depth.
  ValueId enter_if_within_call(ValueId calls, BlockId other);
  void begin_seen_call(ValueId key, BlockId open, BlockId closed);
  ValueId gate_state();
  ValueId gate_slice();  // the number of the current one

  // ---- Our memory (memory.cc)
  // True if an object of `size_bytes`, a multiple of 8, shall be on the stack; then it counts as allocated there.
  bool takes_stack(uint32_t size_bytes);
  // The scalar at `address` + offset, by several loads if it is not aligned to its size.
  ValueId load_scalar(ValueId address, int64_t offset_bytes, uint8_t size_bytes, bool is_signed);
  // The address of `size_bytes` constant zeros.
  ValueId zeros(uint32_t size_bytes) { return constant_bytes(std::string(size_bytes, '\0')); }
  // memory() that is zero.
  ValueId zeroed_memory(uint32_t size_bytes, std::string_view name);
  // Copies a zero-padded string without a helper; returns its length.
  ValueId copy_text(ValueId destination, ValueId source, uint32_t capacity_bytes);
  void copy_in_pieces(ValueId destination, ValueId source, uint32_t size_bytes);
  void copy_by_words(ValueId destination, ValueId source, uint32_t size_bytes, uint32_t align_bytes);
  // The largest power of two up to 8 by which `address` + offset is known to be aligned. Stack accesses must be
  // aligned.
  uint32_t alignment_of(ValueId address, int64_t offset_bytes = 0);
  // False under lockdown=confidentiality, which disables the helper that reads kernel memory.
  bool may_copy_from_kernel() const { return kernel().has(kernel::Feature::kProbeReadKernel); }

  // ---- The frame, which callbacks share with the main function (memory.cc)
  // Its address in the current function.
  ValueId frame_address();
  // Adds `size_bytes`, a multiple of 8, zero at first; returns their offset.
  uint32_t add_to_frame(uint32_t size_bytes);
  uint32_t add_frame_word() { return add_to_frame(8); }
  // Writes the main function's initialization of the frame, if anything uses it.
  void init_frame(ValueId scratch_base);
  // Runs `body`, which writes a callback that gets the addresses of the frame and of scratch memory as these values.
  void with_callback_memory(ValueId frame, ValueId scratch_base, const std::function<void()>& body);

  // ---- Scratch memory (memory.cc)
  // Of a CPU, if the program may be preempted, and if it also waits for pages. It does in the first of them only.
  static constexpr uint32_t kRegions = 4;
  static constexpr uint32_t kRegionsIfAsleep = 16;
  static constexpr uint32_t kWaitingRegions = 8;
  // Memory of each CPU: its offset in the map, and a power of two.
  struct CpuMemory {
    uint32_t at = 0;
    uint32_t stride_bytes = 0;
  };
  // Reserves `size_bytes` that live until the action ends; returns their offset.
  uint32_t reserve_scratch(uint32_t size_bytes);
  // The address of the memory reserved at `offset_bytes`, in the current function.
  ValueId scratch_address(uint32_t offset_bytes);
  ValueId scratch_base();
  // Defines the base address, in the current block of the main function. If threads may share a CPU, there are
  // `region_count` regions, and `if_none_is_free` writes what happens without one; it must end the program.
  ValueId init_scratch(uint32_t region_count, const std::function<void()>& if_none_is_free);
  ValueId take_scratch_region(ValueId of_cpu, uint32_t region_count, const std::function<void()>& if_none_is_free);
  // Releases the region, if init_scratch() has taken one.
  void release_scratch();
  // The number of the region that this run has taken, from 0; 0 if there are none.
  ValueId scratch_region_number();
  uint32_t scratch_region_bytes() const;
  CpuMemory add_cpu_memory(uint32_t size_bytes);
  ValueId cpu_memory_address(const CpuMemory& memory);

  // ---- Memory of the kernel and of user programs (reads.cc)
  enum class KernelRead : uint8_t { kCast, kTypedCast, kCopy };  // see reads.cc
  // read() of `size` bytes, at most `most_bytes`.
  void read_dynamic(ValueId destination, ValueId size, uint32_t most_bytes, ValueId source, AddressSpace space);
  // The object of this type at `address` + offset: read if it is a scalar, else its address. `struct_type` as in
  // read_scalar().
  Operand read_typed(ValueId address, int64_t offset_bytes, TypeId type, AddressSpace space, TypeId struct_type = {});
  // As read_scalar(), always by a helper.
  ValueId read_scalar_by_helper(ValueId base, int64_t offset_bytes, uint8_t size_bytes, bool is_signed,
                                AddressSpace space);
  Operand padded_text(ValueId address, TypeId string);
  KernelRead kernel_read(TypeId struct_type, int64_t offset_bytes, uint8_t size_bytes);
  bool is_plain_member(TypeId struct_type, int64_t offset_bytes, uint8_t size_bytes);
  bool is_iterator_context(ValueId base);
  // True if a read of user memory may sleep in the current function. Callbacks that iterate over a map hold a lock.
  bool may_sleep_here() const { return may_sleep_ && !functions_.is_in_callback(); }
  ValueId fault_in(ValueId destination, ValueId size, uint32_t most_bytes, ValueId source);
  // The object of this type that `pointer` points to.
  Operand dereference(Operand pointer, TypeId type);
  // The address in `pointer`, or the address of zeros if it is the null of an absent map element.
  ValueId readable_address(Operand pointer);
  // An object of this type, which `read_at` reads at a place of what `pointer` points to; zeros if the pointer is null.
  Operand through_pointer(Operand pointer, TypeId type, const std::function<Operand(ValueId address)>& read_at);
  // Returns true if the pointer may be the result of a map lookup, which is null for an absent key.
  bool may_be_null(Operand pointer);

  // ---- Fields of the probe's context (context.cc)
  Operand context_word(const spec::ContextField& field, ValueId context);
  Operand record_string(const spec::ContextField& field, ValueId context);
  Operand field_at(const spec::ContextField& field, ValueId base, int64_t offset_bytes, AddressSpace space);
  ValueId user_address(const spec::Recipe& recipe);

  // ---- Values at the locations that debug information gives (context.cc)
  using LocationStack = std::vector<ValueId>;
  // Requires a field with a recipe of kind kLocation.
  Operand value_at_location(const spec::ContextField& field);
  ValueId evaluate_location(const types::LocationPiece& piece, const std::vector<types::LocationOp>& ops);
  void apply_location_op(const types::LocationPiece& piece, const types::LocationOp& op, LocationStack& stack);
  void apply_to_top(const types::LocationPiece& piece, const types::LocationOp& op, LocationStack& stack);
  ValueId saved_register(int64_t offset_bytes);
  ValueId return_address(ValueId stored, ValueId stack_pointer);
  ValueId value_by_caller(const types::LocationPiece& piece, std::span<const types::CallSite> callers,
                          ValueId return_address);
  ValueId assemble_pieces(const std::vector<types::LocationPiece>& pieces, uint32_t size_bytes);
  void store_bytes(ValueId base, uint32_t offset_bytes, ValueId value, uint32_t size_bytes);

  // ---- Expressions (expressions.cc)
  Operand value_of_node(ExprId expr);
  Operand constant_value(TypeId type, const check::Constant& constant);
  Operand block_value(ExprId expr, const syntax::Block& node);
  Operand name_value(ExprId expr, const syntax::Name& node);
  Operand context_name(const check::ExprFact& fact, std::string_view name);
  // Evaluates `expr`; scalar() gives this value for it within `body`.
  void with_scalar(ExprId expr, const std::function<void()>& body);

  // ---- Conditions, and values that come from one of two branches (expressions.cc)
  // Branches on a condition, with && and || evaluated lazily.
  void branch_on(ExprId condition, BlockId if_true, BlockId if_false);
  // Not 0 if the operand is true.
  ValueId truth(Operand operand);
  // The value of `&&` and `||`.
  Operand logical_value(ExprId expr);
  Operand ternary_value(ExprId expr, const syntax::Ternary& node);
  Operand if_value(ExprId expr, const syntax::If& node);
  Operand value_of_branches(TypeId type, ExprId condition, ExprId if_true, ExprId if_false);
  Operand value_of_branch(TypeId type, ExprId branch);
  void write_branch_result(ir::SlotId result, TypeId type, ExprId branch);
  ValueId joined_value(TypeId type, ir::SlotId result);

  // ---- Members, elements, and the memory that an expression designates (expressions.cc)
  Operand member_value(ExprId expr, const syntax::Access& node);
  Operand tuple_member_value(ExprId expr, const syntax::TupleAccess& node);
  Operand index_value(ExprId expr, const syntax::Index& node);
  // The address that `expr` designates; its value if it designates none.
  Operand location(ExprId expr);
  // The operand of unary &.
  Operand address_of(ExprId expr);
  AddressSpace space_of_members(Operand base);
  Operand read_member(Operand base, TypeId struct_type, const types::FoundMember& found);
  ValueId read_bit_field(ValueId base, const types::FoundMember& found, AddressSpace space);
  Operand member_of_tuple(Operand base, size_t index, TypeId otherwise);
  Operand array_element(Operand base, TypeId element, ValueId index, uint32_t count);
  Operand member_location(ExprId base, const std::string& name);
  Operand element_location(ExprId expr, const syntax::Index& node);

  // ---- Values that are assembled member by member (expressions.cc)
  Operand make_tuple(TypeId type, const std::vector<ExprId>& elements);
  // `args` or `locals` as a whole: a record of all fields that can be read.
  Operand context_record(TypeId type, std::string_view name);
  // Stores the value of `expr` as type `to` at `zeroed` + offset. A builtin that can write its string there does so,
  // which saves a copy, if the offset is a multiple of 8: such builtins store words, which must be aligned.
  void store_member(ValueId zeroed, uint32_t offset_bytes, ExprId expr, TypeId to);

  // ---- Calls of builtins (expressions.cc)
  Operand call_value(ExprId expr, const syntax::Call& node);
  Operand call_builtin(ExprId expr, const spec::Builtin& builtin, std::span<const ExprId> arguments);
  Operand call_into_memory(ExprId expr, std::string_view name);
  // True for `comm`, `str(p)` and the like: a string or buffer that its builtin can write to any destination.
  bool writes_bytes(ExprId expr) const;
  // Requires writes_bytes(). Returns the length.
  ValueId write_bytes(ExprId expr, ValueId destination, uint32_t capacity_bytes);
  // The same in the layout of the type: a buffer has its length before its bytes.
  ValueId write_whole(ExprId expr, ValueId destination);
  // Folds the call's argument into the aggregation at `address`.
  void update_aggregation(ExprId call, const spec::Builtin& builtin, ValueId address, bool is_atomic);

  // ---- Calls of the script's functions (expressions.cc)
  Operand call_function(ExprId expr, const syntax::Call& node);
  const check::Unit* find_callee(ExprId call) const;
  Operand inline_function(const check::Unit& callee, const std::vector<Operand>& arguments);
  void init_function_result();
  void write_function_result(ValueId result);
  Operand function_result();

  // ---- Operators and casts (operators.cc)
  // target = target OP amount
  struct Update {
    syntax::BinaryOp op;
    TypeId type;  // of the result, if the target has none yet
    bool gives_old = false;
    bool is_used = false;
  };
  Operand unary_value(ExprId expr, const syntax::Unary& node);
  Operand binary_value(ExprId expr, const syntax::Binary& node);
  ValueId binary_scalar(const syntax::Binary& node, TypeId result);
  bool is_unsigned_pair(ExprId left, ExprId right);
  ValueId compare_bytes(const syntax::Binary& node);
  ValueId matches_pattern(const syntax::Binary& node);
  std::optional<ValueId> equals_probe_name(const syntax::Binary& node);
  ValueId equality(syntax::BinaryOp op, ValueId same);
  // ++ and --. Without `is_used`, returns no value.
  Operand step(ExprId expr, const syntax::Unary& node, bool is_used);
  void assign_with_operator(const syntax::Assign& node);
  Operand update_target(ExprId target, Operand amount, const Update& change);
  void update_in_place(ValueId address, TypeId type, Operand amount, const Update& change, ir::SlotId result);
  ValueId updated_value(const Update& change, Operand old, Operand amount);
  Operand cast_value(ExprId expr, const syntax::Cast& node);
  Operand cast_bytes(Operand operand, TypeId to);

  // ---- Arithmetic and comparison of operands (operators.cc) `left` OP `right` for arithmetic operators, as a value of
  // type `result`. Its sign decides the division: the checker gives a signed type if an operand is signed. Pointers
  // count elements.
  ValueId calculate(syntax::BinaryOp op, Operand left, Operand right, TypeId result);
  ValueId divide(Op op, ValueId dividend, ValueId divisor);
  // 1 or 0, for comparisons of scalars.
  ValueId compare(syntax::BinaryOp op, Operand left, Operand right, bool is_unsigned);
  // 1 or 0, for comparisons of two strings by an operator other than == and !=: by their bytes, which are unsigned.
  ValueId compare_order(syntax::BinaryOp op, Operand left, Operand right);
  // 1 if two strings, buffers, tuples or structs are equal, else 0.
  ValueId equal_values(Operand left, Operand right);
  // The same for a string in our memory and a constant, whose bytes and NUL fit into the string's capacity.
  ValueId equal_text(Operand operand, std::string text);
  ValueId equal_bytes(ValueId left, ValueId right, uint32_t size_bytes);
  ValueId equal_bytes_by_loop(ValueId left, ValueId right, uint32_t size_bytes, uint32_t width);
  void add_missing_nul(Operand& left, Operand& right);

  // ---- Conversions (operators.cc)
  // in_our_memory() with bytes that are aligned to 8, for a value that is at one of several addresses.
  Operand in_aligned_memory(Operand operand);
  // Stores the operand as a value of type `to`.
  void store_converted(ValueId address, Operand operand, TypeId to);
  void store_scalar(ValueId address, ValueId value, uint32_t size_bytes);
  void store_members(ValueId address, Operand operand, TypeId to);
  void copy_string(ValueId destination, Operand operand, TypeId to);
  // Truncates or extends a 64-bit result to the width of its type.
  ValueId normalize(ValueId value, TypeId type);
  // The number that an aggregation stands for where a number is wanted, such as the average of an avg().
  Operand reduce(Operand aggregate, TypeId to);
  Operand convert_scalar(Operand operand, TypeId to);
  Operand bytes_as_scalar(Operand operand, TypeId to);
  Operand padded_copy(Operand operand, TypeId to);
  bool is_by_member(TypeId from, TypeId to) const;
  bool are_strings(TypeId from, TypeId to) const;
  void mark_used(TypeId id, uint32_t at_bits, std::vector<uint8_t>& used);
  void zero_padding(ValueId address, TypeId id);

  // ---- Statements (statements.cc)
  void lower_statements(const std::vector<StmtId>& statements);
  void lower_statement(StmtId statement);
  // An expression whose value is not used.
  void discard(ExprId expr);
  void discard_if(ExprId expr, const syntax::If& node);
  void lower_let(StmtId id, const syntax::Let& node);
  void lower_assign(const syntax::Assign& node);
  void lower_return(const syntax::Return& node);
  void store_return_value(ExprId expr);

  // ---- Loops (statements.cc)
  static constexpr uint32_t kMostTurns = 8192;
  struct LoopBlocks {
    BlockId head, body, next, done, spent;
  };
  // From `first` to before `end`.
  struct Range {
    ValueId first, end;
    Condition less = Condition::slt;
    const char* name = "for";
    uint32_t most_turns = kMostTurns;
  };
  void lower_while(const syntax::While& node);
  void lower_unroll(const syntax::Unroll& node);
  void lower_for_range(StmtId id, const syntax::ForRange& node);
  void lower_for_map(StmtId id, const syntax::ForMap& node);
  void lower_for_recent(StmtId id, const syntax::ForMap& node);
  // `break` and `continue`.
  void leave_loop(bool is_break);
  // `most_turns`: a limit for kernels that need one; a loop that reaches it is cut short.
  LoopBlocks begin_loop(const std::string& name, uint32_t most_turns = kMostTurns);
  void end_loop(const LoopBlocks& blocks);
  // Runs `body` for the numbers of the range, with the number after each.
  void loop_from_to(const Range& range, const std::function<void(ValueId index, ValueId next)>& body);
  ValueId make_loop_pair(TypeId type, ScriptMapId map, ValueId key, ValueId value);
  void write_for_callback(VariableId variable, ScriptMapId map, ExprId body);
  void leave_after_callback();

  // ---- Variables (statements.cc)
  Operand read_variable(VariableId variable);
  void write_variable(VariableId variable, Operand operand);
  // Sets the variable to zeros.
  void clear_variable(VariableId variable);
  // Requires a shared variable, or one that is passed by reference.
  ValueId variable_address(VariableId variable);
  VariableStorage& storage_of(VariableId variable);
  VariableStorage& placed_storage(VariableId variable);
  VariableStorage place_variable(VariableId variable);

  // ---- Numbers that the verifier knows too well (statements.cc)
  bool kernel_has_may_goto() const { return kernel().has(kernel::Feature::kMayGoto); }
  // True inside a loop that the verifier must find to converge.
  bool is_in_converging_loop() { return !activation_->loops.empty() && kernel_has_may_goto(); }
  // True in an action or function with many `if`s.
  bool has_many_branches();
  // The same number, of which the verifier knows nothing.
  ValueId launder(ValueId value);
  // Launders all integers in slots, before a loop that may change them.
  void launder_variables();
  // An operand that is not an integer is returned as it is.
  Operand opaque_copy(Operand operand);

  // ---- Maps (maps.cc)
  // element() whose key is a tuple of these parts.
  MapElement element(ScriptMapId map, const std::vector<ExprId>& parts);
  // The element's value, merged if it is an aggregation; zeros if the key is absent.
  Operand read_element(const MapElement& element);
  Operand copied_element(Operand value);
  // Assigns a value, or updates the aggregation if `source` is a call such as count().
  void assign_map(ExprId target, ExprId source);
  bool is_of_thread(ScriptMapId map) const;
  bool may_wait_for(ExprId argument) const;
  void note_key_names(ScriptMapId map, const std::vector<ExprId>& indices);
  void note_sampling(ScriptMapId map);

  // ---- Elements of maps (maps.cc) The address of the value; null if the key is absent. The slot of the first CPU, if
  // the map has slots.
  ValueId element_address(const MapElement& element);
  // Like with_value(), but inserts an absent key first, with a zeroed value.
  void with_new_value(const MapElement& element, const std::function<void(ValueId)>& then);
  void store_element(const MapElement& element, Operand value);
  void replace_element(const MapElement& element, Operand value);
  // Adds a key with a value; stores into the element if the key is there meanwhile.
  void insert_element(const MapElement& element, Operand value, const std::function<void(ValueId)>& store_at);
  ValueId update_element(const MapElement& element, Operand value, int64_t flags);
  void fail_update(const program::ScriptMap& map, ValueId failed);
  void when_update_error(ValueId failed, int error, const std::function<void()>& then,
                         const std::function<void()>& otherwise);
  // The address of the "assigned" word of a map without keys: of this CPU, or of a given one.
  ValueId assigned_word(const program::ScriptMap& map);
  ValueId assigned_word(const program::ScriptMap& map, ValueId cpu);
  // The address of a CPU's value in an element with slots that element_address() found.
  ValueId slot_address(const program::ScriptMap& map, ValueId found, ValueId cpu);
  // The address of the value that this CPU updates, of a map with keys.
  ValueId own_value(const program::ScriptMap& map, ValueId found);
  // The address of the "assigned" word of the current thread; null if it has none, or, if `creates`, no memory for one.
  ValueId thread_word(const program::ScriptMap& map, bool creates);
  // Calls `use` with the thread's word if its value is assigned, else `otherwise`.
  void with_thread_word(const program::ScriptMap& map, const std::function<void(ValueId)>& use,
                        const std::function<void()>& otherwise);
  // Calls `use` with the thread's word, new if need be; counts a loss if there is no memory for one.
  void with_new_thread_word(const program::ScriptMap& map, const std::function<void(ValueId)>& use);
  ValueId clear_keyless_map(const program::ScriptMap& map);
  // Adds to the number of keys, where it is counted.
  void count_key(const program::ScriptMap& map, int64_t change);
  ValueId count_keys(const program::ScriptMap& map);

  // ---- recent() (maps.cc)
  // A part of the value: an operand, or an expression that is written in place.
  struct RecentPart {
    uint32_t offset_bytes = 0;
    TypeId type;
    ExprId expr;
    Operand operand;
  };
  // Adds the value of an expression; counts a loss if the slot is still being written by another thread.
  void add_recent(const MapElement& element, ExprId expr);
  std::vector<RecentPart> plan_recent(TypeId type, ExprId expr);
  RecentPart plan_recent_part(uint32_t offset_bytes, TypeId type, ExprId expr);
  bool is_written_in_place(const RecentPart& part);
  void write_recent(ValueId address, TypeId type, const std::vector<RecentPart>& parts);
  void add_to_recent(ValueId ring, const program::ScriptMap& map, const std::vector<RecentPart>& parts);

  // ---- Aggregations that the program itself reads (maps.cc)
  // The element's merged value; zeros if the key is absent.
  Operand merged_aggregation(const MapElement& element);
  // A copy of an element of recent(). Requires a map with keys.
  Operand copied_recent(const MapElement& element, TypeId type);
  void for_each_cpu_value(const MapElement& element, const std::function<void(ValueId)>& body);
  void merge_aggregation(TypeId type, ValueId destination, ValueId source);
  void merge_words(ValueId destination, ValueId source, uint32_t words);
  void merge_extreme(bool is_max, bool is_signed, ValueId destination, ValueId source);
  void merge_tseries(TypeId type, ValueId destination, ValueId source);
  void merge_interval(TypeId type, ValueId destination, ValueId source);

  // ---- Events (records.cc)
  struct PlannedField {
    program::EventField field;
    ExprId expr;      // valid: a builtin writes its bytes into the record
    Operand operand;  // else
  };
  PlannedField plan_field(const EventArgument& argument);
  void evaluate_argument(const EventArgument& argument, PlannedField& planned);
  Operand write_early(ExprId expr);
  void write_field(const PlannedField& planned, ValueId destination);
  ValueId write_tail(const PlannedField& planned, ValueId destination);
  ValueId bounded(ValueId number, uint32_t limit);

  // ---- Records: in the ring of this CPU, by the protocol of program/layout.h (records.cc)
  struct Record {
    program::EventId event;
    uint32_t size_bytes = 0;  // reserved
    BlockId done;             // continues after the record
    ValueId base;             // of the ring
    ValueId head;             // where the record begins, in bytes ever reserved
    ValueId address;
    ValueId fixed_bytes;
  };
  // Assigns the fields' offsets, adds the schema to the program and reserves a record with `tail_bytes` after its fixed
  // part. If the ring is full, counts a loss and goes to `done`.
  Record begin_record(program::EventSchema schema, uint32_t tail_bytes);
  // The same in the thread's own memory. If the record does not fit, runs `buffer.if_full`.
  Record begin_record_in(const SpanBuffer& buffer, program::EventSchema schema, uint32_t tail_bytes);
  // Completes the record. `end`: the offset in it after the last byte of the tail that is used.
  void finish_record(const Record& record, ValueId end, bool has_tail);
  uint32_t lay_out_fields(program::EventSchema& schema);
  Record lay_out_record(program::EventSchema schema, uint32_t tail_bytes);
  ValueId take_sequence();
  ValueId exchange_head(ValueId base, ValueId old, ValueId next);
  ValueId ring_base(BlockId otherwise);
  ValueId reserve_in_ring(ValueId base, uint32_t size_bytes, BlockId otherwise);
  ValueId reserve_in_buffer(const SpanBuffer& buffer, uint32_t size_bytes, BlockId otherwise);
  ValueId buffer_data_at(const SpanBuffer& buffer, ValueId position);
  ValueId next_fit_in_buffer(const SpanBuffer& buffer, ValueId head, uint32_t size_bytes);
  ValueId used_by_tree(const SpanBuffer& buffer, ValueId begin, ValueId next);

  // ---- Failures of helpers (records.cc)
  // Under -k: emits a record that `helper` failed with `result`.
  void emit_failure(Helper helper, ValueId result);
  // A key that delete() did not find: each time under -k; if nothing looks at what delete() returns, else the first
  // time at this place.
  void report_absent_key(bool is_statement);
  void write_failure(Helper helper, ValueId result);

  // ---- State Blocks of the main function, and facts about it before it is complete.
  struct MainFunction {
    BlockId setup, exit, skip;
    BlockId end;          // ends the action, or the predicate
    BlockId after_setup;  // guard or body
    bool is_setup_before_guard = false;
    ValueId recursion_flag;   // its address; invalid if there is no recursion guard
    BlockId recursion_block;  // where a recursion ends
    ValueId found_index;      // of the probe that fired, with Dispatch::kNumber; else invalid
  };
  struct Frame {
    ir::SlotId slot;  // in the main function
    uint32_t size_bytes = kFrameHeaderBytes;
    bool has_callbacks = false;
    ValueId callback_address;  // in a callback: its parameter
  };
  struct Scratch {
    ValueId main_base;        // init_scratch() defines it
    ValueId callback_base;    // in a callback: loaded from the frame
    uint32_t size_bytes = 0;  // allocated so far
    uint32_t use_count = 0;   // how often the base address was used so far
    std::map<std::string, CpuMemory> cpu_memories;
    ir::SlotId cpu_slot, number_slot;  // the taken region: address of its CPU's mask, its number
  };

  ModuleContext& module_;
  const check::Unit& action_;          // also while unit() is a function
  const spec::ProbeContext& context_;  // of the action and the functions that it calls
  const Part part_;
  Functions functions_;
  MainFunction main_;
  Frame frame_;
  Scratch scratch_;
  uint32_t stack_bytes_ = 0;  // of the main function, allocated so far
  Activation* activation_ = nullptr;
  size_t inline_depth_ = 0;                        // of calls of the script's functions
  const bool may_sleep_;                           // while it reads user memory
  bool sleeps_ = false;                            // a read that may sleep was written
  std::map<ExprId, ValueId> scalars_;              // see with_scalar()
  std::set<uint32_t> may_truncate_;                // calls
  std::map<FunctionId, ir::SlotId> hidden_slots_;  // of launder()
  // Answers of has_many_branches() and calls().
  std::map<const check::Unit*, bool> many_branches_;
  std::map<const check::Unit*, std::set<decltype(spec::Builtin::lower)>> called_;
};

}  // namespace espy::lower
