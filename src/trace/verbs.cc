#include "trace/verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "check/check_passes.h"
#include "probes/probe_support.h"
#include "run/attach_words.h"

namespace espy::trace {

namespace {

using syntax::BinaryOp;
using syntax::ExprId;
using syntax::StmtId;
using syntax::UnaryOp;

// What is read of probes: the arguments and results that debug information describes, or registers.
constexpr spec::Uses kTyped = {.args = true, .context = true, .retval = true}, kPlain = {.context = true};

constexpr uint64_t kMaxKeys = 16 * 1024, kMaxProbes = 8 * 1024;

// A target with the probes that it stands for.
struct FoundTarget {
  TraceTarget target;
  std::vector<TraceProbes> groups;

  bool is_wildcard() const { return groups.size() > 1 || groups.front().name.empty(); }
  bool has_conditions() const { return !target.filters.empty() || !target.results.empty(); }
};

class VerbScript : TargetScript {
 public:
  // `is_keyed`: times are kept by function.
  VerbScript(Verb verb, bool is_keyed, const VerbOptions& options, run::Environment& environment)
      : TargetScript(environment), verb_(verb), is_keyed_(is_keyed), options_(options) {}

  Status add(FoundTarget found) {
    TraceScript::Part part = begin_target(found.target);
    if (!options_.by.empty()) {
      by_ = {e_.sources.add("--by", options_.by), {options_.by, 0}};
      part.typed.push_back(by_.source);
    }
    take_arguments(found.groups, part);
    TRY_STATUS(check(found));
    for (TraceProbes& probes : found.groups) TRY_STATUS(resolve(found, probes));
    if (verb_ == Verb::kLatency || !found.target.results.empty() || found.target.wants_return)
      note_unsafe(found.target, found.groups);
    const size_t before = script_.ast.actions.size();
    for (const TraceProbes& probes : found.groups)
      if (!probes.entry.points.empty() && has_all_named(found.target, probes, part.arguments))
        TRY_STATUS(add_group(found, probes));
    parts_.push_back(std::move(part));
    if (counted_twice_ > 0)
      left_out_.push_back(fmt::format("{}: an earlier target already has {} of its probes, and counts their calls",
                                      found.target.text, counted_twice_));
    if (without_return_ > 0)
      left_out_.push_back(fmt::format("{}: skipped {} function{} whose returns probes cannot see", found.target.text,
                                      without_return_, without_return_ == 1 ? "" : "s"));
    const bool has_none = script_.ast.actions.size() == before;
    const bool is_unsafe =
        std::ranges::any_of(found.groups, [](const TraceProbes& each) { return !each.unsafe.empty(); });
    if (has_none && is_unsafe) return fail_unsafe(found.target);
    if (has_none && counted_twice_ == 0)
      return fail(
          fmt::format("`{}` matches no function that has all that this needs", found.target.text), 0,
          verb_ == Verb::kLatency ? "espy latency needs functions with returns, or system calls: syscalls:openat" : "");
    counted_twice_ = without_return_ = 0;
    return {};
  }

  TraceScript finish() {
    build_.span = {};
    build_.config("print_maps_on_exit", build_.truth(false));
    build_.config("print_units", build_.truth(true));
    build_.config("hist_percentiles", build_.truth(true));
    build_.config("print_layout", build_.text("line"));
    build_.config("max_map_keys", build_.number(kMaxKeys));
    build_.config("max_probes", build_.number(kMaxProbes));
    if (verb_ == Verb::kLatency) {
      build_.config("returns_first", build_.truth(true));
      add_thread_end();
    }
    if (!zeros_.empty()) add_own("begin", {}, std::move(zeros_));
    if (options_.interval_ns > 0) add_interval();
    add_own("end", {}, at_end());
    return {std::move(script_), std::move(parts_), std::move(left_out_)};
  }

 private:
  // ---- What the targets may say

  Status check(const FoundTarget& found) {
    const TraceTarget& target = found.target;
    for (const auto* items : {&target.filters, &target.values, &target.results})
      for (const TraceItem& item : *items) check_syntax({target_, item});
    if (!options_.by.empty()) check_syntax(by_);
    const bool has_values = !target.values.empty() || (target.wants_return && target.results.empty());
    if (verb_ == Verb::kArgs && !has_values)
      return fail(fmt::format("`{}` does not say which value", target.text), 0,
                  arguments_.empty() ? fmt::format("espy args '{}(return)'", target.place)
                                     : fmt::format("espy args '{}({})'", target.place, arguments_.front()));
    if (verb_ != Verb::kArgs && !target.values.empty())
      return fail(fmt::format("`{}`: only conditions choose calls here", target.values.front().text), 0,
                  fmt::format("espy args '{}({})' shows values; --by '{}' parts the numbers by them", target.place,
                              target.values.front().text, target.values.front().text));
    const bool is_both = !target.filters.empty() || !target.values.empty();
    if (verb_ != Verb::kLatency && (!target.results.empty() || (verb_ == Verb::kArgs && target.wants_return)) &&
        is_both)
      return fail(fmt::format("`{}`: the return value is not known when a call begins", target.text), 0,
                  "use two targets, or espy trace --when");
    if (!target.results.empty() && std::ranges::none_of(found.groups, has_result))
      return fail(
          fmt::format("`{}` compares a result, and what it matches has none that probes can read", target.text));
    return {};
  }

  bool is_at_return(const TraceTarget& target) const {
    return verb_ != Verb::kLatency && (!target.results.empty() || (verb_ == Verb::kArgs && target.wants_return));
  }

  // ---- Probes, one by one

  // Binds the probes of a place, so that each is known.
  void bind(TracePlace& place) {
    if (!place.plain.empty() || place.points.empty()) return;
    std::vector<syntax::AttachPoint> points;
    for (const syntax::AttachPoint& point : place.points) {
      const spec::Provider* provider = e_.registry.find_provider(point.provider.text);
      std::vector<std::string> parts;
      for (const syntax::AttachPart& part : point.parts) parts.push_back(part.text);
      source::Diagnostics ignored;
      auto typed = run::bind_probes(e_, e_.config, *provider, parts, kTyped, ignored);
      auto plain = run::bind_probes(e_, e_.config, *provider, parts, kPlain, ignored);
      if (typed.size() != plain.size()) typed = plain;
      for (auto* list : {&typed, &plain})
        for (spec::BoundProbe& each : *list)
          if (each.probe.provider.empty()) each.probe.provider = provider->name;
      for (const spec::BoundProbe& each : plain)
        points.push_back(build_.attach_point(provider->name, std::vector{each.probe.target, each.probe.function}));
      std::ranges::move(typed, std::back_inserter(place.typed));
      std::ranges::move(plain, std::back_inserter(place.plain));
    }
    place.points = std::move(points);
  }

  // The function of a probe; of the events of a system call, what follows `sys_enter_` and `sys_exit_`.
  static std::string function_of(const TraceProbes& probes, const spec::BoundProbe& bound) {
    std::string_view name = bound.probe.function;
    if (probes.is_system_call)
      for (const std::string_view prefix : {"sys_enter_", "sys_exit_"})
        if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    return fmt::format("{}:{}", bound.probe.target, name);
  }

  template <class Keep>
  static void keep_if(TracePlace& place, const Keep& keep) {
    TracePlace out;
    for (size_t i = 0; i < place.plain.size(); ++i) {
      if (!keep(place.plain[i])) continue;
      out.points.push_back(std::move(place.points[i]));
      out.plain.push_back(std::move(place.plain[i]));
      out.typed.push_back(std::move(place.typed[i]));
    }
    place = std::move(out);
  }

  // Leaves out what earlier targets count, and, if returns are needed, what has none.
  Status resolve(const FoundTarget& found, TraceProbes& probes) {
    const bool needs_return = verb_ == Verb::kLatency || is_at_return(found.target);
    bind(probes.entry);
    if (probes.entry.points.empty()) return {};
    if (needs_return) {
      bind(probes.leave);
      std::set<std::string> leaving;
      for (const spec::BoundProbe& each : probes.leave.plain) leaving.insert(function_of(probes, each));
      keep_if(probes.entry, [&](const spec::BoundProbe& each) {
        const bool is_kept = leaving.contains(function_of(probes, each));
        if (!is_kept && probes.unsafe.empty()) ++without_return_;
        return is_kept;
      });
    }
    if (!found.has_conditions() && !probes.entry.points.empty()) {
      const bool is_of_kernel = !probes.is_system_call && is_kernel_function(probes.entry.plain.front());
      keep_if(probes.entry, [&](const spec::BoundProbe& each) {
        const program::Probe& probe = each.probe;
        const std::string place =
            is_of_kernel ? "kernel:" + probe.function
                         : fmt::format("{}:{}:{}:{}", probe.provider, probe.target,
                                       probe.address == 0 ? probe.function : "", probe.address + probe.offset);
        const bool is_new = counted_.insert(place).second;
        if (!is_new) ++counted_twice_;
        return is_new;
      });
    }
    if (!needs_return) return {};
    std::set<std::string> entered;
    for (const spec::BoundProbe& each : probes.entry.plain) entered.insert(function_of(probes, each));
    keep_if(probes.leave, [&](const spec::BoundProbe& each) { return entered.contains(function_of(probes, each)); });
    return {};
  }

  // By several providers: a function is one whichever probe is at its entry.
  bool is_kernel_function(const spec::BoundProbe& bound) {
    const spec::ProbeContext context =
        run::context_of(e_, *e_.registry.find_provider(bound.probe.provider), bound, kPlain);
    return context.boundary == spec::CallBoundary::kEntry && context.pointers == types::AddressSpace::kKernel;
  }

  // ---- Pieces

  ExprId map(std::string name) const { return build_.map(std::move(name)); }
  StmtId put(ExprId to, std::string function, Values arguments) const {
    return build_.assign(to, build_.call(std::move(function), std::move(arguments)));
  }
  // A map of results, which is shown and cleared.
  ExprId shown(const std::string& name) {
    if (std::ranges::find(shown_, name) == shown_.end()) shown_.push_back(name);
    return map(name);
  }
  StmtId add_one(const std::string& to) const { return put(map(to), "sum", {build_.number(1)}); }

  Values conditions(const std::vector<TraceItem>& items, const std::vector<std::string>& names) {
    Values out;
    for (const TraceItem& item : items) out.push_back(expression({target_, item}, names));
    return out;
  }

  // `if comptime (is_ptr(x)) { str(x) } else { x }` would be the key for pointers to text only: a pointer to something
  // else is a number.
  bool is_text(const TraceProbes& probes, const std::string& name) const {
    const auto found = std::ranges::find(probes.arguments, name, &TraceArgument::name);
    if (found == probes.arguments.end() || !found->type) return false;
    const types::Type& type = e_.types[found->type];
    return type.kind == types::Kind::kPointer && e_.types[type.element].char_like;
  }

  // An expression as the key of a map.
  ExprId as_key(const TypedValue& typed, const TraceProbes& probes) {
    const ExprId value = expression(typed, names_of(probes));
    return is_text(probes, std::string(trim(typed.item.text))) ? build_.call("str", {value}) : value;
  }

  // Requires that the target is a single function, or has conditions.
  std::string label(const FoundTarget& found, const TraceProbes& probes) const {
    return found.has_conditions() || probes.name.empty() ? found.target.text : probes.name;
  }

  Status add_group(const FoundTarget& found, const TraceProbes& probes) {
    if (verb_ == Verb::kLatency) return add_latency(found, probes);
    const bool at_return = is_at_return(found.target);
    const std::vector<std::string> names = at_return ? std::vector<std::string>{kResult} : names_of(probes);
    const Values chosen = conditions(at_return ? found.target.results : found.target.filters, names);
    const Statements update = this->update(found, probes);
    Statements body;
    if (at_return)
      body.push_back(build_.assign(variable(kResult), read(probes.result)));
    else
      read_arguments(probes, chosen, update, body);
    append(body, only_if(chosen, update));
    add_action(at_return ? probes.leave : probes.entry, std::move(body));
    return {};
  }

  Statements update(const FoundTarget& found, const TraceProbes& probes) {
    switch (verb_) {
      case Verb::kCount: return {count_call(found, probes)};
      case Verb::kStacks: return {count_stack(probes)};
      case Verb::kArgs: return distributions(found, probes);
      case Verb::kLatency: break;
    }
    return {};
  }

  // ---- count

  StmtId count_call(const FoundTarget& found, const TraceProbes& probes) {
    const Values one = {build_.number(1)};
    if (!options_.by.empty()) return put(build_.index(shown("@calls"), {as_key(by_, probes)}), "sum", one);
    if (found.is_wildcard() && !found.has_conditions())
      return put(build_.index(shown("@calls_by_function"), {build_.name("func")}), "sum", one);
    const std::string name = label(found, probes);
    if (labels_.insert(name).second)
      zeros_.push_back(put(build_.index(map("@calls"), {build_.text(name)}), "sum", {build_.number(0)}));
    return put(build_.index(shown("@calls"), {build_.text(name)}), "sum", one);
  }

  // ---- stacks

  StmtId count_stack(const TraceProbes& probes) {
    const bool is_of_kernel = run::context_of(e_, *e_.registry.find_provider(probes.entry.plain.front().probe.provider),
                                              probes.entry.plain.front(), kPlain)
                                  .pointers == types::AddressSpace::kKernel;
    const bool has_choice = options_.kernel_stack || options_.user_stack;
    const bool is_kernel = has_choice ? options_.kernel_stack : is_of_kernel && !probes.is_system_call;
    const bool is_user = has_choice ? options_.user_stack : !is_kernel;
    Values key;
    if (is_user) key.push_back(build_.name("ustack"));
    if (is_kernel) key.push_back(build_.name("kstack"));
    return put(build_.index(shown(is_kernel ? is_user ? "@stacks" : "@kernel_stacks" : "@user_stacks"), key), "count",
               {});
  }

  // ---- args

  // The map of an expression: `skb->len` has `@skb_len`.
  static std::string map_of(std::string_view text) {
    std::string out = "@";
    for (const char c : text) {
      const bool is_part = syntax::is_word(c);
      if (is_part) out += c;
      if (!is_part && out.back() != '_' && out.size() > 1) out += '_';
    }
    while (out.size() > 1 && out.back() == '_') out.pop_back();
    return out == "@" ? "@value" : out;
  }

  Statements distributions(const FoundTarget& found, const TraceProbes& probes) {
    Statements out;
    const auto add = [&](const TypedValue& typed, const std::string& name, const std::vector<std::string>& names) {
      const auto value = [&] { return expression(typed, names); };
      const bool is_counted = options_.is_frequency || is_text(probes, typed.item.text);
      const std::string to = shown_distribution(name);
      if (is_counted) {
        const ExprId key = is_text(probes, typed.item.text) ? build_.call("str", {value()}) : value();
        out.push_back(put(build_.index(map(to), {key}), "count", {}));
      } else {
        out.push_back(put(map(to), "hist", {value()}));
      }
    };
    for (const TraceItem& item : found.target.values) add({target_, item}, item.text, names_of(probes));
    if (is_at_return(found.target)) add({target_, {kResult, 0}}, "return", {kResult});
    return out;
  }

  std::string shown_distribution(const std::string& name) {
    const std::string out = map_of(name);
    shown(out);
    return out;
  }

  // ---- latency
  //
  // A call is known by its thread, its function and its frame or, where that is not known, its depth. `@begin` has 0
  // for calls that the conditions do not choose, so that their returns are told from those of calls that began before.

  Values call_key(const TraceProbes& probes, const FoundTarget& found, const std::string& place) const {
    Values out = {build_.name("tid"), variable(place)};
    if (found.is_wildcard() && !probes.is_system_call) out.push_back(build_.name("func"));
    return out;
  }
  ExprId depth_of(const TraceProbes& probes, const FoundTarget& found) const {
    Values key = {build_.name("tid")};
    if (found.is_wildcard() && !probes.is_system_call) key.push_back(build_.name("func"));
    return build_.index(map(numbered("@depth")), key);
  }
  std::string numbered(std::string_view name) const { return fmt::format("{}{}", name, parts_.size()); }
  ExprId of_thread(std::string name) const { return build_.index(map(std::move(name)), {build_.name("tid")}); }

  Status add_latency(const FoundTarget& found, const TraceProbes& probes) {
    const std::string place = unused_name("place"), begin = unused_name("begin"), took = unused_name("took");
    const std::string begins = numbered("@begin"), keys = numbered("@by");
    const auto key = [&] { return build_.index(map(begins), call_key(probes, found, place)); };
    const auto by = [&] { return build_.index(map(keys), call_key(probes, found, place)); };

    // The entry.
    const Values chosen = conditions(found.target.filters, names_of(probes));
    Statements start = {build_.assign(key(), build_.name("nsecs")), add_one("@started"),
                        build_.run(build_.unary(UnaryOp::kPostIncrement, of_thread("@open")))};
    if (!options_.by.empty()) start.push_back(build_.assign(by(), as_key(by_, probes)));
    Statements enter;
    if (probes.has_frames) {
      enter.push_back(build_.assign(variable(place), stack_pointer()));
    } else {
      enter.push_back(build_.run(build_.unary(UnaryOp::kPostIncrement, depth_of(probes, found))));
      enter.push_back(build_.assign(variable(place), depth_of(probes, found)));
    }
    if (!chosen.empty())
      enter.push_back(build_.when(all_hold(chosen), start, {build_.assign(key(), build_.number(0))}));
    else
      append(enter, start);
    Statements body;
    read_arguments(probes, chosen, start, body);
    append(body, enter);
    add_action(probes.entry, std::move(body));

    // The return.
    const Values fits = conditions(found.target.results, {kResult});
    Statements measure;
    if (!fits.empty()) measure.push_back(build_.assign(variable(kResult), read(probes.result)));
    append(measure, only_if(fits, record(found, probes, took, by)));
    append(measure, {add_one("@returned"), count_down()});
    if (!options_.by.empty())
      measure.push_back(run("delete", {map(keys), build_.tuple(call_key(probes, found, place))}));
    measure.insert(
        measure.begin(),
        build_.assign(variable(took), build_.binary(BinaryOp::kSubtract, build_.name("nsecs"), variable(begin))));
    const Statements leave = {
        build_.assign(variable(begin), key()),
        run("delete", {map(begins), build_.tuple(call_key(probes, found, place))}),
        build_.when(build_.binary(BinaryOp::kNotEqual, variable(begin), build_.number(0)), std::move(measure))};
    const ExprId is_known = build_.call("has_key", {map(begins), build_.tuple(call_key(probes, found, place))});
    Statements at_return;
    if (probes.has_frames) {
      at_return = {build_.assign(variable(place), stack_pointer()),
                   build_.when(is_known, leave, {add_one("@earlier")})};
    } else {
      Statements inner = {build_.when(is_known, leave)};
      inner.push_back(build_.when(build_.binary(BinaryOp::kLessEqual, variable(place), build_.number(1)),
                                  {forget_depth(probes, found)},
                                  {build_.run(build_.unary(UnaryOp::kPostDecrement, depth_of(probes, found)))}));
      at_return = {build_.assign(variable(place), depth_of(probes, found)),
                   build_.when(build_.binary(BinaryOp::kGreater, variable(place), build_.number(0)), std::move(inner),
                               {add_one("@earlier")})};
    }
    add_action(probes.leave, std::move(at_return));
    is_of_system_calls_ |= probes.is_system_call;
    return {};
  }

  StmtId forget_depth(const TraceProbes& probes, const FoundTarget& found) const {
    const bool has_function = found.is_wildcard() && !probes.is_system_call;
    return run("delete", {map(numbered("@depth")),
                          has_function ? build_.tuple({build_.name("tid"), build_.name("func")}) : build_.name("tid")});
  }

  // One call of the thread less is open.
  StmtId count_down() const {
    return build_.when(build_.binary(BinaryOp::kLessEqual, of_thread("@open"), build_.number(1)),
                       {run("delete", {map("@open"), build_.name("tid")})},
                       {build_.run(build_.unary(UnaryOp::kPostDecrement, of_thread("@open")))});
  }

  // `by`: builds the value of --by that the entry has kept.
  template <class By>
  Statements record(const FoundTarget& found, const TraceProbes& probes, const std::string& took, const By& by) {
    const auto key = [&] {
      if (!options_.by.empty()) return by();
      if (!probes.is_system_call || !found.is_wildcard()) return build_.name("func");
      return build_.call("syscall_name", {build_.member(build_.name("args"), "__syscall_nr")});
    };
    Statements out;
    const auto add = [&](const std::string& name, const char* function) {
      ExprId to = shown(name);
      if (!options_.by.empty() || is_keyed_) to = build_.index(to, {key()});
      out.push_back(put(to, function, {variable(took)}));
    };
    add("@latency_ns", "hist");
    add("@calls_ns", "stats");
    add("@max_ns", "max");
    return out;
  }

  // Calls do not return from a thread that has ended.
  void add_thread_end() {
    const std::string open = "$open";
    Statements body = {build_.assign(build_.variable(open), of_thread("@open")),
                       build_.when(build_.binary(BinaryOp::kGreater, build_.variable(open), build_.number(0)),
                                   {put(map("@ended"), "sum", {build_.variable(open)}),
                                    run("delete", {map("@open"), build_.name("tid")})})};
    add_own("rawtracepoint", {"sched_process_exit"}, std::move(body));
  }

  // ---- What is shown

  void add_own(const std::string& provider, const std::vector<std::string>& parts, Statements body) {
    add_action({.points = {build_.attach_point(provider, parts)}, .typed = {}, .plain = {}}, std::move(body));
  }

  Statements print_all() const {
    Statements out;
    for (const std::string& name : shown_) out.push_back(run("print", {map(name)}));
    return out;
  }

  void add_interval() {
    Statements body = {run("time", {build_.text("%H:%M:%S\n")})};
    append(body, print_all());
    for (const std::string& name : shown_)
      body.push_back(run(name == "@calls" && options_.by.empty() ? "zero" : "clear", {map(name)}));
    add_own("interval", {"us", std::to_string(options_.interval_ns / 1000)}, std::move(body));
  }

  ExprId number_of(const std::string& name) const {
    syntax::TypeName type;
    type.name = "int64";
    return build_.cast(std::move(type), map(name));
  }

  // if (NUMBER == 1) { printf(ONE) } if (NUMBER > 1) { printf(MANY, NUMBER) }
  void say(Statements& out, const std::string& number, const std::string& one, const std::string& many) const {
    out.push_back(build_.when(build_.binary(BinaryOp::kEqual, build_.variable(number), build_.number(1)),
                              {run("printf", {build_.text(one)})}));
    out.push_back(build_.when(build_.binary(BinaryOp::kGreater, build_.variable(number), build_.number(1)),
                              {run("printf", {build_.text(many), build_.variable(number)})}));
  }

  Statements at_end() {
    Statements out = print_all();
    if (verb_ == Verb::kLatency) {
      out.push_back(build_.assign(build_.variable("$returned"), number_of("@returned")));
      out.push_back(build_.when(build_.binary(BinaryOp::kEqual, build_.variable("$returned"), build_.number(0)),
                                {run("printf", {build_.text("0 calls returned\n")})}));
      out.push_back(build_.assign(build_.variable("$ended"), number_of("@ended")));
      out.push_back(build_.assign(build_.variable("$earlier"), number_of("@earlier")));
      const ExprId without = build_.binary(BinaryOp::kSubtract, number_of("@started"), build_.variable("$ended"));
      out.push_back(build_.assign(build_.variable("$open"),
                                  build_.binary(BinaryOp::kSubtract, without, build_.variable("$returned"))));
      say(out, "$open", "1 call still runs, and is not measured\n", "%d calls still run, and are not measured\n");
      say(out, "$ended", "1 call ended with its thread, and is not measured\n",
          "%d calls ended with their thread, and are not measured\n");
      if (is_of_system_calls_)
        say(out, "$earlier",
            "1 return is not measured: of a call that began before, or the first one of a new thread\n",
            "%d returns are not measured: of calls that began before, or the first ones of new threads\n");
      else
        say(out, "$earlier", "1 call began before, and is not measured\n",
            "%d calls began before, and are not measured\n");
      return out;
    }
    Values empty;
    for (const std::string& name : shown_)
      empty.push_back(build_.binary(BinaryOp::kEqual, build_.call("len", {map(name)}), build_.number(0)));
    const bool has_scalars = verb_ == Verb::kArgs && !options_.is_frequency;
    if (!empty.empty() && !has_scalars)
      out.push_back(build_.when(all_hold(empty), {run("printf", {build_.text("0 calls\n")})}));
    return out;
  }

  Verb verb_;
  bool is_keyed_;
  const VerbOptions& options_;
  TypedValue by_;
  std::vector<std::string> shown_;                 // maps of results
  std::set<std::string> labels_;                   // keys of `@calls`
  Statements zeros_;                               // elements that are there from the beginning
  std::set<std::string> counted_;                  // places of probes without conditions
  size_t counted_twice_ = 0, without_return_ = 0;  // of the current target
  bool is_of_system_calls_ = false;
};

}  // namespace

Result<TraceScript> write_verb_script(Verb verb, std::span<const std::string> targets, const VerbOptions& options,
                                      run::Environment& environment) {
  std::vector<FoundTarget> found;
  for (const std::string& text : targets) {
    TraceTarget target = TRY(parse_trace_target(text));
    auto groups = TRY(find_trace_probes(target, target.wants_return, environment));
    found.push_back({std::move(target), std::move(groups)});
  }
  std::ranges::stable_partition(found, [](const FoundTarget& each) { return !each.is_wildcard(); });
  const bool is_keyed = found.size() > 1 || (!found.empty() && found.front().is_wildcard());
  VerbScript script(verb, is_keyed, options, environment);
  for (FoundTarget& each : found) TRY_STATUS(script.add(std::move(each)));
  return script.finish();
}

}  // namespace espy::trace
