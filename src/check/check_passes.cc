#include "check/check_passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "base/untrusted_file.h"

namespace espy::check {

using namespace syntax;

// ---- Aggregations as values of blocks

namespace {

bool is_map_element(const Ast& ast, ExprId target) {
  const auto* index = ast.get<Index>(target);
  return ast.get<Map>(index ? index->base : target) != nullptr;
}

bool ends_with_aggregation(const Ast& ast, const spec::Registry& registry, ExprId value) {
  while (const auto* block = ast.get<Block>(value)) value = block->value;
  const auto* call = ast.get<Call>(value);
  const spec::Builtin* builtin = call ? registry.find_builtin(call->name) : nullptr;
  return builtin != nullptr && builtin->kind == spec::BuiltinKind::kAggregation;
}

// Replaces the value of the block by its assignment to `target`, a statement.
void assign_inside(Ast& ast, ExprId block_id, ExprId target, source::Span span) {
  const ExprId value = ast.get<Block>(block_id)->value;
  const bool is_block = ast.get<Block>(value) != nullptr;
  if (is_block) assign_inside(ast, value, target, span);
  Stmt last{span, is_block ? StmtNode(ExprStmt{value}) : StmtNode(Assign{target, std::nullopt, value})};
  const StmtId id = ast.stmts.add(std::move(last));
  auto& block = std::get<Block>(ast.exprs[block_id].node);
  block.value = {};
  block.statements.push_back(id);
}

}  // namespace

void assign_inside_blocks(Ast& ast, const spec::Registry& registry) {
  const auto count = static_cast<uint32_t>(ast.stmts.size());
  for (uint32_t i = 0; i < count; ++i) {
    const auto* assign = ast.get<Assign>(StmtId{i});
    if (!assign || assign->op || !ast.get<Block>(assign->value) || !is_map_element(ast, assign->target)) continue;
    if (!ends_with_aggregation(ast, registry, assign->value)) continue;
    const ExprId block = assign->value;
    assign_inside(ast, block, assign->target, ast[StmtId{i}].span);
    ast.stmts[StmtId{i}].node = ExprStmt{block};
  }
}

// ---- Hoisting

namespace {

using Assigned = std::map<std::string_view, ExprId>;  // by name: the first assignment's target

const If* if_statement(const Ast& ast, StmtId id) {
  const auto* statement = std::get_if<ExprStmt>(&ast[id].node);
  return statement ? ast.get<If>(statement->value) : nullptr;
}

// `$x = ...`, not `$x += ...`.
const syntax::Variable* plain_target(const Ast& ast, StmtId id) {
  const auto* assign = std::get_if<Assign>(&ast[id].node);
  return assign && !assign->op ? ast.get<syntax::Variable>(assign->target) : nullptr;
}

Assigned assigned_by(const Ast& ast, const If& node);

// Variables assigned on every path through the branch.
Assigned assigned_by(const Ast& ast, ExprId branch) {
  if (!branch) return {};
  if (const auto* other = ast.get<If>(branch)) return assigned_by(ast, *other);
  const auto* block = ast.get<Block>(branch);
  Assigned out;
  if (!block) return out;
  for (const StmtId id : block->statements) {
    if (const syntax::Variable* target = plain_target(ast, id))
      out.emplace(target->name, std::get<Assign>(ast[id].node).target);
    if (const If* inner = if_statement(ast, id)) out.merge(assigned_by(ast, *inner));
  }
  return out;
}

Assigned assigned_by(const Ast& ast, const If& node) {
  if (node.is_comptime) return {};
  Assigned out = assigned_by(ast, node.then_branch);
  const Assigned otherwise = assigned_by(ast, node.else_branch);
  std::erase_if(out, [&](const auto& entry) { return !otherwise.contains(entry.first); });
  return out;
}

// True if the first use of the variable from statement `index` on reads it.
bool is_read_first(const Ast& ast, const Block& block, size_t index, std::string_view name) {
  bool is_read = false;
  const auto look = [&](ExprId id) {
    const auto* variable = ast.get<syntax::Variable>(id);
    is_read |= variable && variable->name == name;
  };
  for (; index < block.statements.size() && !is_read; ++index) {
    const StmtId id = block.statements[index];
    const syntax::Variable* target = plain_target(ast, id);
    if (target && target->name == name) {
      walk(ast, std::get<Assign>(ast[id].node).value, look);
      return is_read;
    }
    walk(ast, id, look);
  }
  if (block.value && !is_read) walk(ast, block.value, look);
  return is_read;
}

}  // namespace

std::vector<ExprId> variables_to_hoist(const Ast& ast, const Block& block, size_t index) {
  std::vector<ExprId> out;
  const If* node = if_statement(ast, block.statements[index]);
  if (!node || !node->else_branch) return out;
  for (const auto& [name, target] : assigned_by(ast, *node))
    if (is_read_first(ast, block, index + 1, name)) out.push_back(target);
  return out;
}

// ---- Maps of threads

namespace {

constexpr uint32_t kMostValueBytes = 1024;  // of a thread's element: beyond, copying costs more than the search

struct ThreadMapUses {
  bool has_keys = false;    // it is used with a key
  bool are_by_tid = true;   // all keys are of the thread
  bool is_cleared = false;  // in `end`
  std::string obstacle;     // why its content can be seen otherwise; empty: it cannot
};

bool is_named(const spec::Builtin* builtin, std::string_view name) { return builtin && name_of(*builtin) == name; }

class ThreadMapFinder {
 public:
  ThreadMapFinder(const Checked& checked, const spec::Registry& registry)
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
  ScriptMapId named(ExprId id) const { return ast_.get<Map>(id) ? unit_->fact(id).map : ScriptMapId{}; }
  ScriptMapId element_of(ExprId id) const {
    const auto* index = ast_.get<Index>(id);
    return index ? named(index->base) : ScriptMapId{};
  }

  void object(ScriptMapId map, std::string why) {
    if (uses_[map.index].obstacle.empty()) uses_[map.index].obstacle = std::move(why);
  }

  // clear() at the begin of an action of `end`, where nothing can keep it from being run.
  void find_clears() {
    const auto* body = ast_.get<Block>(unit_->action->body);
    if (unit_->action->predicate || !body) return;
    for (const StmtId id : body->statements) {
      const auto* statement = std::get_if<ExprStmt>(&ast_[id].node);
      const auto* call = statement ? ast_.get<Call>(statement->value) : nullptr;
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
    if (const auto* call = ast_.get<Call>(id)) return look_at_call(*call, unit_->fact(id).builtin);
    if (const auto* unary = ast_.get<Unary>(id); unary && unary->op == UnaryOp::kAddressOf)
      if (const ScriptMapId map = element_of(unary->operand); map.valid())
        object(map, "the address of an element is taken");
    if (const auto* index = ast_.get<Index>(id))
      if (const ScriptMapId map = named(index->base); map.valid()) use_key(map, index->base, index->indices);
    if (const ScriptMapId map = named(id); map.valid() && !understood_.contains(id))
      object(map, "it is used as a whole");
  }

  void look_at_call(const Call& call, const spec::Builtin* builtin) {
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
      if (const auto* tuple = ast_.get<Tuple>(parts[0])) return is_of_thread(tuple->elements);
    const auto is_builtin = [&](ExprId part, std::string_view name) {
      const auto* call = ast_.get<Call>(part);
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
  if (checked.config.tracee.pid_namespace)
    return "`tid` is a number in a pid namespace, which other threads are not in";
  if (!uses.is_cleared && checked.config.print.maps_on_exit)
    return "it is printed at the end, as `end` does not clear it";
  if (!kernel.has(kernel::Feature::kTaskStorage)) return "the kernel lacks `task_storage`";
  return "";
}

}  // namespace

void find_thread_maps(Checked& checked, const spec::Registry& registry, const types::Types& types,
                      kernel::Kernel& kernel) {
  ThreadMapFinder finder(checked, registry);
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

// ---- Events in other tasks

namespace {

struct Events {
  std::string_view pattern;
  std::string_view where;
};

constexpr std::string_view kAnyTask = "in interrupts as well, whatever task these interrupt";
constexpr std::string_view kKernelThreads = "in threads of the kernel as well";
constexpr Events kInOtherTasks[] = {
    {"sched_switch", "in the task that leaves the CPU, not in the one that comes"},
    {"sched_wak*", "in the task that wakes another one, or in an interrupt"},
    {"sched_stat_*", "in other tasks than the one that it is about"},
    {"sched_migrate_task", "in other tasks than the one that it is about"},
    {"signal_generate", "in the task that sends the signal"},
    {"block_*", kAnyTask},
    {"net_*", kAnyTask},
    {"netif_*", kAnyTask},
    {"napi_*", kAnyTask},
    {"tcp_*", kAnyTask},
    {"udp_*", kAnyTask},
    {"sock_*", kAnyTask},
    {"inet_*", kAnyTask},
    {"skb_*", kAnyTask},
    {"*_skb", kAnyTask},
    {"irq_*", kAnyTask},
    {"softirq_*", kAnyTask},
    {"timer_*", kAnyTask},
    {"hrtimer_*", kAnyTask},
    {"workqueue_*", kKernelThreads},
    {"writeback_*", kKernelThreads},
    {"mark_victim", "in the task for which there is no memory"},
};

const Events* find_events(const program::Probe& probe) {
  if (!probe.provider.ends_with("tracepoint")) return nullptr;
  const std::string_view name = std::string_view(probe.name).substr(probe.name.rfind(':') + 1);
  for (const Events& each : kInOtherTasks)
    if (glob_match(each.pattern, name)) return &each;
  return nullptr;
}

std::string_view filter_of(const spec::Config& config) {
  if (config.tracee.cgroup) return "--cgroup";
  if (!config.tracee.thread_names.empty()) return "--comm";
  if (config.tracee.only_processes().empty()) return "";
  return config.tracee.follows ? "--follow" : "-p";
}

struct LeftOut {
  const program::Probe* probe = nullptr;
  const Events* events = nullptr;
};

LeftOut find_first(const Checked& checked) {
  if (filter_of(checked.config).empty()) return {};
  for (const Unit& unit : checked.units) {
    if (!unit.context.is_limited_to_pid) continue;
    for (const ProbeId id : unit.probes)
      if (const Events* events = find_events(checked.probes[id])) return {&checked.probes[id], events};
  }
  return {};
}

}  // namespace

std::string events_in_other_tasks(const Checked& checked) {
  const LeftOut found = find_first(checked);
  if (found.probe == nullptr) return "";
  return fmt::format("{} happens {}: {} skips events of the traced process there", found.probe->name,
                     found.events->where, filter_of(checked.config));
}

void warn_of_other_tasks(const Checked& checked, source::Diagnostics& diagnostics) {
  const LeftOut found = find_first(checked);
  if (found.probe != nullptr)
    diagnostics.warning("in-other-tasks", found.probe->span, events_in_other_tasks(checked),
                        "a script that asks `traced` acts in all tasks, and chooses by that");
}

// ---- Maps of what is between two events

std::set<std::string> scratch_maps(const Checked& checked, const types::Types& types) {
  const Ast& ast = checked.ast;
  const auto map_of = [&](ExprId id) {
    const auto* index = ast.get<Index>(id);
    const auto* map = ast.get<Map>(index ? index->base : id);
    return map ? std::string_view(map->name) : std::string_view();
  };
  std::set<std::string_view> short_lived, shown;
  std::set<ExprId> times;
  for (const Unit& unit : checked.units)
    for (const ExprId id : unit.exprs.ids()) {
      const spec::Builtin* builtin = unit.fact(id).builtin;
      if (!builtin) continue;
      if (is_named(builtin, "nsecs")) times.insert(id);
      const auto* call = ast.get<Call>(id);
      if (!call || call->arguments.empty()) continue;
      if (is_named(builtin, "delete")) short_lived.insert(map_of(call->arguments[0]));
      if (is_named(builtin, "print")) shown.insert(map_of(call->arguments[0]));
    }
  for (const StmtId id : ast.stmts.ids())
    if (const auto* assign = std::get_if<Assign>(&ast[id].node); assign && !assign->op && times.contains(assign->value))
      short_lived.insert(map_of(assign->target));
  std::set<std::string> out;
  for (const CheckedMap& map : checked.maps) {
    const bool is_assigned = types[map.key].kind != types::Kind::kVoid && !types::is_aggregation(types[map.value]);
    if (is_assigned && short_lived.contains(map.name) && !shown.contains(map.name)) out.insert(map.name);
  }
  return out;
}

// ---- Capabilities

std::vector<std::string_view> capabilities_of(const Checked& checked, const spec::Registry& registry) {
  std::set<std::string_view> out = {"CAP_BPF", "CAP_PERFMON"};
  for (const program::ProbeId id : checked.probes.ids()) {
    const program::Probe& probe = checked.probes[id];
    const spec::Provider* provider = registry.find_provider(probe.provider);
    if (provider != nullptr) out.insert(provider->capability);
    if (is_in_process_root(probe.target)) out.insert("CAP_SYS_PTRACE");
  }
  for (const Unit& unit : checked.units)
    for (const ExprId id : unit.exprs.ids())
      if (const spec::Builtin* builtin = unit.fact(id).builtin) out.insert(builtin->capability);
  out.erase("");
  return {out.begin(), out.end()};
}

// ---- Hints

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates, std::string_view prefix) {
  const std::vector<std::string_view> views(candidates.begin(), candidates.end());
  const std::string best = nearest(word, views);
  return best.empty() ? std::string() : "did you mean `" + std::string(prefix) + best + "`?";
}

// ---- Walks over expressions

namespace {

struct Walker {
  const Ast& ast;
  const ExprVisitor& visit;
  const TypeNameVisitor& visit_type;

  void expr(ExprId id) {
    if (!id) return;
    visit(id);
    std::visit([this](const auto& node) { children(node); }, ast[id].node);
  }
  void exprs(const std::vector<ExprId>& ids) {
    for (const ExprId id : ids) expr(id);
  }
  void stmt(StmtId id) {
    std::visit([this](const auto& node) { children(node); }, ast[id].node);
  }

  template <class Leaf>
  void children(const Leaf&) {}
  void children(const Index& n) { expr(n.base), exprs(n.indices); }
  void children(const Call& n) { exprs(n.arguments); }
  void children(const TypeExpr& n) { type_name(n.type); }
  void children(const Sizeof& n) { expr(n.operand); }
  void children(const Offsetof& n) { expr(n.operand); }
  void children(const Typeinfo& n) { expr(n.operand); }
  void children(const Comptime& n) { expr(n.operand); }
  void children(const Unary& n) { expr(n.operand); }
  void children(const Binary& n) { expr(n.left), expr(n.right); }
  void children(const Ternary& n) { expr(n.condition), expr(n.then_value), expr(n.else_value); }
  void children(const Access& n) { expr(n.base); }
  void children(const TupleAccess& n) { expr(n.base); }
  void children(const Cast& n) { type_name(n.type), expr(n.operand); }
  void children(const Tuple& n) { exprs(n.elements); }
  void children(const Record& n) { exprs(n.values); }
  void children(const Block& n) {
    for (const StmtId id : n.statements) stmt(id);
    expr(n.value);
  }
  void children(const If& n) { expr(n.condition), expr(n.then_branch), expr(n.else_branch); }

  void children(const ExprStmt& n) { expr(n.value); }
  void children(const Assign& n) { expr(n.target), expr(n.value); }
  void children(const Let& n) { type_name(n.type), expr(n.value); }
  void children(const Discard& n) { expr(n.value); }
  void children(const While& n) { expr(n.condition), expr(n.body); }
  void children(const Unroll& n) { expr(n.count), expr(n.body); }
  void children(const ForMap& n) { expr(n.map), expr(n.body); }
  void children(const ForRange& n) { expr(n.begin), expr(n.end), expr(n.body); }
  void children(const Return& n) { expr(n.value); }

  void type_name(TypeNameId id) {
    if (!id) return;
    if (visit_type) visit_type(id);
    expr(ast[id].typeof_expr);
    type_name(ast[id].typeof_type);
    for (const TypeNameId element : ast[id].elements) type_name(element);
  }
};

}  // namespace

void walk(const Ast& ast, ExprId root, const ExprVisitor& visit, const TypeNameVisitor& visit_type) {
  Walker{ast, visit, visit_type}.expr(root);
}
void walk(const Ast& ast, StmtId root, const ExprVisitor& visit) { Walker{ast, visit, {}}.stmt(root); }

}  // namespace espy::check
