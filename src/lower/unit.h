// Lowers one check::Unit, an action on probes with the same context, to one BPF program, or to a part of one
// (merge_programs.h). Owns the parts that do the work, and implements the interface through which builtins use them.
//
// The parts, from the bottom: Functions holds the IR functions being written. Frame and Scratch hold what lives as long
// as one run of the program. Memory, Reads and Conversions move bytes and values; RecordWriter and Failures report to
// user space. Scope is the current action or inlined function, Variables its variables. Expressions, Statements and the
// parts that they refer to recurse over the tree. MainFunction writes what surrounds the action.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lower/access.h"
#include "lower/aggregations.h"
#include "lower/arithmetic.h"
#include "lower/branches.h"
#include "lower/builtin_calls.h"
#include "lower/context_fields.h"
#include "lower/conversions.h"
#include "lower/dispatch.h"
#include "lower/events.h"
#include "lower/exits.h"
#include "lower/expressions.h"
#include "lower/failures.h"
#include "lower/frame.h"
#include "lower/function_calls.h"
#include "lower/functions.h"
#include "lower/laundering.h"
#include "lower/loops.h"
#include "lower/lowering.h"
#include "lower/main_function.h"
#include "lower/map_elements.h"
#include "lower/maps.h"
#include "lower/memory.h"
#include "lower/module_context.h"
#include "lower/operators.h"
#include "lower/reads.h"
#include "lower/recents.h"
#include "lower/record_writer.h"
#include "lower/scope.h"
#include "lower/scratch.h"
#include "lower/statements.h"
#include "lower/tuples.h"
#include "lower/value_locations.h"
#include "lower/variables.h"

namespace espy::lower {

class UnitLowering final : public Lowering {
 public:
  // `out` is the program; its main function exists already, callbacks are added to it.
  UnitLowering(ModuleContext& module, const check::Unit& unit, ir::Unit& out, Part part = {});

  // Returns the main function, or this unit's part of it.
  ir::Function lower();
  // Returns the part for the entry of a session whose action is at the return only.
  ir::Function lower_entry_alone();
  // Returns what comes before all parts that share a number: it ends the program if no part has the number, and
  // otherwise returns in its last block.
  ir::Function lower_dismissal(std::span<const uint64_t> numbers);

  // ---- Lowering
  ir::Builder& ir() override { return functions_.ir(); }
  types::Types& types() override { return module_.types; }
  kernel::Kernel& kernel() override { return module_.kernel; }
  const check::Unit& unit() const override { return scope_.unit(); }
  const check::Checked& checked() const override { return module_.checked; }
  program::Program& program() override { return module_.program; }

  Operand value(ExprId expr) override { return expressions_.value(expr); }
  ValueId scalar(ExprId expr) override { return expressions_.scalar(expr); }
  ValueId truth(ExprId expr) override { return branches_.truth(expressions_.value(expr)); }
  ValueId opaque_copy(ValueId number) override { return laundering_.opaque_copy(number); }
  Operand convert(Operand operand, TypeId to) override { return conversions_.convert(operand, to); }

  ValueId memory(uint32_t size_bytes, std::string_view name) override { return memory_.allocate(size_bytes, name); }
  void zero(ValueId address, uint32_t size_bytes) override { memory_.zero(address, size_bytes); }
  void copy(ValueId destination, ValueId source, uint32_t size_bytes) override {
    memory_.copy(destination, source, size_bytes);
  }
  void read(ValueId destination, uint32_t size_bytes, ValueId source, AddressSpace space) override {
    reads_.read(destination, size_bytes, source, space);
  }
  ValueId read_scalar(ValueId base, int64_t offset_bytes, uint8_t size_bytes, bool is_signed, AddressSpace space,
                      TypeId struct_type) override {
    return reads_.read_scalar(base, offset_bytes, size_bytes, is_signed, space, struct_type);
  }
  ValueId read_string(ValueId destination, uint32_t capacity_bytes, ValueId source, AddressSpace space,
                      bool zero_rest) override {
    return reads_.read_string(destination, capacity_bytes, source, space, zero_rest);
  }
  ValueId read_text(ValueId destination, const Operand& text, bool zero_rest) override {
    return reads_.read_text(destination, text.type, text.value, text.space, zero_rest);
  }
  ValueId call_reader(Helper helper, ValueId destination, ValueId size, uint32_t most_bytes, ValueId source) override {
    return reads_.call_reader(helper, destination, size, most_bytes, source);
  }
  Operand in_our_memory(Operand operand) override { return conversions_.in_our_memory(operand); }
  void store(ValueId address, Operand operand) override { conversions_.store(address, operand); }
  Operand load(ValueId address, TypeId type) override { return memory_.load(address, type); }
  ValueId constant_bytes(std::string_view bytes) override { return memory_.constant_bytes(bytes); }

  Operand context_field(const spec::ContextField& field) override { return fields_.read(field); }
  ValueId register_value(const kernel::Register& reg) override { return fields_.register_value(reg); }
  ValueId probe_index() override { return dispatch_.index(); }
  bool calls(decltype(spec::Builtin::lower) emitter) override;
  uint32_t fired_index(Kind kind, program::ProbeId probe) override { return module_.fired_index(kind, probe); }
  using Lowering::current_task_field;
  ValueId current_task_field(std::span<const std::string_view> path) override {
    return reads_.current_task_field(path);
  }
  ValueId cpu() override { return ir().call(Helper::get_smp_processor_id, {}); }

  MapElement element(ExprId map_expr) override { return maps_.element(map_expr); }
  MapElement element(ScriptMapId map, ExprId key) override { return maps_.element(map, key); }
  void with_value(const MapElement& element, const std::function<void(ValueId)>& then,
                  const std::function<void()>& otherwise) override {
    elements_.with_value(element, then, otherwise);
  }
  ValueId find_into(const MapElement& element, ExprId variable) override { return maps_.find_into(element, variable); }
  ValueId remove(const MapElement& element, bool is_statement) override {
    return elements_.remove(element, is_statement);
  }
  ValueId kept_count(const MapElement& element) override { return recents_.kept_count(element); }
  ValueId length(ScriptMapId map) override { return elements_.length(map); }

  void emit_event(std::string_view builtin, std::vector<EventArgument> arguments, source::Span span,
                  std::vector<std::string> literals, std::vector<int64_t> numbers, ScriptMapId map,
                  const SpanBuffer* buffer) override;
  void report_failure(Helper helper, ValueId result) override { failures_.report(helper, result); }
  void allow_truncation(ExprId call) override { builtins_.allow_truncation(call); }
  void count_truncated(ExprId call, ValueId size_bytes, Condition condition, uint32_t limit) override {
    builtins_.count_truncated(call, size_bytes, condition, limit);
  }
  uint32_t add_global(uint32_t size_bytes) override { return module_.add_global(size_bytes, size_bytes); }
  void count_loss(program::LossKind kind, std::string_view what) override {
    module_.count_loss(ir(), functions_.program(), kind, what);
  }
  void end_action() override { exits_.end_action(); }
  void set_exit_flag(ValueId status) override { exits_.set_exit_flag(status); }
  program::StackMaps stack_maps(TypeId type) override { return module_.stack_maps(type); }
  FunctionId callback(const std::string& name, uint32_t parameters, const std::function<void()>& body) override {
    return functions_.shared_callback(name, parameters, body);
  }
  FunctionId global_function(const std::string& name, uint32_t parameters, const std::function<void()>& body) override {
    return functions_.global_function(name, parameters, body);
  }
  ValueId cpu_memory(const std::string& name, uint32_t size_bytes) override {
    return scratch_.cpu_memory(name, size_bytes);
  }

 private:
  ModuleContext& module_;
  const check::Unit& unit_;
  const Part part_;
  std::map<const check::Unit*, std::set<decltype(spec::Builtin::lower)>> called_;  // filled by the first question

  Functions functions_;
  Scope scope_;
  Frame frame_;
  Scratch scratch_;
  Memory memory_;
  RecordWriter writer_;
  Failures failures_;
  Reads reads_;
  Conversions conversions_;
  Laundering laundering_;
  Variables variables_;
  ValueLocations locations_;
  ContextFields fields_;
  ProbeDispatch dispatch_;
  Exits exits_;
  MainFunction main_;
  MapElements elements_;
  Aggregations aggregations_;
  Arithmetic arithmetic_;
  BuiltinCalls builtins_;
  // These recurse, so some refer to others that are constructed later.
  Tuples tuples_;
  Recents recents_;
  Maps maps_;
  Access access_;
  Branches branches_;
  Operators operators_;
  FunctionCalls function_calls_;
  Loops loops_;
  Statements statements_;
  Expressions expressions_;
  Events events_;
};

}  // namespace espy::lower
