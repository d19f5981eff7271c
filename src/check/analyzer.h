// The analysis of all units of a script: what every expression is.
//
// Types widen: a variable's type is that of everything assigned to it, a map's that of all its uses in all units. So
// the units are gone through again and again until nothing changes; facts are written each time, diagnostics only in
// the last round. Types only ever grow, so a few rounds suffice; `kMostRounds` guards against our own mistakes.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "check/check.h"
#include "check/checker.h"
#include "check/fold_constants.h"
#include "check/type_rules.h"

namespace espy::check {

using source::Span;

// Names of #define with the expression that each stands for.
using Defines = std::map<std::string, ExprId, std::less<>>;

class Analyzer final : public Checker {
 public:
  Analyzer(CheckRequest& request, Checked& checked, const Defines& defines);

  void run();

  // ---- Checker
  types::Types& types() override { return request_.types; }
  kernel::Kernel& kernel() override { return request_.kernel; }
  symbols::Symbolizer* symbols() override { return request_.symbols; }
  const spec::Config& config() const override { return checked_.config; }
  const syntax::Ast& ast() const override { return checked_.ast; }
  const Unit& unit() const override { return *unit_; }
  const program::Probe& first_probe() const override;
  std::vector<std::string> probe_types() const override;
  TypeId type(ExprId expr) const override { return unit_->fact(expr).type; }
  const Constant& constant(ExprId expr) const override { return unit_->fact(expr).constant; }
  bool is_keyed(ExprId map) const override;
  void measure_stacks() override { checked_.measures_stacks = true; }
  void fold(ExprId call, Constant value) override { fact(call).constant = std::move(value); }
  void note_option(ScriptOption option) override;
  void error(std::string_view id, Span span, std::string message, std::string hint = {}) override;
  void warning(std::string_view id, Span span, std::string message, std::string hint = {}) override;

 private:
  static constexpr int kMostRounds = 24;

  void refuse_unknown_options();

  struct MapState {
    ScriptMapId id;
    std::vector<Slot> key;
    Slot value;
    Span keyed_span, scalar_span, value_span;  // first uses, invalid if none
    bool is_declared = false;
  };
  struct Scope {
    std::vector<std::pair<std::string_view, VariableId>> names;
  };
  struct VariableState {
    Slot slot;
    bool is_assigned = false;  // by a statement that stands before the one being checked
    int loop_depth = 0;        // where it is declared: an outer loop may have assigned it on its last turn
  };

  // ---- Rounds (analyzer.cc)
  void check_unit(size_t index);
  void check_action(const syntax::Action& action);
  void check_function(const syntax::Function& function);
  void settle_maps();
  source::Diagnostic* report(source::Severity severity, std::string_view id, Span span, std::string message,
                             std::string hint);
  void note(source::Diagnostic* diagnostic, Span span, std::string message);
  ExprFact& fact(ExprId id) { return unit_->exprs[id]; }
  // Of an unknown type too, which is as good as void.
  const types::Type& type_of(TypeId id) { return request_.types[known(id)]; }
  TypeId known(TypeId id) { return id ? id : request_.types.void_type(); }
  std::string show(TypeId id) { return "`" + types::to_string(request_.types, known(id)) + "`"; }
  Span span(ExprId id) const { return checked_.ast[id].span; }
  void changed() { changed_ = true; }

  // ---- Statements (stmt.cc)
  void statement(StmtId id);
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
  void assign_variable(ExprId target, const syntax::Assign& node, Span span);
  void assign_map(ExprId target, const syntax::Assign& node);
  void condition(ExprId id);
  void loop_body(ExprId body);

  // ---- Variables (variables.cc)
  VariableId declare(uint64_t site, const std::string& name, Span span, bool is_let);
  // A variable that the assignment to `target` brings into being.
  VariableId declare_at(ExprId target, const std::string& name) {
    return declare((uint64_t{1} << 32) | target.index, name, span(target), false);
  }
  VariableId find_variable(std::string_view name) const;
  void add_to_variable(VariableId id, TypeId type, const Constant& constant, bool is_literal, Span span);
  void set_variable_type(VariableId id, TypeId type);

  // ---- Maps (maps.cc)
  MapState& map_state(const std::string& name, Span span);
  const std::vector<ExprId>& key_parts(const std::vector<ExprId>& indices) const;
  void use_key(MapState& map, const std::vector<ExprId>& indices, Span span);
  bool open_key(MapState& map, size_t count, Span span);
  bool add_key_part(Slot& part, TypeId type, const Constant& constant, bool is_literal);
  void key_mismatch(const MapState& map, TypeId held, TypeId given, Span span);
  void refuse_unknown_names(const MapState& map, ExprId target);
  void use_key_type(MapState& map, std::vector<TypeId> types, Span span);
  void use_as_scalar(MapState& map, Span span);
  void add_to_map(MapState& map, ExprId value, Span span);
  void add_type_to_map(MapState& map, TypeId type, const Constant& constant, bool is_literal, Span span);
  MapState* map_target(ExprId target);  // checks keys; null if not a map's element
  TypeId key_type(const MapState& map);
  // A map as it stands, for what works on whole maps or on elements: clear(@m), delete(@m[k]).
  void warn_if_unset(const MapState& map, const std::string& name, Span at);
  MapState* map_argument(ExprId expr, bool allows_element);
  void note_whole_maps();
  bool is_part_of_scalar(const syntax::Index& node);

  // ---- Expressions (expr_*.cc)
  TypeId expr(ExprId id);
  TypeId value(ExprId id);   // of something that must have a value
  TypeId number(ExprId id);  // aggregations are read; anything but an integer is an error
  void read_aggregation(ExprId id);
  TypeId visit(ExprId id, const syntax::ErrorExpr& node);
  TypeId visit(ExprId id, const syntax::IntegerLiteral& node);
  TypeId visit(ExprId id, const syntax::BoolLiteral& node);
  TypeId visit(ExprId id, const syntax::StringLiteral& node);
  TypeId visit(ExprId id, const syntax::Name& node);
  TypeId visit(ExprId id, const syntax::Variable& node);
  TypeId visit(ExprId id, const syntax::Map& node);
  TypeId visit(ExprId id, const syntax::Positional& node);
  TypeId visit(ExprId id, const syntax::PositionalCount& node);
  TypeId visit(ExprId id, const syntax::Index& node);
  TypeId visit(ExprId id, const syntax::Call& node);
  TypeId visit(ExprId id, const syntax::TypeExpr& node);
  TypeId visit(ExprId id, const syntax::Sizeof& node);
  TypeId visit(ExprId id, const syntax::Offsetof& node);
  TypeId visit(ExprId id, const syntax::Typeinfo& node);
  TypeId type_question(ExprId id, const syntax::Typeinfo& node, const std::string& name, Span at);
  TypeId visit(ExprId id, const syntax::Comptime& node);
  TypeId visit(ExprId id, const syntax::Unary& node);
  TypeId visit(ExprId id, const syntax::Binary& node);
  TypeId visit(ExprId id, const syntax::Ternary& node);
  TypeId visit(ExprId id, const syntax::Access& node);
  TypeId visit(ExprId id, const syntax::TupleAccess& node);
  TypeId visit(ExprId id, const syntax::Cast& node);
  TypeId visit(ExprId id, const syntax::Tuple& node);
  TypeId visit(ExprId id, const syntax::Record& node);
  TypeId visit(ExprId id, const syntax::Block& node);
  TypeId visit(ExprId id, const syntax::If& node);

  TypeId integer_constant(ExprId id, Number value);
  TypeId string_constant(ExprId id, std::string text);
  std::optional<Number> number_of(ExprId id);
  bool is_constant(ExprId id) const { return constant(id).index() != 0; }
  // A constant whose type nobody chose, so that it may take another.
  bool is_literal(ExprId id);
  TypeId branches(ExprId id, ExprId a, ExprId b);
  TypeId context_name(ExprId id, const std::string& name, bool& found);
  // The probe's fields that `args` and `locals` stand for; null for other words.
  const std::vector<spec::ContextField>* fields_named(std::string_view word) const;
  TypeId fields_type(std::string_view word);
  TypeId shown_type(const spec::ContextField& field);
  const spec::ContextField* field_named(std::string_view word, const std::string& name, Span span);
  void no_fields(std::string_view word, Span span);
  bool is_readable(const spec::ContextField& field, Span span);
  bool is_kept_part(ExprId base, const std::string& member_name);
  TypeId builtin_use(ExprId id, const spec::Builtin& builtin, const std::vector<ExprId>& arguments);
  bool allowed_here(const spec::Builtin& builtin, Span span);
  void unknown_name(std::string_view name, Span span, bool is_call);
  TypeId enumerator(ExprId id, const std::string& name);

  // expr_operators.cc
  TypeId increment(ExprId id, const syntax::Unary& node);
  TypeId dereference(ExprId id, const syntax::Unary& node);
  TypeId address_of(ExprId id, const syntax::Unary& node);
  TypeId comparison(ExprId id, const syntax::Binary& node, TypeId left, TypeId right);
  TypeId arithmetic(ExprId id, const syntax::Binary& node, TypeId left, TypeId right);
  bool is_number_literal(ExprId constant);
  bool has_cast(ExprId id);
  std::optional<TypeId> fold_operands(ExprId id, const syntax::Binary& node);
  void adapt_literal(ExprId literal, TypeId other);
  TypeId binary_type(syntax::BinaryOp op, TypeId left, TypeId right, ExprId left_expr, ExprId right_expr);
  TypeId bad_operands(const syntax::Binary& node, TypeId left, TypeId right);

  // expr_access.cc
  TypeId member(ExprId id, TypeId base, const std::string& name, Span name_span);
  TypeId element(ExprId id, TypeId base, ExprId index);
  TypeId seen_from(types::AddressSpace space, TypeId found);

  // expr_call.cc
  TypeId call_function(ExprId id, const syntax::Call& node, size_t function);
  void name_as_text(ExprId argument);
  void check_argument(const spec::Builtin& builtin, const struct Parameter& parameter, size_t index, ExprId argument);
  void output_argument(const MapState* map, ExprId argument, const std::string& where);
  bool matches(std::string_view wanted, TypeId type, ExprId argument);

  // type_names.cc
  TypeId type_name(syntax::TypeNameId id);
  void unknown_type(const syntax::TypeName& name, std::string_view word);
  TypeId base_type_name(const syntax::TypeName& name);
  TypeId named_type(const syntax::TypeName& name);

  CheckRequest& request_;
  Checked& checked_;
  const Defines& defines_;
  std::map<std::string, MapState, std::less<>> maps_;
  std::set<std::string, std::less<>> whole_maps_;                       // assigned as they stand, and never with a key
  std::set<std::pair<size_t, VariableId>> over_aggregations_;           // by unit: variables of `for` over such maps
  std::vector<std::vector<VariableState>> variables_;                   // by unit, by VariableId
  std::vector<std::unordered_map<uint64_t, VariableId>> declarations_;  // by unit: where declared
  std::map<std::pair<size_t, std::string>, TypeId> fields_types_;       // by unit and word
  std::unordered_map<std::string, std::optional<kernel::Enumerated>> enumerators_;
  std::set<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, std::string>> reported_;

  Unit* unit_ = nullptr;
  size_t unit_index_ = 0;
  std::vector<Scope> scopes_;
  std::set<std::string, std::less<>> ended_variables_;  // of this unit, whose blocks have been left
  int loop_depth_ = 0;
  bool is_final_round_ = false;
  bool changed_ = false;
  int depth_ = 0;
  size_t problems_ = 0;  // errors so far, said or not
};

// "did you mean `x`?", or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates,
                         std::string_view prefix = {});

}  // namespace espy::check
