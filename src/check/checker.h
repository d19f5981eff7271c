// The checker: finds the type of every expression, variable and map of a script.
//
// It is one class in several files, like Sema in Clang. Checking an expression needs names, variables, maps, types and
// probes at once, and smaller parts would only refer to each other. The public functions are for builtins; private ones
// are grouped by the file that defines them. Passes over the whole tree are functions (check/check_passes.h).
//
// Types widen: a variable holds everything that is assigned to it, a map everything that any unit puts into it. So all
// units are checked in rounds, until no type changes; facts are written in each, diagnostics in a final one. Types only
// widen, so a few rounds suffice.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "check/check_passes.h"
#include "check/checked.h"
#include "check/signature.h"
#include "check/type_rules.h"
#include "kernel/kernel.h"

namespace espy::check {

using source::Span;

struct VariableState {
  Slot slot;
  ExprId pointer = {};                // the first that is assigned
  bool is_assigned = false;           // by a statement before the one being checked
  bool is_let = false;                // declared by a `let` without a value
  bool is_read_unset = false;         // read before it is assigned, which gives 0
  bool iterates_aggregation = false;  // declared by a `for` over a map of aggregations
  int loop_depth = 0;                 // of its declaration: an outer loop may have assigned it in an earlier iteration
};

// Where a variable is declared within a unit; identifies it across rounds.
struct DeclarationSite {
  enum class Kind : uint8_t { kTarget, kStatement, kParameter };
  Kind kind;
  uint32_t index;  // of the ExprId, of the StmtId, or of the parameter

  auto operator<=>(const DeclarationSite&) const = default;
};

// By unit and place of the declaration.
using VariableTypes = std::map<std::pair<size_t, DeclarationSite>, Slot>;

struct MapState {
  ScriptMapId id;
  std::vector<Slot> key;  // empty for a scalar, or before the first use
  Slot value;
  Span keyed_span, scalar_span, value_span;  // first uses, invalid if none
  bool is_used = false;                      // else only declared
};

// Types of maps and variables, from elsewhere than their uses.
struct AssumedTypes {
  std::map<std::string, Slot> maps;  // of values, by name
  VariableTypes variables;
};

class Checker {
 public:
  Checker(CheckRequest& request, Checked& checked, const Defines& defines, source::Diagnostics& diagnostics);

  // Fills the facts of all units and the types of all maps of `checked`, whose probes are bound already.
  static void run(CheckRequest& request, Checked& checked, const Defines& defines);

  // ---- For the `check` functions of builtins

  types::Types& types() { return types_; }
  kernel::Kernel& kernel() { return kernel_; }
  symbols::Symbolizer* symbols() { return request_.symbols; }
  const spec::Config& config() const { return config_; }
  const syntax::Ast& ast() const { return ast_; }
  // The unit being checked, with its context and the facts known so far.
  const Unit& unit() const { return *unit_; }
  // An empty one in the unit of a function.
  const program::Probe& first_probe() const;
  // The names of the providers of the unit's probes, each once: "uprobe".
  std::vector<std::string> probe_types() const;

  TypeId type(ExprId expr) const { return unit().fact(expr).type; }  // of arguments, which are checked before the call
  const Constant& constant(ExprId expr) const { return unit().fact(expr).constant; }
  std::optional<int64_t> integer(ExprId expr) const { return constant_as<int64_t>(constant(expr)); }
  std::optional<std::string> text(ExprId expr) const { return constant_as<std::string>(constant(expr)); }
  // True if `map` is a whole map that has keys.
  bool is_keyed(ExprId map) const;
  // Notes that the script asks for the number of frames of stored stacks, which must then be stored with them.
  void measure_stacks() { checked_.measures_stacks = true; }
  // Notes that the script asks which tasks are traced: its probes then act in all of them.
  void act_in_all_tasks();
  // Makes the call a constant, as for kaddr, pton and getopt.
  void fold(ExprId call, Constant value) { fact(call).constant = std::move(value); }
  // Notes an option that the script asks for, so that `--help` shows it.
  void note_option(ScriptOption option);

  // Add a diagnostic, in the final round only, when types no longer change. An action is checked once for each kind of
  // probe it is attached to, so the same diagnostic at the same place is added once.
  void error(std::string_view id, Span span, std::string message, std::string hint = {});
  // Warns if the expression is a `char *`: `what`, the beginning of the message, uses the address.
  void warn_of_address(ExprId id, std::string_view what);
  void warning(std::string_view id, Span span, std::string message, std::string hint = {});

 private:
  // ---- Rounds, diagnostics and facts (checker.cc)

  void infer();
  void check_units();
  void check_action(const syntax::Action& action);
  void check_function(const syntax::Function& function);
  void enter_unit(size_t index);
  void run_final_round();
  void finish();
  AssumedTypes found_types() const { return {map_value_types(), variable_types()}; }
  static AssumedTypes types_of_all_branches(CheckRequest& request, Checked& checked, const Defines& defines);

  // The note is skipped if its span is invalid.
  void error_with_note(std::string_view id, Span span, std::string message, std::string hint, source::Note note);
  bool is_new(std::string_view id, Span span);

  ExprFact& fact(ExprId id) { return unit_->exprs[id]; }
  Span span_of(ExprId id) const { return ast_[id].span; }
  bool is_constant(ExprId id) const { return constant(id).index() != 0; }
  // The integer constant with its sign; nullopt if the expression is not one.
  std::optional<Number> number(ExprId id) const;
  // True for a constant of the type that its value alone gives it, which may therefore take another type.
  bool is_literal(ExprId id) const;
  // True for an integer literal, or arithmetic on such literals, without a cast. It is computed exactly, as a
  // mathematical number; with a cast it is computed as a variable of that type would be, by the optimizer.
  bool is_number_literal(ExprId id) const;
  // The expression as a value that is assigned. Requires that it is checked.
  Given given(ExprId id) const;
  bool has_cast(ExprId id) const;
  // Make the expression a constant, and return its type.
  TypeId set_number(ExprId id, Number value);
  TypeId set_text(ExprId id, std::string text);

  // An invalid id counts as void.
  TypeId known(TypeId id) const { return id ? id : types_.void_type(); }
  const types::Type& type_of(TypeId id) const { return types_[known(id)]; }
  // The type as diagnostics show it: "`int64`".
  std::string show(TypeId id) const { return "`" + types::to_string(types_, known(id)) + "`"; }
  // Two types as diagnostics show them, with where each is defined if their names are the same.
  std::pair<std::string, std::string> show_both(TypeId a, TypeId b) const;

  // ---- Expressions (check_expressions.cc). Each function notes what it finds in the facts and returns the
  // expression's type, invalid if that is unknown.

  // Any expression; void if it has no value.
  TypeId check_expr(ExprId id);
  // One that must have a value. An aggregation stays one: the value of a map, or the call of `count()`.
  TypeId check_value(ExprId id);
  // One that must have a value; an aggregation in a map is read as the number it stands for.
  // `is_printed`: it may be an aggregation that is not one number, such as a histogram.
  TypeId read_value(ExprId id, bool is_printed = false);
  // The second half of read_value().
  void read_aggregation(ExprId id, bool is_printed = false);
  // One that must be an integer.
  TypeId check_integer(ExprId id);
  // One that must be true or false: an integer, a pointer or a string.
  void check_condition(ExprId id);

  TypeId visit(ExprId, const syntax::ErrorExpr&) { return {}; }
  TypeId visit(ExprId id, const syntax::IntegerLiteral& node);
  TypeId visit(ExprId id, const syntax::BoolLiteral& node);
  TypeId visit(ExprId id, const syntax::StringLiteral& node);
  // A number if the parameter looks like one, else a string; 0 if it was not given.
  TypeId visit(ExprId id, const syntax::Positional& node);
  TypeId visit(ExprId id, const syntax::PositionalCount& node);
  TypeId visit(ExprId id, const syntax::TypeExpr& node);
  TypeId visit(ExprId id, const syntax::Sizeof& node);
  TypeId visit(ExprId id, const syntax::Offsetof& node);
  TypeId visit(ExprId, const syntax::Typeinfo&) { return {}; }  // expand_macros() leaves none without a member
  TypeId visit(ExprId id, const syntax::Comptime& node);
  // typeinfo(x).NAME
  TypeId type_property(ExprId id, const syntax::Typeinfo& node, const std::string& name, Span name_span);
  bool is_value_word(const std::string& word) const;
  // The type of an expression, or the type itself.
  TypeId operand_type(ExprId operand);

  // Words of the probe's context, #defines, builtins without parentheses, enumerators.
  TypeId visit(ExprId id, const syntax::Name& node);
  // A type of the script, the programs that the unit probes, or the kernel.
  TypeId enumerator_type(ExprId id, const std::string& name);
  bool is_expansion_too_long(ExprId id);
  // Reports that `name` stands for nothing, with a suggestion.
  void report_unknown_name(std::string_view name, Span span, bool is_call);

  // ---- What a probe's context offers: `args`, `locals`, `retval`, `argN`, `sargN` (check_expressions.cc)

  // The type of a context's word; invalid, with an error, if the probe does not offer it. nullopt for other names.
  std::optional<TypeId> context_word(ExprId id, const std::string& name);
  // The type of an expression whose value the recording has; invalid, with an error, if it could not be recorded.
  // nullopt for other expressions.
  std::optional<TypeId> recorded_value(ExprId id);
  // The fields that `args` and `locals` stand for; null for other words.
  const std::vector<spec::ContextField>* context_fields(std::string_view word) const;
  // A record of the fields of `args` or `locals` that can be read here.
  TypeId context_record(std::string_view word);
  // The field `name` of `args` or `locals`; null, with an error, if there is none or it cannot be read here.
  const spec::ContextField* context_field(std::string_view word, const std::string& name, Span span);
  // For `locals.s.x` where parts of `s` cannot be read here: if `x` (`member_name`) can, notes that `base` is the
  // field `s`, and returns true.
  bool use_readable_part(ExprId base, const std::string& member_name);
  TypeId all_context_fields(ExprId id, const std::string& word);
  TypeId return_value(ExprId id);
  TypeId numbered_argument(ExprId id, const std::string& name, size_t number);
  TypeId use_context_field(ExprId id, const spec::ContextField& field);
  TypeId shown_type(const spec::ContextField& field);
  bool is_readable(const spec::ContextField& field, Span span);
  void report_missing_context(const std::string& what, Span span, std::string hint = {});
  void report_no_fields(std::string_view word, Span span);
  void report_unknown_field(std::string_view word, const std::string& name, const std::vector<std::string>& names,
                            Span span);

  // ---- Operators and casts (check_operators.cc)

  TypeId visit(ExprId id, const syntax::Binary& node);
  // The type of an arithmetic operation; invalid if it does not work on these types. The expressions may be invalid;
  // where one is a literal, its type adapts to the other operand's.
  TypeId arithmetic_type(syntax::BinaryOp op, TypeId left, TypeId right, ExprId left_expr, ExprId right_expr);
  void use_func_beside(ExprId value, ExprId other);
  TypeId check_logical(ExprId id, const syntax::Binary& node);
  TypeId check_comparison(const syntax::Binary& node, TypeId left, TypeId right);
  // text ~ "pattern"
  TypeId check_match(ExprId id, const syntax::Binary& node, TypeId left, TypeId right);
  void warn_if_never(const syntax::Binary& node, TypeId left, TypeId right);
  TypeId check_arithmetic(const syntax::Binary& node, TypeId left, TypeId right);
  // The type of a constant result, invalid with an error if it overflows; nullopt if the result is not constant.
  std::optional<TypeId> fold_operands(ExprId id, const syntax::Binary& node);
  bool adapts_to_other(ExprId literal) const;
  void adapt_literal(ExprId literal, TypeId other);
  TypeId bad_operands(const syntax::Binary& node, TypeId left, TypeId right);

  TypeId visit(ExprId id, const syntax::Unary& node);
  TypeId increment(ExprId id, const syntax::Unary& node);
  TypeId increment_variable(ExprId id, const syntax::Unary& node);
  TypeId incremented_type(const syntax::Unary& node, TypeId old);
  TypeId dereference(ExprId id, const syntax::Unary& node);
  TypeId address_of(ExprId id, const syntax::Unary& node);
  TypeId bad_operand(ExprId id, const syntax::Unary& node, TypeId operand);

  TypeId visit(ExprId id, const syntax::Cast& node);
  std::optional<types::AddressSpace> space_behind_pointer(ExprId id) const;

  // `func` where a symbol is expected. It prints as a name; combined with values of ksym() and usym(), it is the
  // address of the function. If `value` is that word, and the unit probes functions of the kind of the symbol type
  // `wanted`, gives the expression this type and returns true.
  bool use_func_as_symbol(ExprId value, TypeId wanted);
  // True if `held` is the type of `func`, and `given` the type of a symbol. A map or variable with both holds a symbol,
  // and the next round finds it so.
  bool becomes_symbol(TypeId held, TypeId given) const;

  // ---- Statements, blocks and choices (check_statements.cc)

  void check_statement(StmtId id);
  void visit(StmtId id, const syntax::ExprStmt& node);
  void visit(StmtId id, const syntax::Assign& node);
  void visit(StmtId id, const syntax::Let& node);
  void visit(StmtId id, const syntax::Discard& node);
  void visit(StmtId id, const syntax::While& node);
  void visit(StmtId id, const syntax::Unroll& node);
  void visit(StmtId id, const syntax::ForMap& node);
  void visit(StmtId id, const syntax::ForRange& node);
  void visit(StmtId id, const syntax::Break& node);
  void visit(StmtId id, const syntax::Continue& node);
  void visit(StmtId id, const syntax::Return& node);
  void check_for_element(StmtId id, const syntax::ForMap& node);
  void check_loop_body(ExprId body);
  template <class For>
  void check_for_body(StmtId id, const For& node, TypeId type, bool iterates_aggregation = false);

  // `target` must be a Variable.
  void assign_variable(ExprId target, const syntax::Assign& node);
  // `target` must be a Map, or an Index of one.
  void assign_map(ExprId target, const syntax::Assign& node);
  // The type of `old OP value` for `target OP= value`; invalid, with an error, if there is none.
  TypeId combined_type(const syntax::Assign& node, TypeId old);
  bool is_single_value(const syntax::Assign& node);

  TypeId visit(ExprId id, const syntax::Block& node);
  TypeId visit(ExprId id, const syntax::If& node);
  TypeId visit(ExprId id, const syntax::Ternary& node);
  bool leaves(StmtId id);
  bool leaves(ExprId id);
  std::optional<bool> known_branch(ExprId id, ExprId condition);
  void leave_out(ExprId branch);
  void with_left_out(ExprId branch, const std::function<void(TypeId)>& look);
  TypeId common_type(ExprId id, ExprId a, ExprId b);

  // ---- Variables (check_variables.cc)

  void enter_scope() { scopes_.emplace_back(); }
  void leave_scope() { scopes_.pop_back(); }
  // As leave_scope(); diagnostics can say later that the names were known in this block.
  void leave_block();
  bool is_in_loop() const { return loop_depth_ > 0; }
  // An invalid id if no such variable is in scope. Names include the `$`.
  VariableId find_variable(std::string_view name) const;
  // Declares `name`, which must outlive the unit, in the innermost scope. With `is_explicit` (let, for, parameters),
  // one in scope with the same name is an error.
  VariableId declare_variable(DeclarationSite site, const std::string& name, Span span, bool is_explicit);
  // Declares the variable that the assignment to `target` creates.
  VariableId declare_target(ExprId target, const std::string& name);
  TypeId visit(ExprId id, const syntax::Variable& node);
  TypeId variable_type(VariableId id) const { return unit().variables[id].type; }
  VariableState& variable_state(VariableId id) { return variable_states_[unit_index_][id.index]; }
  // Replaces the type.
  void set_variable_type(VariableId id, TypeId type);
  // Widens the type so that it holds the value, of the expression `value` if that is valid.
  void add_to_variable(VariableId id, const Given& given, Span span, ExprId value = {});
  // Warns that a value has another sign than `what`, which is of the declared type `declared`.
  void warn_of_other_sign(const std::string& what, TypeId declared, TypeId given, Span span);
  void report_variable_mismatch(const Variable& variable, TypeId held, TypeId given, Span span);
  // Makes variables that are read and never assigned integers. Returns true if there is one.
  bool settle_unassigned_variables();
  // Whether something reads a variable to which nothing is assigned.
  bool has_unset_variable() const;
  // The types of variables to which something is assigned.
  VariableTypes variable_types() const;

  // ---- Maps (check_maps.cc)

  // A map that is read without a key.
  TypeId visit(ExprId id, const syntax::Map& node);
  // An element of a map, an array, a string or the like.
  TypeId visit(ExprId id, const syntax::Index& node);
  // True for an element of a map; false for one of an array, also of an array that a scalar map holds.
  bool is_map_element(const syntax::Index& node);
  // A map or element that is assigned to; checks the key. Null if `target` is neither.
  MapState* assigned_map(ExprId target);
  // A whole map as an argument, or an element if `allows_element`: clear(@m), delete(@m[k]). Null for others.
  MapState* map_argument(ExprId expr, bool allows_element);
  void find_whole_maps();
  void warn_if_unset_map(const MapState& map, const std::string& name, Span span);

  // Returns the state of a map, which is added if `use` is its first use.
  MapState& find_or_add_map(const std::string& name, Span use);
  // Returns the state of a map. Requires that the map is in the table.
  MapState& map_state(ScriptMapId id) { return map_states_.find(checked_.maps[id].name)->second; }
  const std::string& map_name(const MapState& map) const { return checked_.maps[map.id].name; }
  // Returns the names of maps with a value, sorted.
  std::vector<std::string> assigned_maps() const;
  // Returns the type of the key: a tuple if it has several parts, void for a scalar.
  TypeId map_key_type(const MapState& map);
  // Returns the type of the value; int64 before the first assignment.
  TypeId map_value_type(const MapState& map);
  // Whether something uses a map to which nothing is assigned.
  bool has_unset_map() const;
  // The types of values, by name, of the maps to which something is assigned.
  std::map<std::string, Slot> map_value_types() const;
  void take_assumed_type(const std::string& name, MapState& state);

  void use_as_scalar(MapState& map, Span span);
  const std::vector<ExprId>& key_parts(const std::vector<ExprId>& indices) const;
  // Checks the expressions of a key, and widens the map's key so that it holds their values.
  void check_key(MapState& map, const std::vector<ExprId>& indices, Span span);
  // Widens the key to hold the values of `parts`. Requires that these are checked.
  void add_key(MapState& map, const std::vector<ExprId>& parts, Span span);
  void add_key_types(MapState& map, const std::vector<TypeId>& types, Span span);
  bool add_key_part(Slot& part, const Given& given);
  bool open_key(MapState& map, size_t count, Span span);
  void report_key_mismatch(const MapState& map, TypeId held, TypeId given, Span span);
  // Reports a constant in the key of `target` that should name a probe or function, and names none of the script's. A
  // script can look for such a key, but not assign to it: names are kept as numbers of existing names.
  void refuse_unknown_names(const MapState& map, ExprId target);
  // Widens the value to hold `value`, which must be checked, or a value of `type`.
  void add_to_map(MapState& map, ExprId value, Span span);
  void add_type_to_map(MapState& map, const Given& given, Span span);
  bool has_argument_of_any_sign(ExprId value) const;

  // Warns of each map that is declared and never used.
  void warn_of_unused_maps();
  // Writes the final types to the table.
  void finish_maps();
  void finish_recent_map(CheckedMap& map, const MapState& state);
  TypeId shortened_key(TypeId key, uint32_t share_bytes);
  TypeId fitting_key(TypeId key);

  // ---- Calls of builtins and of the script's own functions (check_calls.cc)

  TypeId visit(ExprId id, const syntax::Call& node);
  std::optional<std::string> parameter_text(ExprId id);
  TypeId check_function_call(ExprId id, const syntax::Call& node, size_t function);
  void refuse_recursion(ExprId id, size_t called);
  bool calls_function(size_t caller, size_t called, std::set<size_t>& seen) const;
  // Returns how many functions are nested in calls of this one, itself included. `known`: locals of other functions.
  size_t nesting_of_calls(size_t function, std::map<size_t, size_t>& known) const;

  // Checks a use by the builtin's row, and by the row's `check` if the arguments are free of errors.
  TypeId check_builtin(ExprId id, const spec::Builtin& builtin, const std::vector<ExprId>& arguments);
  // False, with an error, if the command line, the kernel or the probe rules the builtin out. One that ends the action
  // is an error in a loop, but its type is known.
  bool is_allowed(const spec::Builtin& builtin, Span span);
  bool is_recorded(const spec::Builtin& builtin, bool has_arguments, Span span);
  bool works_in_probe(const spec::Builtin& builtin, const std::string& name, Span span);
  void report_missing_feature(kernel::Feature feature, const std::string& name, Span span);

  // Checks all arguments by the parameters of the signature; how many there must be is not checked. Below, `where`
  // begins messages: "`str`'s first argument".
  void check_arguments(const spec::Builtin& builtin, const Signature& signature, const std::vector<ExprId>& arguments);
  void check_argument(const Parameter& parameter, ExprId argument, const std::string& where);
  void check_map_argument(const Parameter& parameter, ExprId argument, const std::string& where);
  void check_assigned_argument(const MapState* map, ExprId argument, const std::string& where);
  void check_value_argument(const Parameter& parameter, ExprId argument, const std::string& where);
  bool is_mode_word(const Parameter& parameter, ExprId argument) const;
  void take_name_as_text(ExprId argument);
  bool matches_parameter(std::string_view wanted, TypeId found, ExprId argument);

  // ---- Types as the script writes them, members and elements, types of programs (check_types.cc)

  // Invalid, with an error, if there is no such type; invalid for an invalid id.
  TypeId named_type(syntax::TypeNameId id);
  // A type with a name of one word; invalid, without an error, if there is none.
  TypeId plain_type(const std::string& name);
  TypeId base_type(const syntax::TypeName& name);
  TypeId composite_type(const syntax::TypeName& name);
  TypeId tagged_type(const syntax::TypeName& name);
  TypeId array_type(const syntax::TypeName& name, size_t suffix, TypeId element);
  types::AddressSpace pointer_space(TypeId element) const;
  std::optional<int64_t> constant_length(ExprId count);
  void report_unknown_type(const syntax::TypeName& name);

  TypeId visit(ExprId id, const syntax::Access& node);
  TypeId visit(ExprId id, const syntax::TupleAccess& node);
  TypeId visit(ExprId id, const syntax::Tuple& node);
  TypeId visit(ExprId id, const syntax::Record& node);
  TypeId member_type(TypeId base, const std::string& name, Span name_span);
  // An element of an array, a string or the like.
  TypeId check_element(ExprId id, const syntax::Index& node);
  TypeId element_type(ExprId id, TypeId base, ExprId index);
  // Returns the path to a member of this name in the members of a struct, up to one pointer away: "q.disk"; "" if there
  // is none.
  std::string path_to_member(TypeId holder, const std::string& name);
  // The type of a `type` that is read from memory of `space`: pointers in user memory point to user memory.
  TypeId loaded_type(types::AddressSpace space, TypeId type);
  bool is_open_struct(TypeId id) const;
  // Adds the members of a struct of a program or the kernel that was only named so far.
  void complete_struct(TypeId id);
  void complete_by_kernel(TypeId id);
  // Reports that nothing is known of what a struct holds, and why.
  void refuse_incomplete(TypeId type, Span span);

  // Debug information of programs is read only for a name that neither the script nor the language defines.
  using Category = spec::ProgramTypeRequest::Category;
  // kOwn: the programs that the probes of the unit are in. kAny: for a unit without such probes, the programs of all
  // units.
  enum class ProgramScope : uint8_t { kOwn, kAny };
  // nullopt if no program has the name, or if it is ambiguous: explain_missing_type() shows why.
  std::optional<kernel::Enumerated> find_in_programs(ProgramScope scope, Category category, const std::string& name);
  TypeId find_program_type(ProgramScope scope, Category category, const std::string& name);
  // Defines a struct that the script only declares as the program's of the same name.
  void define_by_program(TypeId declared);
  struct Explanation {
    std::string message;  // instead of "no type named"; may be empty
    std::string hint;
  };
  // Why a name was not found; nullopt if no program was asked.
  std::optional<Explanation> explain_missing_type(const std::string& name) const;
  const std::vector<const program::Probe*>& probes_in_programs(ProgramScope scope);
  const spec::Provider* asked_provider(const program::Probe& probe) const;
  std::optional<kernel::Enumerated> search_programs(ProgramScope scope, Category category, const std::string& name);

  // ---- Values that are too large to be copied, and structs that nothing is known of (check_copies.cc)

  // Reports them, after the final round.
  void refuse_copies();
  // False if no type is to be refused; there is nothing to look for then.
  bool may_refuse_copies() const;
  void refuse_copies_in_unit();
  void refuse_copies_below(ExprId root);
  void refuse_copy(ExprId id);
  void note_operands(ExprId id);
  void note_arguments(const syntax::Call& call, const spec::Builtin& builtin);
  void skip_below(ExprId id);
  bool is_read_in_place(ExprId id) const;
  bool is_cast_in_place(const syntax::Cast& cast, TypeId to) const;
  bool refuse_if_large(TypeId type, Span span);
  bool refuse_if_incomplete(TypeId type, Span span);
  bool refuse_if_many(ExprId id);
  bool is_incomplete(TypeId type);
  uint64_t bytes_of(TypeId type);

  // ---- State

  CheckRequest& request_;
  Checked& checked_;
  const Defines& defines_;
  source::Diagnostics& diagnostics_;
  types::Types& types_;
  kernel::Kernel& kernel_;
  const spec::Registry& registry_;
  const spec::Config& config_;  // with what the script sets
  const syntax::Ast& ast_;
  const Table<ProbeId, program::Probe>& probes_;

  // The round, a pass over all units.
  bool is_final_ = false;     // no type changes any more: diagnostics are added
  bool has_changed_ = false;  // the type of a variable or map changed, so that another round is needed
  bool is_muted_ = false;     // diagnostics are neither added nor counted
  size_t error_count_ = 0;    // in all rounds, including errors that were not added
  // By source, begin, end, expansion and id.
  std::set<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, std::string>> reported_;

  // The place in the unit being checked.
  Unit* unit_ = nullptr;
  size_t unit_index_ = 0;
  int expr_depth_ = 0;
  int loop_depth_ = 0;
  int64_t copies_ = 1;  // of the statement, by `unroll`
  struct Scope {
    std::vector<std::pair<std::string_view, VariableId>> names;
  };
  std::vector<Scope> scopes_;                       // outermost first
  std::set<std::string, std::less<>> ended_names_;  // of the unit's blocks that were left
  uint32_t replacements_ = 0;                       // of names by #defines, within the outermost one
  uint32_t open_replacements_ = 0;                  // nested in each other

  // Variables and maps.
  std::vector<std::vector<VariableState>> variable_states_;          // by unit, by VariableId
  std::vector<std::map<DeclarationSite, VariableId>> declarations_;  // by unit
  std::map<std::string, MapState, std::less<>> map_states_;          // by name
  std::set<std::string, std::less<>> whole_maps_;                    // assigned without a key, and never with one
  AssumedTypes assumed_;

  // Branches that a known condition skips are not checked, so that it may be of another program, kernel or type. But it
  // can give a type, like under an unknown condition: a number to the value of both sides, and types to maps and
  // variables without another assignment.
  bool checks_all_branches_ = false;  // also skipped branches, except by `if comptime`
  bool has_left_out_ = false;         // such a branch was skipped, or would have been

  std::set<std::pair<size_t, size_t>> calls_;  // between functions of the script: caller, called

  // Refused copies.
  std::set<ExprId> in_place_;  // of which only a part or the address is read
  std::set<ExprId> skipped_;   // not evaluated, or reported with what they are a part of

  // Caches.
  std::unordered_map<std::string, std::optional<kernel::Enumerated>> enumerators_;                // by name
  std::map<std::pair<size_t, std::string>, TypeId> context_records_;                              // by unit and word
  std::map<std::pair<size_t, ProgramScope>, std::vector<const program::Probe*>> program_probes_;  // by unit
  std::map<std::tuple<size_t, ProgramScope, Category, std::string>, std::optional<kernel::Enumerated>>
      program_types_;                                                   // by unit
  std::map<std::pair<size_t, std::string>, Explanation> explanations_;  // by unit and name
};

}  // namespace espy::check
