#include "check/thread_maps.h"

#include <algorithm>
#include <set>

#include "check/walk.h"

namespace espy::check {

namespace {

using syntax::Ast;

constexpr uint32_t kMostValueBytes = 1024;  // of a thread's element: beyond, copying costs more than the search

struct ThreadMapUses {
  bool has_keys = false;    // it is used with a key
  bool are_by_tid = true;   // all keys are of the thread
  bool is_cleared = false;  // in `end`
  std::string obstacle;     // why its content can be seen otherwise; empty: it cannot
};

bool is_named(const spec::Builtin* builtin, std::string_view name) { return builtin && name_of(*builtin) == name; }

class Finder {
 public:
  Finder(const Checked& checked, const spec::Registry& registry)
      : checked_(checked), registry_(registry), ast_(checked.ast), uses_(checked.maps.size()) {}

  const ThreadMapUses& of(ScriptMapId map) const { return uses_[map.index]; }

  void look_at(const Unit& unit) {
    unit_ = &unit;
    understood_.clear();
    is_end_ = !unit.probes.empty() && std::ranges::all_of(unit.probes, [&](ProbeId probe) {
      const spec::Provider* provider = registry_.find_provider(checked_.probes[probe].provider);
      return provider && provider->phase == spec::Provider::Phase::kEnd;
    });
    const auto visit = [&](ExprId id) { look_at(id); };
    if (unit.function) return walk(ast_, unit.function->body, visit);
    if (is_end_) find_clears();
    if (unit.action->predicate) walk(ast_, unit.action->predicate, visit);
    walk(ast_, unit.action->body, visit);
  }

 private:
  // The map that an expression names, without a key.
  ScriptMapId named(ExprId id) const { return ast_.get<syntax::Map>(id) ? unit_->fact(id).map : ScriptMapId{}; }
  ScriptMapId element_of(ExprId id) const {
    const auto* index = ast_.get<syntax::Index>(id);
    return index ? named(index->base) : ScriptMapId{};
  }

  void object(ScriptMapId map, std::string why) {
    if (uses_[map.index].obstacle.empty()) uses_[map.index].obstacle = std::move(why);
  }

  // clear() at the begin of an action of `end`, where nothing can keep it from being run.
  void find_clears() {
    const auto* body = ast_.get<syntax::Block>(unit_->action->body);
    if (unit_->action->predicate || !body) return;
    for (const StmtId id : body->statements) {
      const auto* statement = std::get_if<syntax::ExprStmt>(&ast_[id].node);
      const auto* call = statement ? ast_.get<syntax::Call>(statement->value) : nullptr;
      const spec::Builtin* builtin = call ? unit_->fact(statement->value).builtin : nullptr;
      if (!builtin || builtin->ends_action) return;
      if (!is_named(builtin, "clear")) continue;
      const ScriptMapId map = named(call->arguments[0]);
      if (!map.valid()) continue;
      uses_[map.index].is_cleared = true;
      understood_.insert(call->arguments[0]);
    }
  }

  void look_at(ExprId id) {
    if (const auto* call = ast_.get<syntax::Call>(id)) return look_at_call(*call, unit_->fact(id).builtin);
    if (const auto* unary = ast_.get<syntax::Unary>(id); unary && unary->op == syntax::UnaryOp::kAddressOf)
      if (const ScriptMapId map = element_of(unary->operand); map.valid())
        object(map, "the address of an element is taken");
    if (const auto* index = ast_.get<syntax::Index>(id))
      if (const ScriptMapId map = named(index->base); map.valid()) use_key(map, index->base, index->indices);
    if (const ScriptMapId map = named(id); map.valid() && !understood_.contains(id))
      object(map, "it is used as a whole");
  }

  void look_at_call(const syntax::Call& call, const spec::Builtin* builtin) {
    if (!builtin || call.arguments.empty()) return;
    const ExprId first = call.arguments[0];
    // print() and the like, which user space serves, show an element with its key.
    const bool takes_map = builtin->sig.find("map ") != std::string_view::npos;
    if (const ScriptMapId map = element_of(first); map.valid() && builtin->handle && takes_map)
      object(map, std::string(name_of(*builtin)) + "() shows an element");
    const ScriptMapId map = named(first);
    if (!map.valid() || understood_.contains(first)) return;
    if (call.arguments.size() < 2 || builtin->handle)
      return object(map, std::string(name_of(*builtin)) + "() uses it as a whole");
    use_key(map, first, {call.arguments[1]});
  }

  void use_key(ScriptMapId map, ExprId name, const std::vector<ExprId>& parts) {
    understood_.insert(name);
    ThreadMapUses& uses = uses_[map.index];
    uses.has_keys = true;
    if (!is_of_thread(parts)) uses.are_by_tid = false;
    if (unit_->function) object(map, "a function uses it");
    if (is_end_) object(map, "`end` uses an element");
  }

  // `tid`, alone or with what is the same in the whole life of a thread.
  bool is_of_thread(const std::vector<ExprId>& parts) const {
    if (parts.size() == 1)
      if (const auto* tuple = ast_.get<syntax::Tuple>(parts[0])) return is_of_thread(tuple->elements);
    const auto is_builtin = [&](ExprId part, std::string_view name) {
      const auto* call = ast_.get<syntax::Call>(part);
      return is_named(unit_->fact(part).builtin, name) && (!call || call->arguments.empty());
    };
    return std::ranges::any_of(parts, [&](ExprId part) { return is_builtin(part, "tid"); }) &&
           std::ranges::all_of(parts, [&](ExprId part) { return is_builtin(part, "tid") || is_builtin(part, "pid"); });
  }

  const Checked& checked_;
  const spec::Registry& registry_;
  const Ast& ast_;
  std::vector<ThreadMapUses> uses_;
  const Unit* unit_ = nullptr;
  bool is_end_ = false;
  std::set<ExprId> understood_;  // expressions that name a map, whose use is known
};

std::string obstacle_of(const CheckedMap& map, const ThreadMapUses& uses, const Checked& checked,
                        const types::Types& types, kernel::Kernel& kernel) {
  if (!uses.obstacle.empty()) return uses.obstacle;
  const types::Type& value = types[map.value];
  if (types::is_aggregation(value) || value.kind == types::Kind::kVoid) return "its values are not assigned";
  if (value.size_bytes > kMostValueBytes) return "its values are large";
  if (map.is_declared) return "it is declared with its kind";
  if (checked.config.pid_namespace) return "`tid` is that of a namespace, which other threads are not in";
  if (!uses.is_cleared && checked.config.print_maps_on_exit)
    return "it is printed at the end, as `end` does not clear it";
  if (!kernel.has(kernel::Feature::kTaskStorage)) return "the kernel lacks `task_storage`";
  return "";
}

}  // namespace

void find_thread_maps(Checked& checked, const spec::Registry& registry, const types::Types& types,
                      kernel::Kernel& kernel) {
  Finder finder(checked, registry);
  for (const Unit& unit : checked.units) finder.look_at(unit);
  for (const ScriptMapId id : checked.maps.ids()) {
    const ThreadMapUses& uses = finder.of(id);
    if (!uses.has_keys || !uses.are_by_tid) continue;
    CheckedMap& map = checked.maps[id];
    const std::string obstacle = obstacle_of(map, uses, checked, types, kernel);
    map.is_of_thread = obstacle.empty();
    map.storage_note =
        map.is_of_thread ? "each use is by `tid`, and nothing shows it" : "not with the thread: " + obstacle;
  }
}

}  // namespace espy::check
