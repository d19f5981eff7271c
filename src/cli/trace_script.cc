// Each argument of a probe becomes a variable, so that `skb->len` of a target is `$skb->len` in the script.
#include "cli/trace_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/strings.h"
#include "cli/trace_probes.h"
#include "cli/trace_target.h"

namespace espy::cli {

namespace {

constexpr uint32_t kMaxStructBytes = 12 * 1024;  // of a struct that is shown behind a pointer

// A format that prints just the text, as a literal.
std::string format_literal(std::string_view text) {
  return literal(fmt::format("{}", fmt::join(split(text, '%'), "%%")));
}

class ScriptWriter {
 public:
  ScriptWriter(Environment& environment, const TraceOptions& options) : e_(environment), options_(options) {}

  // `groups`: see find_trace_probes.
  Status add(const TraceTarget& target, const std::vector<TraceProbes>& groups) {
    TraceScript::Part part{.target = target, .begin = actions_.size()};
    if (is_root()) {
      TRY_STATUS(check_root(target, groups));
      for (const std::string& condition : options_.when) part.conditions.push_back({condition, 0});
    }
    for (const TraceProbes& probes : groups)
      for (const TraceArgument& argument : probes.arguments)
        if (std::ranges::find(part.arguments, argument.name) == part.arguments.end())
          part.arguments.push_back(argument.name);
    arguments_ = part.arguments;
    if (!target.results.empty() && std::ranges::none_of(groups, has_result))
      return fail(
          fmt::format("`{}` compares a result, and what it matches has none that probes can read", target.text));
    for (const TraceProbes& probes : groups)
      if (has_all_named(target, probes, part.arguments)) TRY_STATUS(add_group(target, probes));
    if (is_root()) root_function_ = groups.front().name.empty() ? "" : groups.front().function;
    part.end = actions_.size();
    if (part.begin == part.end)
      return fail(fmt::format("`{}` matches no function that has all that it names", target.text));
    parts_.push_back(std::move(part));
    if (!order_.empty()) order_ += " ";
    order_ += groups.front().name;
    ++count_;
    return {};
  }

  TraceScript script() const {
    const std::string head = config();
    const std::string foot = options_.are_trees() ? action("rawtracepoint:sched_process_exit", "span_drop();\n") : "";
    TraceScript out{head + actions_ + foot, parts_};
    for (TraceScript::Part& part : out.parts) {
      part.begin += head.size();
      part.end += head.size();
    }
    return out;
  }

 private:
  static bool has_result(const TraceProbes& probes) { return !probes.result.empty(); }

  // Functions of a wildcard that lack an argument or a result which the target names, and others have, are left out.
  static bool has_all_named(const TraceTarget& target, const TraceProbes& probes,
                            const std::vector<std::string>& known) {
    const auto has = [&](const std::string& name) {
      return std::ranges::find(probes.arguments, name, &TraceArgument::name) != probes.arguments.end();
    };
    const auto is_named = [](const std::vector<TraceItem>& items, const std::string& name) {
      return std::ranges::any_of(items,
                                 [&](const TraceItem& item) { return with_variables(item.text, {name}) != item.text; });
    };
    if (!target.results.empty() && !has_result(probes)) return false;
    return std::ranges::all_of(known, [&](const std::string& name) {
      return has(name) || (!is_named(target.values, name) && !is_named(target.filters, name));
    });
  }

  // ---- Trees: the first target is the root

  bool is_root() const { return options_.are_trees() && count_ == 0; }

  Status check_root(const TraceTarget& target, const std::vector<TraceProbes>& groups) const {
    const auto has_return = [](const TraceProbes& probes) { return !probes.leave.empty(); };
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
  bool is_root(const TraceProbes& probes) const {
    if (!is_root() || probes.leave.empty()) return false;
    return std::ranges::all_of(options_.when, [&](const std::string& condition) {
      const bool lacks_result = names_return(condition) && probes.result.empty();
      return !lacks_result && std::ranges::all_of(arguments_, [&](const std::string& name) {
        return with_variables(condition, {name}) == condition ||
               std::ranges::find(probes.arguments, name, &TraceArgument::name) != probes.arguments.end();
      });
    });
  }

  static std::vector<std::string> names_of(const TraceProbes& probes) {
    std::vector<std::string> out;
    for (const TraceArgument& argument : probes.arguments) out.push_back(argument.name);
    return out;
  }

  static std::string all_hold(const std::vector<std::string>& conditions) {
    if (conditions.size() <= 1) return conditions.empty() ? "" : conditions[0];
    return fmt::format("({})", fmt::join(conditions, ") && ("));
  }

  // The conditions on arguments are known at the entry, and the others at the return.
  std::vector<std::string> root_conditions(const TraceTarget& target, const TraceProbes& probes, bool at_return) const {
    std::vector<std::string> out;
    if (!at_return)
      for (const TraceItem& filter : target.filters) out.push_back(with_variables(filter.text, names_of(probes)));
    for (const std::string& condition : options_.when)
      if (names_return(condition) == at_return) out.push_back(written_condition(condition, names_of(probes)));
    if (at_return && options_.slower_than_ns != 0)
      out.push_back(fmt::format("nsecs - @root_begin[tid] > {}", options_.slower_than_ns));
    return out;
  }

  // The names of arguments that the conditions at the return compare.
  std::vector<std::string> kept_arguments(const TraceTarget& target, const TraceProbes& probes) const {
    const std::vector<std::string> conditions = root_conditions(target, probes, true);
    std::vector<std::string> out;
    for (const std::string& name : names_of(probes))
      if (is_used(name, "", conditions)) out.push_back(name);
    return out;
  }

  std::string hold(const TraceTarget& target, const TraceProbes& probes) const {
    std::string keep;
    for (const std::string& name : kept_arguments(target, probes))
      keep += fmt::format("@root_{0}[tid] = ${0};\n", name);
    if (options_.slower_than_ns != 0) keep += "@root_begin[tid] = nsecs;\n";
    const std::string call = fmt::format("span_hold({})", all_hold(root_conditions(target, probes, false)));
    return keep.empty() ? call + ";\n" : fmt::format("if ({}) {{\n{}}}\n", call, indented(keep));
  }

  std::string release(const TraceTarget& target, const TraceProbes& probes) const {
    const std::string condition = all_hold(root_conditions(target, probes, true));
    std::string out, forget;
    for (const std::string& name : kept_arguments(target, probes)) {
      out += fmt::format("${0} = @root_{0}[tid];\n", name);
      forget += fmt::format("delete(@root_{}, tid);\n", name);
    }
    if (options_.slower_than_ns != 0) forget += "delete(@root_begin, tid);\n";
    const std::string call = fmt::format("span_release({})", condition.empty() ? "true" : condition);
    return out + (forget.empty() ? call + ";\n" : fmt::format("if ({}) {{\n{}}}\n", call, indented(forget)));
  }

  // The root is traced once, also where a wildcard of another target matches it.
  bool may_be_root(const TraceProbes& probes) const {
    return options_.are_trees() && count_ > 0 && !root_function_.empty() && probes.name.empty();
  }
  std::string is_not_root() const { return fmt::format("func != {}", literal(root_function_)); }

  // ---- Actions

  Status add_group(const TraceTarget& target, const TraceProbes& probes) {
    const bool has_list = !target.values.empty() || target.wants_return;
    // Only the entry, only the return, or both; a graph and an order need both.
    const bool is_call = !probes.leave.empty();
    const bool needs_both =
        options_.is_graph || options_.is_ordered || options_.slower_than_ns != 0 || options_.are_trees();
    const bool wants_entry = !is_call || needs_both || !has_list || !target.values.empty();
    const bool wants_return = is_call && (needs_both || !has_list || target.wants_return);
    is_pair_ = wants_entry && wants_return;
    if (!target.results.empty() && (is_pair_ || !is_call))
      return fail(fmt::format("`{}`: what is returned is not known yet when a call begins", target.text), 0,
                  options_.is_graph ? "--when 'return < 0' shows the calls of the first target for which this holds"
                                    : "compare `return` alone, which shows the returns");
    const bool has_filters = !target.filters.empty() && !is_root(probes);  // the root's choose its trees
    const bool is_chosen = wants_return && (has_filters || (options_.is_ordered && count_ > 0));
    counts_calls_ |= is_chosen || options_.is_ordered;
    add_entry(target, probes, wants_entry, is_chosen);
    if (wants_return) add_return(target, probes, is_chosen);
    return {};
  }

  std::string config() const {
    const char* layout = options_.is_graph ? "graph" : "columns";
    std::string config = fmt::format(
        "config = {{\n  span_layout = \"{}\";\n  print_layout = \"c\";\n  print_zeros = false;\n  print_addresses = "
        "true;\n"
        "  print_maps_on_exit = false;\n",
        layout);
    if (options_.depth != 0) config += fmt::format("  span_depth = {};\n", options_.depth);
    if (options_.slower_than_ns != 0 && !options_.are_trees())
      config += fmt::format("  span_slower_than = {};\n", options_.slower_than_ns);
    if (options_.before != 0) config += fmt::format("  span_before = {};\n", options_.before);
    if (options_.events != 0) config += fmt::format("  span_count = {};\n", options_.events);
    if (counts_calls_) config += "  returns_first = true;\n";
    if (options_.is_ordered) config += fmt::format("  span_order = \"{}\";\n", order_);
    return config + "}\n";
  }

  void add_entry(const TraceTarget& target, const TraceProbes& probes, bool wants_entry, bool is_chosen) {
    const std::vector<std::string> names = names_of(probes);
    std::string values;
    if (wants_entry)
      for (const std::string& value : target.has_list && !shows_all(target) ? chosen(target, names) : all_of(probes))
        values += ", " + value;
    std::vector<std::string> conditions;
    if (!is_root(probes))
      for (const TraceItem& filter : target.filters) conditions.push_back(with_variables(filter.text, names));
    if (options_.is_ordered && count_ > 0) conditions.insert(conditions.begin(), open_of(count_ - 1) + " > 0");

    std::string emit;
    if (options_.is_ordered) emit += open_of(count_) + "++;\n";
    if (is_chosen) emit += fmt::format("@chosen{}[tid, $depth] = true;\n", count_);
    const std::string hold = is_root(probes) ? this->hold(target, probes) : "";
    emit += hold;
    if (wants_entry) emit += fmt::format("{}({}{});\n", is_pair_ ? "span_enter" : "instant", name_of(probes), values);
    if (emit.empty()) return;

    std::string body;
    for (const TraceArgument& argument : probes.arguments)
      if (is_used(argument.name, values + hold, conditions))
        body += fmt::format("${} = {};\n", argument.name, argument.source);
    if (is_chosen) body += fmt::format("@depth{0}[tid]++;\n$depth = @depth{0}[tid];\n", count_);
    if (may_be_root(probes)) conditions.push_back(is_not_root());
    actions_ += action(probes.entry, body + only_if(conditions, emit));
  }

  void add_return(const TraceTarget& target, const TraceProbes& probes, bool is_chosen) {
    const std::string release = is_root(probes) ? this->release(target, probes) : "";
    const bool is_compared = release.find("$retval") != std::string::npos;
    const bool shows_result =
        !probes.result.empty() && (!target.has_list || shows_all(target) || target.wants_return || is_compared);
    const std::string result = shows_result ? ", (retval = $retval)" : "";
    const std::string show = is_pair_ ? fmt::format("span_exit(\"\"{});\n", result)
                                      : fmt::format("instant({}{});\n", name_of(probes), result);
    std::string emit = options_.is_ordered ? count_down("@open", open_of(count_)) : "";
    std::vector<std::string> conditions;
    for (const TraceItem& item : target.results) conditions.push_back(with_result(item.text));
    if (may_be_root(probes)) conditions.push_back(is_not_root());
    emit += only_if(conditions, show);
    emit += release;
    if (is_chosen) {
      emit = fmt::format(
          "$depth = @depth{0}[tid];\nif (has_key(@chosen{0}, (tid, $depth))) {{\n"
          "  delete(@chosen{0}, (tid, $depth));\n{1}}}\n{2}",
          count_, indented(emit), count_down("@depth", "$depth"));
    }
    if (shows_result || release.find("$retval") != std::string::npos)
      emit.insert(0, fmt::format("$retval = {};\n", probes.result));
    actions_ += action(probes.leave, emit);
  }

  // Returns the statement that decrements the count of a thread in `map`, and deletes the key at 0. `value` is the
  // count before. A return without a counted entry changes nothing.
  std::string count_down(std::string_view map, std::string_view value) const {
    return fmt::format("if ({2} <= 1) {{\n  delete({0}{1}, tid);\n}} else {{\n  {0}{1}[tid]--;\n}}\n", map, count_,
                       value);
  }
  static std::string open_of(size_t target) { return fmt::format("@open{}[tid]", target); }

  static std::string only_if(const std::vector<std::string>& conditions, const std::string& then) {
    if (conditions.empty()) return then;
    return fmt::format("if ({}) {{\n{}}}\n", all_hold(conditions), indented(then));
  }

  // Only filters: everything is shown.
  static bool shows_all(const TraceTarget& target) {
    return target.values.empty() && !target.wants_return && !target.filters.empty();
  }

  static std::vector<std::string> chosen(const TraceTarget& target, const std::vector<std::string>& names) {
    std::vector<std::string> out;
    for (const TraceItem& value : target.values) out.push_back(with_variables(value.text, names));
    return out;
  }

  // Every argument, and what pointers to structs lead to; a graph has a line for all.
  std::vector<std::string> all_of(const TraceProbes& probes) {
    std::vector<std::string> out;
    for (const TraceArgument& argument : probes.arguments) {
      const std::string variable = "$" + argument.name;
      if (!argument.is_readable) continue;
      if (!argument.type || e_.types[argument.type].kind != types::Kind::kPointer) {
        out.push_back(variable);
        continue;
      }
      const types::Type pointer = e_.types[argument.type];
      e_.kernel->complete(e_.types, pointer.element);
      const types::Type& element = e_.types[pointer.element];
      const bool is_bytes = element.kind == types::Kind::kInt && element.size_bytes == 1;
      out.push_back(is_bytes && !is_string(probes, argument, element)
                        ? fmt::format("({} = (void *){})", argument.name, variable)
                        : variable);
      const bool is_struct = element.kind == types::Kind::kStruct && element.complete && element.size_bytes > 0;
      if (is_struct && element.size_bytes <= kMaxStructBytes && !options_.is_graph) out.push_back("*" + variable);
    }
    return out;
  }

  // Bytes that are not `char` need not be text. A function of the kernel that takes `char *` may write there; `const
  // char *` is text, if anything.
  static bool is_string(const TraceProbes& probes, const TraceArgument& argument, const types::Type& element) {
    return element.char_like &&
           (probes.prototype.empty() || probes.prototype.find("const char *" + argument.name) != std::string::npos);
  }

  static bool is_used(const std::string& name, const std::string& values, const std::vector<std::string>& conditions) {
    const auto names = [&](const std::string& text) { return text.find("$" + name) != std::string::npos; };
    return names(values) || std::ranges::any_of(conditions, names);
  }

  static std::string name_of(const TraceProbes& probes) {
    return probes.name.empty() ? "\"%s\", func" : format_literal(probes.name);
  }

  static std::string indented(const std::string& text) {
    std::string out;
    for (const std::string_view line : split(trim(text), '\n')) out += fmt::format("  {}\n", line);
    return out;
  }

  static std::string action(const std::string& probe, const std::string& body) {
    return fmt::format("\n{} {{\n{}}}\n", probe, indented(body));
  }

  Environment& e_;
  const TraceOptions& options_;
  bool counts_calls_ = false;           // in progress, by thread
  bool is_pair_ = false;                // entry and return of the current target are shown
  size_t count_ = 0;                    // of targets
  std::string root_function_;           // `func` of the root; empty: of a wildcard
  std::vector<std::string> arguments_;  // of the current target's functions
  std::vector<TraceScript::Part> parts_;
  std::string order_;
  std::string actions_;
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

std::string written_condition(const std::string& condition, const std::vector<std::string>& names) {
  return with_result(with_variables(condition, names));
}

Result<TraceScript> write_trace_script(std::span<const std::string> targets, const TraceOptions& options,
                                       Environment& environment) {
  TRY_STATUS(check_options(options));
  ScriptWriter writer(environment, options);
  for (const std::string& text : targets) {
    const TraceTarget target = TRY(parse_trace_target(text));
    TRY_STATUS(writer.add(target, TRY(find_trace_probes(target, environment))));
  }
  return writer.script();
}

}  // namespace espy::cli
