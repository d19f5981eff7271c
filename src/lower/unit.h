// UnitLowering: one check::Unit into one program. Its parts are spread over unit, expr_*, read, memory, maps, event and
// statement .cc, by what they lower.
//
// The program's shape:
//
//   entry     the exit flag; dispatch by number
//   guard     the predicate
//   setup     per-CPU scratch, if anything needs it (before `guard` if the predicate does)
//   body
//   exit      gives the scratch back, returns 0
//
// `for` over a map runs its body as a callback, which is a function of its own. What the body needs of the action
// around it lies in the `frame`, an object on the main function's stack whose address the kernel hands to the callback:
// the scratch's base, the context, how the loop was left, and every variable that a callback shares.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "lower/lowering.h"
#include "lower/module_context.h"

namespace espy::lower {

using check::StmtId;
using check::VariableId;
using ir::BlockId;
using ir::Condition;
using ir::FunctionId;
using ir::Helper;
using ir::Op;
using program::ScriptMapId;
using types::Kind;

// What a unit is of a program that serves several.
struct Part {
  int64_t cookie_distance = 0;   // from the attach cookie to the index of the probe
  bool shares_number = false;    // with kNumber: the number is in the first slot, which all parts have in common ...
  bool knows_number = false;     // ... and a part before this one has put it there
  uint32_t deepest_nesting = 0;  // of calls whose returns are asked for, too: of others' entries a loss is counted
};

class UnitLowering : public Lowering {
 public:
  // `into`: the program, with its main function alone; other functions are added.
  UnitLowering(ModuleContext& shared, const check::Unit& unit, ir::Unit& into, Part part = {});
  // The main function, or this part of it.
  ir::Function lower();
  // The part for the entry of a session that has no action there.
  ir::Function lower_entry_alone();

  ir::Builder& ir() override { return *builder_; }
  types::Types& types() override { return module_.types; }
  kernel::Kernel& kernel() override { return module_.kernel; }
  const check::Unit& unit() const override { return *unit_; }
  const check::Checked& checked() const override { return module_.checked; }
  program::Program& program() override { return module_.program; }

  Operand value(ExprId expr) override;
  ValueId scalar(ExprId expr) override;
  Operand convert(Operand operand, TypeId to) override;

  ValueId memory(uint32_t size_bytes, std::string_view name) override;
  void zero(ValueId address, uint32_t size_bytes) override;
  void copy(ValueId destination, ValueId source, uint32_t size_bytes) override;
  void read(ValueId destination, uint32_t size_bytes, ValueId source, AddressSpace space) override;
  ValueId read_scalar(ValueId base, int64_t offset_bytes, uint8_t size_bytes, bool is_signed, AddressSpace space,
                      TypeId struct_type) override;
  ValueId read_string(ValueId destination, uint32_t capacity_bytes, ValueId source, AddressSpace space,
                      bool zero_rest) override;
  ValueId call_reader(Helper helper, ValueId destination, ValueId size, uint32_t most_bytes, ValueId source) override;
  Operand in_our_memory(Operand operand) override;
  void store(ValueId address, Operand operand) override;
  Operand load(ValueId address, TypeId type) override;
  ValueId constant_bytes(std::string_view bytes) override;

  Operand context_field(const spec::ContextField& field) override;
  ValueId register_value(const kernel::Register& reg) override;
  ValueId probe_index() override;
  uint32_t fired_index(types::Kind kind, program::ProbeId probe) override { return module_.fired_index(kind, probe); }
  ValueId current_task_field(std::span<const std::string_view> path) override;
  using Lowering::current_task_field;
  ValueId cpu() override;

  MapElement element(ExprId map_expr) override;
  MapElement element(ScriptMapId map, ExprId key) override;
  MapElement element(ScriptMapId map, const std::vector<ExprId>& parts);
  void with_value(const MapElement& element, const std::function<void(ValueId)>& then,
                  const std::function<void()>& otherwise) override;
  ValueId find_into(const MapElement& element, ExprId variable) override;
  ValueId remove(const MapElement& element) override;
  ValueId length(ScriptMapId map) override;

  void emit_event(std::string_view builtin, std::vector<EventArgument> arguments, source::Span span,
                  std::vector<std::string> literals, std::vector<int64_t> numbers, ScriptMapId map) override;
  void report_failure(Helper helper, ValueId result) override;
  void count_loss(program::LossKind kind, std::string_view what) override;
  void end_action() override;
  void set_exit_flag() override;
  program::MapId stack_map(TypeId type) override { return module_.stack_map(type); }
  FunctionId callback(const std::string& name, uint32_t parameters, const std::function<void()>& body) override;

 private:
  // Where a variable lives: a register's slot, a word of the frame, or (strings, tuples, structs) memory.
  struct Home {
    ir::SlotId slot;
    uint32_t frame_offset = 0;  // not 0: the value, or the address of the memory, is in the frame
    ValueId address;
    FunctionId owner;  // in which `slot` and `address` may be used
  };
  struct Loop {
    BlockId next;
    BlockId done;
    bool is_callback = false;
  };
  // An action or an inlined `fn`: what `return` means, and the variables of its unit.
  struct Activation {
    const check::Unit* unit = nullptr;
    std::vector<Home> homes;
    std::set<uint32_t> shared_variables;   // between functions, or by address
    std::map<uint32_t, uint32_t> used_in;  // variable to the first function that names it
    uint32_t callbacks = 0;
    BlockId return_block;        // of a `fn`
    uint32_t result_offset = 0;  // in the frame; 0: `result`
    ir::SlotId result;           // scalar, or the address
    std::vector<Loop> loops;
    size_t callback_depth = 0;
  };

  // ---- unit.cc
  void lower_entry();
  void leave_if(Condition condition, ValueId a, int64_t b);
  void leave_if_null(const spec::Recipe& pointer);
  void dispatch_by_number();
  ValueId number_of_event();
  void leave_after_exit();
  void count_deep_nesting();
  void skip_compat_tasks();
  void count_hit(int64_t change);
  void lower_predicate();
  void fill_setup();
  void take_scratch_region(ValueId cpu_base);
  uint32_t region_count() const;
  void fill_exit();
  void go_to(BlockId block);
  void leave_callback(int64_t result);
  void leave_activation();
  FunctionId begin_function(std::string name, uint32_t parameters, bool is_callback);
  void begin_body(FunctionId id, std::string name, uint32_t parameters, bool is_callback);
  void prune_unreachable(ir::Function& function);
  void find_shared_variables(Activation& activation);
  void note_use(Activation& activation, VariableId variable, uint32_t function);
  void mark_shared(Activation& activation, ExprId expr, uint32_t function);
  void mark_shared(Activation& activation, StmtId stmt, uint32_t function);
  ir::Function& function() { return *bodies_.at(function_id_); }
  bool is_in_callback() const { return function_id_ != main_id_; }
  Activation& activation() { return *activation_; }

  // ---- frame and variables (variable.cc)
  ValueId frame();
  uint32_t add_frame_word();
  Home& home(VariableId variable);
  Home& declare(VariableId variable);
  Operand read_variable(VariableId variable);
  ValueId variable_address(VariableId variable);
  void write_variable(VariableId variable, Operand operand);
  ir::SlotId new_slot(std::string name);
  ValueId read_slot(ir::SlotId slot) { return ir().load(8, ir().slot(slot)); }
  void write_slot(ir::SlotId slot, ValueId value) { ir().store(8, ir().slot(slot), value); }

  // ---- statement.cc
  void statement(StmtId stmt);
  void statements(const std::vector<StmtId>& list);
  void discard(ExprId expr);
  void assign(const syntax::Assign& node);
  void assign_variable(VariableId variable, ExprId value);
  void for_map(StmtId id, const syntax::ForMap& node);
  void for_range(StmtId id, const syntax::ForRange& node);
  void loop_while(const syntax::While& node);
  void unroll(const syntax::Unroll& node);
  struct LoopBlocks {
    BlockId head, body, next, done, spent;
  };
  LoopBlocks begin_loop(const std::string& name);
  void end_loop(const LoopBlocks& blocks);
  void return_from(const syntax::Return& node);
  void leave_loop(bool is_break);
  void lose_update(const program::ScriptMap& map, ValueId failed);
  ValueId launder(ValueId value);
  ValueId opaque_copy(ValueId number) override;
  Operand opaque_copy(Operand operand);  // what is no number stays itself
  // Inside a loop of which the verifier has to find out that it sees nothing new in it.
  bool is_walked_loop() { return !activation().loops.empty() && kernel_has_may_goto(); }
  bool kernel_has_may_goto() { return kernel().has(kernel::Feature::kMayGoto); }
  ValueId merged_value(TypeId type, ir::SlotId result);
  void launder_variables();

  // ---- expr.cc
  Operand constant_value(TypeId type, const check::Constant& constant);
  Operand value_of_node(ExprId expr);
  Operand block_value(ExprId expr, const syntax::Block& node);
  Operand if_value(ExprId expr, const syntax::If& node);
  Operand ternary(ExprId expr, const syntax::Ternary& node);
  Operand merge(TypeId type, ExprId condition, const std::function<void(ir::SlotId)>& then,
                const std::function<void(ir::SlotId)>& otherwise);
  void assign_result(ir::SlotId result, TypeId type, ExprId value);
  Operand make_tuple(ExprId expr, const std::vector<ExprId>& elements);
  Operand context_name(ExprId expr, std::string_view name);
  Operand call(ExprId expr, const syntax::Call& node);
  Operand call_builtin(ExprId expr, const spec::Builtin& builtin, std::span<const ExprId> arguments);
  Operand call_function(ExprId expr, const syntax::Call& node);
  void branch_on(ExprId condition, BlockId if_true, BlockId if_false);
  ValueId truth(Operand operand);

  // ---- arithmetic.cc
  Operand unary(ExprId expr, const syntax::Unary& node);
  Operand binary(ExprId expr, const syntax::Binary& node);
  ValueId arithmetic(syntax::BinaryOp op, Operand left, Operand right, TypeId result, bool is_unsigned);
  ValueId compare(syntax::BinaryOp op, Operand left, Operand right, bool is_unsigned);
  ValueId equal_bytes(ValueId left, ValueId right, uint32_t size_bytes);
  ValueId equal_text(Operand operand, std::string text);
  ValueId equal_values(Operand left, Operand right);
  bool is_unsigned_pair(ExprId left, ExprId right);
  ValueId normalise(ValueId value, TypeId type);
  Operand step(ExprId expr, const syntax::Unary& node, bool is_used);
  Operand update(ExprId target, syntax::BinaryOp op, const std::function<Operand()>& amount, TypeId type,
                 bool is_unsigned, bool gives_old, bool is_used);
  Operand cast(ExprId expr, const syntax::Cast& node);
  Operand cast_bytes(Operand operand, TypeId to);
  bool is_scalar(TypeId type) { return !types::is_by_reference(types()[type]); }

  // ---- access.cc
  Operand member(ExprId expr, const syntax::Access& node);
  Operand member_of(Operand base, TypeId struct_type, const types::FoundMember& found);
  Operand tuple_member(ExprId expr, const syntax::TupleAccess& node);
  Operand index(ExprId expr, const syntax::Index& node);
  Operand element_at(Operand base, TypeId element, ValueId index, uint32_t count);
  Operand at(ValueId address, int64_t offset, TypeId type, AddressSpace space, TypeId struct_type = {});
  Operand dereference(Operand pointer, TypeId type);
  Operand address_of(ExprId expr);
  Operand place(ExprId expr);
  ValueId bit_field(ValueId base, const types::FoundMember& found, AddressSpace space);
  TypeId complete(TypeId type);

  // ---- read.cc
  bool may_copy_from_kernel() { return kernel().has(kernel::Feature::kProbeReadKernel); }
  enum class KernelRead : uint8_t { kCast, kTypedCast, kCopy };
  KernelRead kernel_read(TypeId struct_type, int64_t offset_bytes, uint8_t size_bytes);
  bool is_plain_member(TypeId struct_type, int64_t offset_bytes, uint8_t size_bytes);
  ValueId copied_scalar(ValueId base, int64_t offset_bytes, uint8_t size_bytes, bool is_signed, AddressSpace space);
  ValueId extend(ValueId value, uint8_t size_bytes, bool is_signed);
  ValueId user_address(const spec::Recipe& recipe);
  // `size` bytes, `most_bytes` at most.
  void read_dynamic(ValueId destination, ValueId size, uint32_t most_bytes, ValueId source, AddressSpace space);
  // Not in callbacks: those that walk a map hold a lock.
  bool may_sleep_here() const { return may_sleep_ && !is_in_callback(); }
  ValueId fault_in(ValueId destination, ValueId size, uint32_t most_bytes, ValueId source);

  // ---- place.cc
  Operand placed(const spec::ContextField& field);
  ValueId follow(const types::LocationPiece& piece, const std::vector<types::LocationOp>& steps);
  ValueId return_address(ValueId slot);
  ValueId by_caller(const types::LocationPiece& piece, std::span<const types::CallSite> callers,
                    ValueId return_address);
  ValueId assembled(const std::vector<types::LocationPiece>& pieces, uint32_t size_bytes);
  void store_bytes(ValueId base, uint32_t offset_bytes, ValueId value, uint32_t size_bytes);

  // ---- memory.cc
  uint32_t alignment_of(ValueId address);
  ValueId scratch_base();
  ValueId scratch(uint32_t size_bytes);
  ValueId offset(ValueId address, int64_t offset_bytes);
  void store_converted(ValueId address, Operand operand, TypeId to);
  // The same for an expression, at `zeroed` + offset. Text that a builtin can write goes there without a copy; only to
  // multiples of 8, since such builtins write words and the stack wants them aligned.
  void store_member(ValueId zeroed, uint32_t offset_bytes, ExprId expr, TypeId to);
  // True of `comm`, `str(p)` and their like: a builtin that writes its bytes where it is told; `write_bytes` does, and
  // gives the length.
  bool writes_bytes(ExprId expr) const;
  ValueId write_bytes(ExprId expr, ValueId destination, uint32_t capacity_bytes);
  Operand convert_members(Operand operand, TypeId to);
  // What copy() and read_string() do within our memory where lockdown has taken the helper that they call elsewhere.
  void copy_in_pieces(ValueId destination, ValueId source, uint32_t size_bytes);
  ValueId copy_text(ValueId destination, ValueId source, uint32_t capacity_bytes);
  void copy_string(ValueId destination, Operand operand, uint32_t capacity_bytes);
  ValueId zeros(uint32_t size_bytes) { return constant_bytes(std::string(size_bytes, '\0')); }

  // ---- maps.cc
  const program::ScriptMap& script_map(ScriptMapId id) { return module_.program.script_maps[id]; }
  ValueId scalar_slot(const program::ScriptMap& map);              // this CPU's "assigned" word
  ValueId scalar_slot(const program::ScriptMap& map, ValueId at);  // a given CPU's
  Operand read_element(const MapElement& element, ExprId expr);
  void assign_element(const MapElement& element, ExprId value);
  void aggregate(const MapElement& element, const spec::Builtin& builtin, ExprId call);
  void store_element(const MapElement& element, Operand value);
  // Like with_value, but an absent key is inserted first, zeroed.
  void with_new_value(const MapElement& element, const std::function<void(ValueId)>& then);
  ValueId lookup(const MapElement& element);
  void for_each_cpu(const MapElement& element, const std::function<void(ValueId)>& body);
  Operand merged(const MapElement& element);
  void merge_cpu(TypeId type, ValueId destination, ValueId source);
  void merge_words(ValueId destination, ValueId source, uint32_t words);
  void merge_extreme(bool is_max, bool is_signed, ValueId destination, ValueId source);
  void merge_tseries(TypeId type, ValueId destination, ValueId source);
  Operand reduce(Operand aggregate, TypeId to);

  // ---- event.cc
  struct PlannedField {
    program::EventField field;
    ExprId expr;      // still to be lowered, by lower_into
    Operand operand;  // else
    uint32_t tail_bytes = 0;
    bool has_prefix = false;  // a buffer in our memory: length, bytes
  };
  PlannedField plan_field(const EventArgument& argument);
  Operand written_before(ExprId expr);
  ValueId ring_base(BlockId without);
  ValueId reserve(ValueId base, uint32_t size_bytes, BlockId without);
  ValueId write_tail(const PlannedField& planned, ValueId record, ValueId cursor);
  ValueId bounded(ValueId value, uint32_t limit);
  void emit_failure(Helper helper, ValueId result);

  ModuleContext& module_;
  const check::Unit& main_unit_;
  ir::Unit& into_;
  Part part_;
  const check::Unit* unit_;
  std::vector<std::unique_ptr<check::Unit>> inlined_units_;
  ir::Builder* builder_ = nullptr;
  FunctionId function_id_;
  std::map<std::string, FunctionId> callbacks_;     // made by callback()
  std::map<FunctionId, ir::SlotId> launder_slots_;  // launder's, one a function
  FunctionId main_id_;
  std::map<FunctionId, std::unique_ptr<ir::Function>> bodies_;  // builders hold on to them; moved out at the end
  Activation* activation_ = nullptr;
  size_t depth_ = 0;  // of inlined calls

  BlockId setup_block_, exit_block_, skip_block_;
  BlockId first_block_;  // behind `setup`: guard or body
  bool has_setup_before_guard_ = false;
  bool is_guarding_ = false;
  ValueId scratch_base_;        // main function; filled in at the end
  uint32_t scratch_bytes_ = 0;  // used so far in one region
  uint32_t stack_bytes_ = 0;    // of memory() on the stack
  ir::SlotId scratch_cpu_slot_, scratch_bit_slot_;
  bool may_sleep_ = false;  // while it reads user memory
  bool sleeps_ = false;     // ... and there is such a read
  ir::SlotId frame_slot_;   // main function
  uint32_t frame_bytes_ = 0;
  bool has_callbacks_ = false;
  ValueId callback_frame_;    // in a callback: its parameter
  ValueId callback_scratch_;  // ... and what it read from it
  ValueId probe_index_;       // found by dispatch
  uint32_t probe_index_offset_ = 0;
};

}  // namespace espy::lower
