#include "record/script_reads.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "check/check.h"
#include "check/check_passes.h"
#include "syntax/format_script.h"

namespace espy::record {

namespace {

using types::Kind;

constexpr std::string_view kLocals = "locals";

class ReadsFinder {
 public:
  ReadsFinder(std::shared_ptr<const syntax::Ast> ast, const check::Unit& unit, const types::Types& types,
              ScriptReads& out)
      : shared_ast_(std::move(ast)), ast_(*shared_ast_), unit_(unit), types_(types), out_(out) {}

  ProbeReads find() {
    const auto visit = [&](syntax::ExprId id) { add(id); };
    check::walk(ast_, unit_.action->predicate, visit);
    check::walk(ast_, unit_.action->body, visit);
    return std::move(reads_);
  }

 private:
  void add(syntax::ExprId id) {
    const check::ExprFact& fact = unit_.fact(id);
    if (is_in_value_.contains(id)) return;
    if (fact.type.valid() && is_kept(id)) return add_value(id, fact.type);
    if (fact.field != nullptr) (is_local(id) ? reads_.locals : reads_.fields).insert(fact.field->name);
    if (const auto* call = ast_.get<syntax::Call>(id)) add_memory(fact, *call);
    if (!fact.type.valid()) return;
    const types::Type& type = types_[fact.type];
    if (type.kind == Kind::kKernelStack) reads_.kernel_stack = true;
    if (type.kind == Kind::kUserStack && fact.builtin != nullptr) reads_.user_stack = spec::name_of(*fact.builtin);
    const bool is_symbol = type.kind == Kind::kKernelSymbol || type.kind == Kind::kUserSymbol;
    if (is_symbol && ast_.get<syntax::Call>(id) != nullptr && is_of_event(id))
      reads_.symbols.emplace(format(ast_, id), ReadExpression{fact.type, shared_ast_, id});
    const auto* name = ast_.get<syntax::Name>(id);
    if (name != nullptr && type.kind == Kind::kRecord && !bases_.contains(id))
      (name->name == kLocals ? reads_.all_locals : reads_.all_arguments) = true;
    if (const auto* access = ast_.get<syntax::Access>(id)) add_member(id, *access);
  }

  // What str() or buf() reads at an argument, also at one with a cast.
  void add_memory(const check::ExprFact& fact, const syntax::Call& call) {
    const bool is_text = fact.builtin != nullptr && fact.builtin->reads_text_at;
    const bool is_buffer = fact.type.valid() && types_[fact.type].kind == Kind::kBuffer;
    if (call.arguments.empty() || (!is_text && !is_buffer)) return;
    syntax::ExprId address = call.arguments[0];
    while (const auto* cast = ast_.get<syntax::Cast>(address)) address = cast->operand;
    const spec::ContextField* field = unit_.fact(address).field;
    if (field != nullptr && !is_local(address)) (is_text ? reads_.texts : reads_.buffers).insert(field->name);
  }

  bool is_local(syntax::ExprId id) const {
    const auto* access = ast_.get<syntax::Access>(id);
    const auto* base = access != nullptr ? ast_.get<syntax::Name>(access->base) : nullptr;
    return base != nullptr && base->name == kLocals;
  }

  // Whether this is a value that recordings have only if it is asked for, or a member behind one.
  bool is_kept(syntax::ExprId id) const {
    if (const auto* access = ast_.get<syntax::Access>(id)) return is_kept(access->base);
    const spec::Builtin* builtin = unit_.fact(id).builtin;
    const auto* call = ast_.get<syntax::Call>(id);
    if (builtin == nullptr || builtin->kept == spec::Kept::kNo || !is_of_event(id)) return false;
    return builtin->kept == spec::Kept::kYes || (call != nullptr && !call->arguments.empty());
  }

  // Whether the expression has the same value wherever it is evaluated for one event.
  bool is_of_event(syntax::ExprId root) const {
    bool out = true;
    const auto visit = [&](syntax::ExprId id) {
      const check::ExprFact& fact = unit_.fact(id);
      const auto* name = ast_.get<syntax::Name>(id);
      const bool is_value = ast_.get<syntax::IntegerLiteral>(id) || ast_.get<syntax::StringLiteral>(id) ||
                            ast_.get<syntax::BoolLiteral>(id) || ast_.get<syntax::Access>(id);
      const bool is_call = ast_.get<syntax::Call>(id) != nullptr && fact.function < 0;
      out &= is_value || is_call || (name != nullptr && !fact.replacement.valid());
    };
    check::walk(ast_, root, visit);
    return out;
  }

  void add_value(syntax::ExprId id, types::TypeId type) {
    reads_.values.emplace(format(ast_, id), ReadExpression{type, shared_ast_, id});
    check::walk(ast_, id, [&](syntax::ExprId part) { is_in_value_.insert(part); });
  }

  void add_member(syntax::ExprId id, const syntax::Access& access) {
    bases_.insert(access.base);
    // A text behind the member is one pointer further.
    out_.depth = std::max(out_.depth, pointers_in(id) + 1);
    const types::TypeId holder = pointee(unit_.fact(access.base).type);
    if (!holder.valid() || types_[holder].kind != Kind::kStruct) return;
    const auto member = types::find_member(types_, holder, access.name);
    if (!member) return;
    out_.members.emplace(types_[holder].name, access.name);
    uint32_t& bytes = out_.struct_bytes[types_[holder].name];
    bytes = std::max(bytes, (member->offset_bits + 7) / 8 + types_[member->type].size_bytes);
  }

  types::TypeId pointee(types::TypeId type) const {
    if (!type.valid() || types_[type].kind != Kind::kPointer) return type;
    return types_[type].element;
  }

  // How many pointers a chain of members follows.
  uint32_t pointers_in(syntax::ExprId id) const {
    const auto* access = ast_.get<syntax::Access>(id);
    if (access == nullptr) return 0;
    const types::TypeId base = unit_.fact(access->base).type;
    const bool is_pointer = base.valid() && types_[base].kind == Kind::kPointer;
    return pointers_in(access->base) + (is_pointer ? 1 : 0);
  }

  const std::shared_ptr<const syntax::Ast> shared_ast_;
  const syntax::Ast& ast_;
  const check::Unit& unit_;
  const types::Types& types_;
  ScriptReads& out_;
  ProbeReads reads_;
  std::set<syntax::ExprId> bases_;        // of members
  std::set<syntax::ExprId> is_in_value_;  // parts of reads_.values
};

void merge(ProbeReads& into, const ProbeReads& from) {
  into.all_arguments |= from.all_arguments;
  into.fields.insert(from.fields.begin(), from.fields.end());
  into.texts.insert(from.texts.begin(), from.texts.end());
  into.buffers.insert(from.buffers.begin(), from.buffers.end());
  into.locals.insert(from.locals.begin(), from.locals.end());
  into.all_locals |= from.all_locals;
  into.values.insert(from.values.begin(), from.values.end());
  into.symbols.insert(from.symbols.begin(), from.symbols.end());
  into.kernel_stack |= from.kernel_stack;
  if (into.user_stack.empty()) into.user_stack = from.user_stack;
}

// Attach points of probes that recordings have anyway are left out.
void add_targets(const syntax::Action& action, const spec::Registry& registry, ScriptReads& out) {
  for (const syntax::AttachPoint& point : action.attach_points) {
    const spec::Provider* provider = registry.find_provider(point.provider.text);
    if (provider == nullptr) continue;
    out.has_timers |= provider->timer != spec::Timer::kNone;
    if (provider->attach == nullptr || provider->timer == spec::Timer::kOnOneCpu) continue;
    std::vector<std::string> target = {std::string(provider->name)};
    for (const syntax::AttachPart& part : point.parts) target.push_back(part.text);
    if (std::ranges::find(out.targets, target, &ScriptReads::Target::parts) == out.targets.end())
      out.targets.push_back({std::move(target), point.span});
  }
}

}  // namespace

Status add_reads(const run::RunOptions& options, run::Environment& environment, ScriptReads& out) {
  const source::SourceId script = TRY(run::read_script(options, environment.sources));
  check::CheckRequest request = environment.check_request();
  syntax::Ast ast = run::parse_script(script, request);
  const auto whole = std::make_shared<check::Checked>(check::check(std::move(ast), request));
  const check::Checked& checked = *whole;
  if (run::report(environment.diagnostics, environment.sources, options))
    return fail(fmt::format("cannot record for {}, because it cannot run", options.script.file.value_or("the script")));
  for (const syntax::Action& action : checked.ast.actions) add_targets(action, environment.registry, out);
  for (const check::Unit& unit : checked.units) {
    if (unit.action == nullptr) continue;
    const std::shared_ptr<const syntax::Ast> tree(whole, &whole->ast);
    const ProbeReads reads = ReadsFinder(tree, unit, environment.types, out).find();
    out.has_locals |= reads.all_locals || !reads.locals.empty();
    for (const program::ProbeId id : unit.probes) merge(out.probes[checked.probes[id].name], reads);
  }
  return {};
}

}  // namespace espy::record
