#include "cli/script_reads.h"

#include <fmt/format.h>

#include <algorithm>

#include "check/walk.h"

namespace espy::cli {

namespace {

using types::Kind;

class ReadsFinder {
 public:
  ReadsFinder(const check::Checked& checked, const check::Unit& unit, const types::Types& types, ScriptReads& out)
      : ast_(checked.ast), unit_(unit), types_(types), out_(out) {}

  ProbeReads find() {
    const auto visit = [&](syntax::ExprId id) { add(id); };
    check::walk(ast_, unit_.action->predicate, visit);
    check::walk(ast_, unit_.action->body, visit);
    return std::move(reads_);
  }

 private:
  void add(syntax::ExprId id) {
    const check::ExprFact& fact = unit_.fact(id);
    if (fact.field != nullptr) reads_.fields.insert(fact.field->name);
    if (!fact.type.valid()) return;
    const types::Type& type = types_[fact.type];
    if (type.kind == Kind::kKernelStack) reads_.kernel_stack = true;
    if (type.kind == Kind::kUserStack) reads_.user_stack = true;
    const bool is_name = ast_.get<syntax::Name>(id) != nullptr;
    if (is_name && type.kind == Kind::kRecord && !bases_.contains(id)) reads_.all_arguments = true;  // args
    if (const auto* access = ast_.get<syntax::Access>(id)) add_member(id, *access);
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

  const syntax::Ast& ast_;
  const check::Unit& unit_;
  const types::Types& types_;
  ScriptReads& out_;
  ProbeReads reads_;
  std::set<syntax::ExprId> bases_;  // of members
};

void merge(ProbeReads& into, const ProbeReads& from) {
  into.all_arguments |= from.all_arguments;
  into.fields.insert(from.fields.begin(), from.fields.end());
  into.kernel_stack |= from.kernel_stack;
  into.user_stack |= from.user_stack;
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
    if (std::ranges::find(out.targets, target) == out.targets.end()) out.targets.push_back(std::move(target));
  }
}

}  // namespace

Status add_reads(const Options& options, Environment& environment, ScriptReads& out) {
  const source::SourceId script = TRY(read_script(options, environment.sources));
  check::CheckRequest request = environment.check_request();
  syntax::Ast ast = parse_script(script, request);
  const check::Checked checked = check::check(std::move(ast), request);
  if (report(environment.diagnostics, environment.sources, options))
    return fail(fmt::format("{} cannot be run, and so not be recorded for", options.file.value_or("the script")));
  for (const syntax::Action& action : checked.ast.actions) add_targets(action, environment.registry, out);
  for (const check::Unit& unit : checked.units) {
    if (unit.action == nullptr) continue;
    const ProbeReads reads = ReadsFinder(checked, unit, environment.types, out).find();
    for (const program::ProbeId id : unit.probes) merge(out.probes[checked.probes[id].name], reads);
  }
  return {};
}

}  // namespace espy::cli
