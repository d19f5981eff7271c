// Each argument of a probe becomes a variable, so that `skb->len` of a target is `$skb->len` in the script. What the
// user typed is parsed, an expression at a time; names of files are only compared with it.
#include "trace/trace_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/strings.h"
#include "check/walk.h"
#include "symbols/demangle.h"
#include "syntax/build.h"
#include "syntax/parser.h"

namespace espy::trace {

namespace {

using syntax::BinaryOp;
using syntax::Build;
using syntax::ExprId;
using syntax::StmtId;
using syntax::UnaryOp;

using Values = std::vector<ExprId>;
using Statements = std::vector<StmtId>;

constexpr uint32_t kMaxStructBytes = 12 * 1024;  // of a struct that is shown behind a pointer
constexpr const char* kResult = "retval";        // also the variable of it, with `$`

// A format that prints just the text.
std::string format_of(std::string_view text) { return fmt::format("{}", fmt::join(split(text, '%'), "%%")); }

void append(Statements& to, const Statements& more) { to.insert(to.end(), more.begin(), more.end()); }

// An expression in a source that the user typed.
struct TypedValue {
  source::SourceId source;
  TraceItem item;
};

class TraceScriptWriter {
 public:
  TraceScriptWriter(run::Environment& environment, const TraceOptions& options) : e_(environment), options_(options) {}

  // `groups`: see find_trace_probes.
  Status add(const TraceTarget& target, const std::vector<TraceProbes>& groups) {
    TraceScript::Part part;
    target_ = e_.sources.add("target", target.text);
    part.typed.push_back(target_);
    build_.span = {target_, 0, static_cast<uint32_t>(target.place.size())};
    if (is_root()) {
      TRY_STATUS(check_root(target, groups));
      for (const std::string& condition : options_.when) {
        part.typed.push_back(e_.sources.add("--when", condition));
        when_.push_back({part.typed.back(), {condition, 0}});
      }
    }
    for (const TraceProbes& probes : groups) {
      note_hidden(target, probes);
      for (const TraceArgument& argument : probes.arguments)
        if (std::ranges::find(part.arguments, argument.name) == part.arguments.end())
          part.arguments.push_back(argument.name);
    }
    arguments_ = part.arguments;
    note_unsafe(target, groups);
    check_syntax(target);
    if (!target.results.empty() && std::ranges::none_of(groups, has_result))
      return fail(
          fmt::format("`{}` compares a result, and what it matches has none that probes can read", target.text));
    const size_t before = script_.ast.actions.size();
    for (const TraceProbes& probes : groups)
      if (has_all_named(target, probes, part.arguments)) TRY_STATUS(add_group(target, probes));
    if (is_root()) root_function_ = groups.front().name.empty() ? "" : groups.front().function;
    const bool is_unsafe = std::ranges::any_of(groups, [](const TraceProbes& each) { return !each.unsafe.empty(); });
    if (script_.ast.actions.size() == before && is_unsafe) return fail_unsafe(target);
    if (script_.ast.actions.size() == before)
      return fail(fmt::format("`{}` matches no function that has all that it names", target.text));
    parts_.push_back(std::move(part));
    order_.push_back(in_order(groups.front().name));
    ++count_;
    return {};
  }

  TraceScript finish() {
    add_config();
    if (options_.are_trees()) {
      const std::vector<std::string> exit = {"sched_process_exit"};
      add_action({.points = {build_.attach_point("rawtracepoint", exit)}, .typed = {}, .plain = {}},
                 {run("span_drop", {})});
    }
    return {std::move(script_), std::move(parts_), std::move(left_out_)};
  }

 private:
  static bool has_result(const TraceProbes& probes) { return probes.result.is_there(); }

  void note_hidden(const TraceTarget& target, const TraceProbes& probes) {
    for (const std::string& name : probes.hidden)
      left_out_.push_back(
          name.empty() ? fmt::format("{}: an argument without a name is not shown", target.text)
                       : fmt::format("{}: of the arguments named `{}` only the first is shown", target.text, name));
    if (!probes.why_no_result.empty())
      left_out_.push_back(fmt::format("{}: {} is not shown: {}", target.text,
                                      probes.name.empty() ? "the result of some functions" : "the result",
                                      probes.why_no_result));
  }

  // Of functions whose returns are not followed.
  void note_unsafe(const TraceTarget& target, const std::vector<TraceProbes>& groups) {
    size_t count = 0;
    std::string first;
    for (const TraceProbes& probes : groups) {
      if (count == 0 && !probes.unsafe.empty()) first = probes.unsafe.front();
      count += probes.unsafe.size();
    }
    if (count == 0) return;
    first = symbols::demangle(first, symbols::DemangleStyle::kName);
    left_out_.push_back(fmt::format(
        "{}: {}; {} follows {}", target.text,
        count == 1 ? fmt::format("the return of `{}` is not followed: an exception that passes it would end "
                                 "the program",
                                 first)
                   : fmt::format("the returns of {} functions, as of `{}`, are not followed: an exception that "
                                 "passes them would end the program",
                                 count, first),
        how_to_follow(target), count == 1 ? "it" : "them"));
  }

  static tl::unexpected<Error> fail_unsafe(const TraceTarget& target) {
    return fail(fmt::format("`{}`: an exception that passes a function whose return is followed would end the program",
                            target.text),
                0, fmt::format("{} follows it nevertheless", how_to_follow(target)));
  }

  // What to type for the returns of a target.
  static std::string how_to_follow(const TraceTarget& target) {
    std::string list;
    for (const auto* items : {&target.filters, &target.values})
      for (const TraceItem& item : *items) list += item.text + ", ";
    return fmt::format("'{}({}return)'", target.place, list);
  }

  // The name as span_order has it.
  static std::string in_order(std::string_view name) {
    std::string out;
    for (const char c : name) {
      if (c == ' ' || c == '\\') out += '\\';
      out += c;
    }
    return out;
  }

  // ---- What the user typed

  // The source of the parser has the text at its place, and another word of the same length for `return`. The spans of
  // the nodes, and of the diagnostics, are those in what was typed.
  ExprId parse(const TypedValue& typed, syntax::Ast& ast, source::Diagnostics& diagnostics) {
    const auto [copy, is_new] = copies_.try_emplace({typed.source.index, typed.item.offset});
    if (is_new) copy->second = e_.sources.add("", std::string(typed.item.offset, ' ') + with_result(typed.item.text));
    const size_t first = ast.exprs.size(), first_type = ast.type_names.size(), first_stmt = ast.stmts.size();
    source::Diagnostics found;
    const ExprId out = syntax::parse_expression(e_.sources, copy->second, ast, found);
    const auto move = [&](source::Span& span) { span.source = typed.source; };
    for (auto i = static_cast<uint32_t>(first); i < ast.exprs.size(); ++i) {
      syntax::Expr& each = ast.exprs[ExprId{i}];
      move(each.span);
      if (auto* call = std::get_if<syntax::Call>(&each.node)) move(call->name_span);
      if (auto* access = std::get_if<syntax::Access>(&each.node)) move(access->name_span);
      if (auto* binary = std::get_if<syntax::Binary>(&each.node)) move(binary->op_span);
      if (auto* offset = std::get_if<syntax::Offsetof>(&each.node)) move(offset->path_span);
    }
    for (auto i = static_cast<uint32_t>(first_type); i < ast.type_names.size(); ++i)
      move(ast.type_names[syntax::TypeNameId{i}].span);
    for (auto i = static_cast<uint32_t>(first_stmt); i < ast.stmts.size(); ++i) move(ast.stmts[StmtId{i}].span);
    for (source::Diagnostic each : found.all()) {
      move(each.span);
      each.notes.clear();
      diagnostics.add(std::move(each));
    }
    return out;
  }

  // Reports what is wrong with the syntax of the target's items.
  void check_syntax(const TraceTarget& target) {
    syntax::Ast ignored;
    for (const auto* items : {&target.filters, &target.values, &target.results})
      for (const TraceItem& item : *items) parse({target_, item}, ignored, e_.diagnostics);
    if (is_root())
      for (const TypedValue& condition : when_) parse(condition, ignored, e_.diagnostics);
  }

  // Whether an expression names an argument.
  bool is_named(const TypedValue& typed, const std::string& name) {
    syntax::Ast ast;
    source::Diagnostics ignored;
    bool out = false;
    check::walk(ast, parse(typed, ast, ignored), [&](ExprId id) {
      const auto* word = ast.get<syntax::Name>(id);
      out |= word != nullptr && word->name == name;
    });
    return out;
  }

  // Adds an expression to the script, with the variables of `names` in place of their names.
  ExprId expression(const TypedValue& typed, const std::vector<std::string>& names) {
    syntax::Ast& ast = script_.ast;
    source::Diagnostics reported;
    const ExprId out = parse(typed, ast, reported);
    std::vector<ExprId> found;
    check::walk(ast, out, [&](ExprId id) {
      const auto* word = ast.get<syntax::Name>(id);
      if (word != nullptr && std::ranges::find(names, word->name) != names.end()) found.push_back(id);
    });
    for (const ExprId id : found) {
      std::string name = "$" + ast.get<syntax::Name>(id)->name;
      ast.exprs[id].node = syntax::Variable{std::move(name)};
    }
    return out;
  }

  // Functions of a wildcard that lack an argument or a result which the target names, and others have, are left out.
  bool has_all_named(const TraceTarget& target, const TraceProbes& probes, const std::vector<std::string>& known) {
    const auto has = [&](const std::string& name) {
      return std::ranges::find(probes.arguments, name, &TraceArgument::name) != probes.arguments.end();
    };
    const auto names = [&](const std::vector<TraceItem>& items, const std::string& name) {
      return std::ranges::any_of(items, [&](const TraceItem& item) { return is_named({target_, item}, name); });
    };
    if (!target.results.empty() && !has_result(probes)) return false;
    return std::ranges::all_of(known, [&](const std::string& name) {
      return has(name) || (!names(target.values, name) && !names(target.filters, name));
    });
  }

  // ---- Pieces of the script

  ExprId variable(const std::string& name) const { return build_.variable("$" + name); }
  ExprId of_thread(std::string map) const { return build_.index(build_.map(std::move(map)), {build_.name("tid")}); }
  StmtId run(std::string function, Values arguments) const {
    return build_.run(build_.call(std::move(function), std::move(arguments)));
  }
  StmtId forget(std::string map) const { return run("delete", {build_.map(std::move(map)), build_.name("tid")}); }

  // The type of a cast: a number, or a pointer to what has a name.
  syntax::TypeName type_name(types::TypeId id) const {
    const types::Type& type = e_.types[id];
    syntax::TypeName out;
    if (type.kind == types::Kind::kPointer) {
      out = type_name(type.element);
      out.suffixes.push_back({.is_pointer = true, .count = {}});
    } else if (type.kind == types::Kind::kStruct || type.kind == types::Kind::kEnum) {
      out.tag = type.kind == types::Kind::kEnum ? syntax::TypeName::Tag::kEnum
                : type.is_union                 ? syntax::TypeName::Tag::kUnion
                                                : syntax::TypeName::Tag::kStruct;
      out.name = type.name;
    } else {
      out.name = types::to_string(e_.types, id);
    }
    return out;
  }

  ExprId read(const TraceValue& value) const {
    const ExprId word = build_.name(value.word);
    const ExprId out = value.member.empty() ? word : build_.member(word, value.member);
    if (!value.cast) return out;
    const types::Type& type = e_.types[value.cast];
    syntax::TypeName name = type_name(value.cast);
    if (type.char_like && !type.is_signed) name.name = "uint8";
    return name.name == "uint64" && name.suffixes.empty() ? out : build_.cast(std::move(name), out);
  }

  // The variables that are read.
  std::set<std::string> variables_of(const Values& values, const Statements& statements) const {
    std::set<std::string> out;
    const auto visit = [&](ExprId id) {
      if (const auto* found = script_.ast.get<syntax::Variable>(id)) out.insert(found->name);
    };
    for (const ExprId each : values) check::walk(script_.ast, each, visit);
    for (const StmtId each : statements) check::walk(script_.ast, each, visit);
    return out;
  }

  static std::vector<std::string> names_of(const TraceProbes& probes) {
    std::vector<std::string> out;
    for (const TraceArgument& argument : probes.arguments) out.push_back(argument.name);
    return out;
  }

  // Requires one condition at least.
  ExprId all_hold(const Values& conditions) const {
    ExprId out = conditions.front();
    for (size_t i = 1; i < conditions.size(); ++i) out = build_.binary(BinaryOp::kLogicalAnd, out, conditions[i]);
    return out;
  }

  Statements only_if(const Values& conditions, Statements then) const {
    if (conditions.empty()) return then;
    return {build_.when(all_hold(conditions), std::move(then))};
  }

  void add_action(const TracePlace& place, Statements body) {
    bool reads_types = false;  // what debug information tells
    for (const StmtId each : body)
      check::walk(script_.ast, each, [&](ExprId id) {
        const auto* word = script_.ast.get<syntax::Name>(id);
        reads_types |= word != nullptr && (word->name == "args" || word->name == kResult);
      });
    std::vector<syntax::AttachPoint> points = place.points;
    for (syntax::AttachPoint& point : points) {
      point.span = point.provider.span = build_.span;
      for (syntax::AttachPart& part : point.parts) part.span = build_.span;
    }
    build_.action(std::move(points), std::move(body));
    script_.probes.push_back(reads_types ? place.typed : place.plain);
  }

  // ---- Trees: the first target is the root

  bool is_root() const { return options_.are_trees() && count_ == 0; }

  Status check_root(const TraceTarget& target, const std::vector<TraceProbes>& groups) const {
    const auto has_return = [](const TraceProbes& probes) { return !probes.leave.points.empty(); };
    if (std::ranges::none_of(groups, has_return) && !groups.front().unsafe.empty()) return fail_unsafe(target);
    if (std::ranges::none_of(groups, has_return))
      return fail(fmt::format("`{}` has no return, where its tree would be shown", target.text), 0,
                  "the first target is the root, a function; the others are shown within its calls");
    if (std::ranges::any_of(options_.when, names_return) && std::ranges::none_of(groups, has_result))
      return groups.front().name.empty()
                 ? fail(fmt::format("`{}`: what the functions of a wildcard return has no type", target.text), 0,
                        "name one function as the first target, the root")
                 : fail(fmt::format("`{}` returns nothing that --when could compare", target.text));
    return {};
  }

  // Functions of a wildcard that lack what the conditions need are shown in the trees of others.
  bool is_root(const TraceProbes& probes) {
    if (!is_root() || probes.leave.points.empty()) return false;
    return std::ranges::all_of(when_, [&](const TypedValue& condition) {
      const bool lacks_result = names_return(condition.item.text) && !has_result(probes);
      return !lacks_result && std::ranges::all_of(arguments_, [&](const std::string& name) {
        return std::ranges::find(probes.arguments, name, &TraceArgument::name) != probes.arguments.end() ||
               !is_named(condition, name);
      });
    });
  }

  // What conditions of --when can name: the result, and the arguments that have another name.
  static std::vector<std::string> names_at_return(const TraceProbes& probes) {
    std::vector<std::string> out = names_of(probes);
    std::erase(out, kResult);
    out.emplace_back(kResult);
    return out;
  }

  // The conditions on arguments are known at the entry, and the others at the return.
  Values root_conditions(const TraceTarget& target, const TraceProbes& probes, bool at_return) {
    Values out;
    if (!at_return)
      for (const TraceItem& filter : target.filters) out.push_back(expression({target_, filter}, names_of(probes)));
    for (const TypedValue& condition : when_)
      if (names_return(condition.item.text) == at_return) out.push_back(expression(condition, names_at_return(probes)));
    if (at_return && options_.slower_than_ns != 0) {
      const ExprId passed = build_.binary(BinaryOp::kSubtract, build_.name("nsecs"), of_thread("@root_begin"));
      out.push_back(build_.binary(BinaryOp::kGreater, passed, build_.number(options_.slower_than_ns)));
    }
    return out;
  }

  // The names of arguments that the conditions at the return compare.
  std::vector<std::string> kept_arguments(const TraceProbes& probes) {
    std::vector<std::string> out;
    for (const std::string& name : names_of(probes))
      if (name != kResult && std::ranges::any_of(when_, [&](const TypedValue& condition) {
            return names_return(condition.item.text) && is_named(condition, name);
          }))
        out.push_back(name);
    return out;
  }

  static std::string kept_in(const std::string& name) { return "@root_of_" + name; }

  Statements hold(const TraceTarget& target, const TraceProbes& probes) {
    Statements keep;
    for (const std::string& name : kept_arguments(probes))
      keep.push_back(build_.assign(of_thread(kept_in(name)), variable(name)));
    if (options_.slower_than_ns != 0) keep.push_back(build_.assign(of_thread("@root_begin"), build_.name("nsecs")));
    const Values conditions = root_conditions(target, probes, false);
    const ExprId call = build_.call("span_hold", conditions.empty() ? Values() : Values{all_hold(conditions)});
    if (keep.empty()) return {build_.run(call)};
    return {build_.when(call, std::move(keep))};
  }

  Statements release(const TraceTarget& target, const TraceProbes& probes) {
    Statements out, forgets;
    for (const std::string& name : kept_arguments(probes)) {
      out.push_back(build_.assign(variable(name), of_thread(kept_in(name))));
      forgets.push_back(forget(kept_in(name)));
    }
    if (options_.slower_than_ns != 0) forgets.push_back(forget("@root_begin"));
    const Values conditions = root_conditions(target, probes, true);
    const ExprId call = build_.call("span_release", {conditions.empty() ? build_.truth(true) : all_hold(conditions)});
    out.push_back(forgets.empty() ? build_.run(call) : build_.when(call, std::move(forgets)));
    return out;
  }

  // The root is traced once, also where a wildcard of another target matches it.
  bool may_be_root(const TraceProbes& probes) const {
    return options_.are_trees() && count_ > 0 && !root_function_.empty() && probes.name.empty();
  }
  ExprId is_not_root() const {
    return build_.binary(BinaryOp::kNotEqual, build_.name("func"), build_.text(root_function_));
  }

  // ---- Actions

  Status add_group(const TraceTarget& target, const TraceProbes& probes) {
    const bool has_list = !target.values.empty() || target.wants_return;
    // Only the entry, only the return, or both; a graph and an order need both.
    const bool is_call = !probes.leave.points.empty();
    const bool needs_both =
        options_.is_graph || options_.is_ordered || options_.slower_than_ns != 0 || options_.are_trees();
    if (!probes.unsafe.empty() && (options_.is_ordered || (options_.slower_than_ns != 0 && !options_.are_trees())))
      return {};
    const bool wants_entry = !is_call || needs_both || !has_list || !target.values.empty();
    const bool wants_return = is_call && (needs_both || !has_list || target.wants_return);
    is_pair_ = wants_entry && wants_return;
    if (!target.results.empty() && (is_pair_ || !is_call))
      return fail(fmt::format("`{}`: what is returned is not known yet when a call begins", target.text), 0,
                  fmt::format("--when '{}' shows the calls of the first target for which this holds; alone, the "
                              "comparison shows the returns",
                              target.results.front().text));
    const bool has_filters = !target.filters.empty() && !is_root(probes);  // the root's choose its trees
    const bool is_chosen = wants_return && (has_filters || (options_.is_ordered && count_ > 0));
    counts_calls_ |= is_chosen || options_.is_ordered;
    add_entry(target, probes, wants_entry, is_chosen);
    if (wants_return) add_return(target, probes, is_chosen);
    return {};
  }

  void add_config() {
    build_.config("span_layout", build_.text(options_.is_graph ? "graph" : "columns"));
    build_.config("print_layout", build_.text("c"));
    build_.config("print_zeros", build_.truth(false));
    build_.config("print_addresses", build_.truth(true));
    build_.config("print_maps_on_exit", build_.truth(false));
    const auto set = [&](const char* name, uint64_t value) {
      if (value != 0) build_.config(name, build_.number(value));
    };
    set("span_depth", options_.depth);
    if (!options_.are_trees()) set("span_slower_than", options_.slower_than_ns);
    set("span_before", options_.before);
    set("span_count", options_.events);
    if (counts_calls_) build_.config("returns_first", build_.truth(true));
    if (options_.is_ordered) build_.config("span_order", build_.text(join(order_, " ")));
  }

  void add_entry(const TraceTarget& target, const TraceProbes& probes, bool wants_entry, bool is_chosen) {
    const std::vector<std::string> names = names_of(probes);
    Values conditions;
    if (options_.is_ordered && count_ > 0)
      conditions.push_back(build_.binary(BinaryOp::kGreater, open_of(count_ - 1), build_.number(0)));
    if (!is_root(probes))
      for (const TraceItem& filter : target.filters) conditions.push_back(expression({target_, filter}, names));

    Statements emit;
    if (options_.is_ordered) emit.push_back(build_.run(build_.unary(UnaryOp::kPostIncrement, open_of(count_))));
    const auto choose = [&](bool is_now) {
      const Values key = {build_.name("tid"), variable(depth_name())};
      return build_.assign(build_.index(build_.map(numbered("@chosen")), key), build_.truth(is_now));
    };
    if (is_chosen) emit.push_back(choose(true));
    if (is_root(probes)) append(emit, hold(target, probes));
    if (wants_entry) {
      Values shown = name_of(probes);
      const Values values = target.has_list && !shows_all(target) ? chosen(target, names) : all_of(probes);
      shown.insert(shown.end(), values.begin(), values.end());
      emit.push_back(run(is_pair_ ? "span_enter" : "instant", std::move(shown)));
    }
    if (emit.empty()) return;

    Statements body;
    const std::set<std::string> used = variables_of(conditions, emit);
    for (const TraceArgument& argument : probes.arguments)
      if (used.contains("$" + argument.name))
        body.push_back(build_.assign(variable(argument.name), read(argument.value)));
    if (is_chosen && probes.has_frames) {
      // An exception leaves calls without a return, whose frames others have later.
      body.push_back(build_.assign(variable(depth_name()), stack_pointer()));
      body.push_back(choose(false));
    } else if (is_chosen) {
      const std::string depths = numbered("@depth");
      body.push_back(build_.run(build_.unary(UnaryOp::kPostIncrement, of_thread(depths))));
      body.push_back(build_.assign(variable(depth_name()), of_thread(depths)));
    }
    if (may_be_root(probes)) conditions.push_back(is_not_root());
    append(body, only_if(conditions, std::move(emit)));
    add_action(probes.entry, std::move(body));
  }

  void add_return(const TraceTarget& target, const TraceProbes& probes, bool is_chosen) {
    const Statements release = is_root(probes) ? this->release(target, probes) : Statements();
    const bool is_compared = variables_of({}, release).contains("$retval");
    const bool shows_result =
        has_result(probes) && (!target.has_list || shows_all(target) || target.wants_return || is_compared);
    Values shown = is_pair_ ? Values{build_.text("")} : name_of(probes);
    if (shows_result) shown.push_back(build_.record(kResult, variable(kResult)));
    Statements emit;
    if (options_.is_ordered) emit.push_back(count_down(numbered("@open"), open_of(count_)));
    Values conditions;
    for (const TraceItem& item : target.results) conditions.push_back(expression({target_, item}, {kResult}));
    if (may_be_root(probes)) conditions.push_back(is_not_root());
    append(emit, only_if(conditions, {run(is_pair_ ? "span_exit" : "instant", std::move(shown))}));
    append(emit, release);
    Statements body;
    if (shows_result || is_compared) body.push_back(build_.assign(variable(kResult), read(probes.result)));
    append(body, is_chosen ? if_chosen(probes, emit) : std::move(emit));
    add_action(probes.leave, std::move(body));
  }

  ExprId stack_pointer() const {
    const kernel::Arch& arch = e_.kernel->arch();
    return build_.call("reg", {build_.text(kernel::register_name(arch, arch.stack_pointer_offset))});
  }

  // For the returns of the calls that were chosen when they began. A call is known by its frame or, where that is not
  // known, by its depth.
  Statements if_chosen(const TraceProbes& probes, const Statements& emit) const {
    const auto key = [&] { return build_.tuple({build_.name("tid"), variable(depth_name())}); };
    const auto calls = [&] { return build_.map(numbered("@chosen")); };
    Statements then = {run("delete", {calls(), key()})};
    if (probes.has_frames) {
      const std::string is_chosen = unused_name("is_chosen");
      then.insert(then.begin(), build_.assign(variable(is_chosen),
                                              build_.index(calls(), {build_.name("tid"), variable(depth_name())})));
      then.push_back(build_.when(variable(is_chosen), emit));
      return {build_.assign(variable(depth_name()), stack_pointer()),
              build_.when(build_.call("has_key", {calls(), key()}), std::move(then))};
    }
    append(then, emit);
    return {build_.assign(variable(depth_name()), of_thread(numbered("@depth"))),
            build_.when(build_.call("has_key", {calls(), key()}), std::move(then)),
            count_down(numbered("@depth"), variable(depth_name()))};
  }

  // Returns the statement that decrements the count of a thread in `map`, and deletes the key at 0. `value` is the
  // count before. A return without a counted entry changes nothing.
  StmtId count_down(const std::string& map, ExprId value) const {
    return build_.when(build_.binary(BinaryOp::kLessEqual, value, build_.number(1)), {forget(map)},
                       {build_.run(build_.unary(UnaryOp::kPostDecrement, of_thread(map)))});
  }
  std::string numbered(std::string_view map) const { return fmt::format("{}{}", map, count_); }
  ExprId open_of(size_t target) const { return of_thread(fmt::format("@open{}", target)); }

  // The name of a variable that no argument has.
  std::string unused_name(std::string out) const {
    while (std::ranges::find(arguments_, out) != arguments_.end()) out += '_';
    return out;
  }
  std::string depth_name() const { return unused_name("depth"); }

  // Only filters: everything is shown.
  static bool shows_all(const TraceTarget& target) {
    return target.values.empty() && !target.wants_return && !target.filters.empty();
  }

  Values chosen(const TraceTarget& target, const std::vector<std::string>& names) {
    Values out;
    for (const TraceItem& value : target.values) out.push_back(expression({target_, value}, names));
    return out;
  }

  // Every argument, and what pointers to structs lead to; a graph has a line for all.
  Values all_of(const TraceProbes& probes) {
    Values out;
    for (const TraceArgument& argument : probes.arguments) {
      if (!argument.is_readable) continue;
      if (!argument.type || e_.types[argument.type].kind != types::Kind::kPointer) {
        out.push_back(variable(argument.name));
        continue;
      }
      const types::Type pointer = e_.types[argument.type];
      e_.kernel->complete(e_.types, pointer.element);
      const types::Type& element = e_.types[pointer.element];
      const bool is_bytes = element.kind == types::Kind::kInt && element.size_bytes == 1;
      out.push_back(is_bytes && !is_string(probes, argument, element)
                        ? build_.record(argument.name, build_.cast(void_pointer(), variable(argument.name)))
                        : variable(argument.name));
      const bool is_struct = element.kind == types::Kind::kStruct && element.complete && element.size_bytes > 0;
      if (is_struct && element.size_bytes <= kMaxStructBytes && !options_.is_graph)
        out.push_back(build_.unary(UnaryOp::kDereference, variable(argument.name)));
    }
    return out;
  }

  static syntax::TypeName void_pointer() {
    syntax::TypeName out;
    out.name = "void";
    out.suffixes.push_back({.is_pointer = true, .count = {}});
    return out;
  }

  // Bytes that are not `char` need not be text. A function of the kernel that takes `char *` may write there; `const
  // char *` is text, if anything.
  static bool is_string(const TraceProbes& probes, const TraceArgument& argument, const types::Type& element) {
    return element.char_like &&
           (probes.prototype.empty() || probes.prototype.find("const char *" + argument.name) != std::string::npos);
  }

  // The format of what is shown, and its values.
  Values name_of(const TraceProbes& probes) const {
    if (probes.name.empty()) return {build_.text("%s"), build_.name("func")};
    return {build_.text(format_of(probes.name))};
  }

  run::Environment& e_;
  const TraceOptions& options_;
  run::BuiltScript script_;
  Build build_{script_.ast, {}};                                    // with the place of the current target
  bool counts_calls_ = false;                                       // in progress, by thread
  bool is_pair_ = false;                                            // entry and return of the current target are shown
  size_t count_ = 0;                                                // of targets
  source::SourceId target_;                                         // the current one
  std::vector<TypedValue> when_;                                    // TraceOptions::when
  std::string root_function_;                                       // `func` of the root; empty: of a wildcard
  std::vector<std::string> arguments_;                              // of the current target's functions
  std::map<std::pair<uint32_t, size_t>, source::SourceId> copies_;  // for the parser, by source and offset
  std::vector<TraceScript::Part> parts_;
  std::vector<std::string> order_;
  std::vector<std::string> left_out_;
};

Status check_options(const TraceOptions& options) {
  if (options.before != 0 && !options.are_trees())
    return fail("--before shows the calls before a tree, which --when selects", 0,
                "--graph --when 'return < 0' --before 5, or --graph --slower-than 1ms --before 5");
  if (options.are_trees() && options.is_ordered)
    return fail("--stack-order shows calls by their order, --when and --graph --slower-than by their root", 0,
                "use one of them");
  return {};
}

}  // namespace

Result<TraceScript> write_trace_script(std::span<const std::string> targets, const TraceOptions& options,
                                       run::Environment& environment) {
  TRY_STATUS(check_options(options));
  TraceScriptWriter writer(environment, options);
  for (const std::string& text : targets) {
    const TraceTarget target = TRY(parse_trace_target(text));
    const bool is_root = &text == targets.data();
    const bool names_return = target.wants_return || !target.results.empty() ||
                              (is_root && std::ranges::any_of(options.when, trace::names_return));
    TRY_STATUS(writer.add(target, TRY(find_trace_probes(target, names_return, environment))));
  }
  return writer.finish();
}

namespace {

std::string argument_hint(const TraceScript::Part& part, std::string_view wrong) {
  const std::vector<std::string_view> known(part.arguments.begin(), part.arguments.end());
  const std::string near = nearest(wrong, known);
  if (!near.empty()) return fmt::format("did you mean `{}`?", near);
  if (known.empty()) return "the names of its arguments are not known";
  return fmt::format("its arguments are {}", join(part.arguments, ", "));
}

}  // namespace

source::Diagnostic at_target(source::Diagnostic diagnostic, const TraceScript& script, const source::Sources& sources) {
  for (const TraceScript::Part& part : script.parts) {
    if (std::ranges::find(part.typed, diagnostic.span.source) == part.typed.end()) continue;
    diagnostic.notes.clear();  // they are about other places of the script
    if (diagnostic.id == "unknown-name") diagnostic.hint = argument_hint(part, sources.text(diagnostic.span));
    break;
  }
  return diagnostic;
}

}  // namespace espy::trace
