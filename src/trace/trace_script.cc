#include "trace/trace_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/strings.h"
#include "syntax/build.h"

namespace espy::trace {

namespace {

using syntax::BinaryOp;
using syntax::Build;
using syntax::ExprId;
using syntax::StmtId;
using syntax::UnaryOp;

constexpr uint32_t kMaxStructBytes = 12 * 1024;  // of a struct that is shown behind a pointer

// A format that prints just the text.
std::string format_of(std::string_view text) { return fmt::format("{}", fmt::join(split(text, '%'), "%%")); }

class TraceScriptWriter : TargetScript {
 public:
  TraceScriptWriter(run::Environment& environment, const TraceOptions& options)
      : TargetScript(environment), options_(options) {}

  // `groups`: see find_trace_probes.
  Status add(const TraceTarget& target, const std::vector<TraceProbes>& groups) {
    TraceScript::Part part = begin_target(target);
    if (is_root()) {
      TRY_STATUS(check_root(target, groups));
      for (const std::string& condition : options_.when) {
        part.typed.push_back(e_.sources.add("--when", condition));
        when_.push_back({part.typed.back(), {condition, 0}});
      }
    }
    for (const TraceProbes& probes : groups) note_hidden(target, probes);
    take_arguments(groups, part);
    note_unsafe(target, groups);
    check_items(target);
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
  // The name as span_order has it.
  static std::string in_order(std::string_view name) {
    std::string out;
    for (const char c : name) {
      if (c == ' ' || c == '\\') out += '\\';
      out += c;
    }
    return out;
  }

  // Reports what is wrong with the syntax of the target's items.
  void check_items(const TraceTarget& target) {
    for (const auto* items : {&target.filters, &target.values, &target.results})
      for (const TraceItem& item : *items) check_syntax({target_, item});
    if (is_root())
      for (const TypedValue& condition : when_) check_syntax(condition);
  }

  // ---- Pieces of the script

  ExprId of_thread(std::string map) const { return build_.index(build_.map(std::move(map)), {build_.name("tid")}); }
  StmtId forget(std::string map) const { return run("delete", {build_.map(std::move(map)), build_.name("tid")}); }

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
      return fail(fmt::format("`{}`: the return value is not known when a call begins", target.text), 0,
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
      const Values values = target.has_list && !shows_all(target) ? chosen(target, probes) : all_of(probes);
      shown.insert(shown.end(), values.begin(), values.end());
      emit.push_back(run(is_pair_ ? "span_enter" : "instant", std::move(shown)));
    }
    if (emit.empty()) return;

    Statements body;
    read_arguments(probes, conditions, emit, body);
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

  std::string depth_name() const { return unused_name("depth"); }

  // Only filters: everything is shown.
  static bool shows_all(const TraceTarget& target) {
    return target.values.empty() && !target.wants_return && !target.filters.empty();
  }

  // The listed values, and what pointers to structs among them lead to.
  Values chosen(const TraceTarget& target, const TraceProbes& probes) {
    Values out;
    const std::vector<std::string> names = names_of(probes);
    for (const TraceItem& value : target.values) {
      out.push_back(expression({target_, value}, names));
      const bool is_listed =
          std::ranges::find(target.values, "*" + value.text, &TraceItem::text) != target.values.end();
      if (!is_listed && leads_to_struct(type_of(out.back(), probes)))
        out.push_back(build_.unary(UnaryOp::kDereference, expression({target_, value}, names)));
    }
    return out;
  }

  // Whether what the pointer leads to is shown, too; a graph has a line for all.
  bool leads_to_struct(types::TypeId id) {
    if (!id || e_.types[id].kind != types::Kind::kPointer || options_.is_graph || options_.shows_addresses)
      return false;
    const types::TypeId pointee = e_.types[id].element;
    e_.kernel->complete(e_.types, pointee);
    const types::Type& element = e_.types[pointee];
    return element.kind == types::Kind::kStruct && element.complete && element.size_bytes > 0 &&
           element.size_bytes <= kMaxStructBytes;
  }

  // The type of an argument, or of what members and elements lead to from there; invalid if it is another expression.
  types::TypeId type_of(ExprId id, const TraceProbes& probes) {
    const syntax::Ast& ast = script_.ast;
    if (const auto* word = ast.get<syntax::Variable>(id)) {
      const auto found =
          std::ranges::find(probes.arguments, word->name.substr(1), [](const auto& each) { return each.name; });
      return found == probes.arguments.end() ? types::TypeId() : found->type;
    }
    const auto pointee = [&](types::TypeId of) {
      const bool leads_on =
          of && (e_.types[of].kind == types::Kind::kPointer || e_.types[of].kind == types::Kind::kArray);
      return leads_on ? e_.types[of].element : types::TypeId();
    };
    if (const auto* access = ast.get<syntax::Access>(id)) {
      const std::string name = access->name;
      types::TypeId base = type_of(access->base, probes);
      if (base && e_.types[base].kind == types::Kind::kPointer) base = pointee(base);
      if (!base || e_.types[base].kind != types::Kind::kStruct) return {};
      e_.kernel->complete(e_.types, base);
      const auto member = types::find_member(e_.types, base, name);
      return member ? member->type : types::TypeId();
    }
    if (const auto* index = ast.get<syntax::Index>(id)) return pointee(type_of(index->base, probes));
    if (const auto* unary = ast.get<syntax::Unary>(id); unary && unary->op == UnaryOp::kDereference)
      return pointee(type_of(unary->operand, probes));
    return {};
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
      if (leads_to_struct(argument.type)) out.push_back(build_.unary(UnaryOp::kDereference, variable(argument.name)));
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

  const TraceOptions& options_;
  bool counts_calls_ = false;     // in progress, by thread
  bool is_pair_ = false;          // entry and return of the current target are shown
  size_t count_ = 0;              // of targets
  std::vector<TypedValue> when_;  // TraceOptions::when
  std::string root_function_;     // `func` of the root; empty: of a wildcard
  std::vector<std::string> order_;
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

}  // namespace espy::trace
