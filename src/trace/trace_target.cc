#include "trace/trace_target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "base/strings.h"
#include "probes/probe_support.h"
#include "run/attach_words.h"
#include "symbols/debug_info.h"
#include "symbols/demangle.h"
#include "syntax/build.h"
#include "syntax/format_script.h"
#include "syntax/lexer.h"

namespace espy::trace {

namespace {

using syntax::is_word;

// Calls `visit(position, depth of brackets)` for each character that is not in a string literal.
template <class Visit>
void for_each_outside_of_strings(std::string_view text, const Visit& visit) {
  int depth = 0;
  bool is_quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      is_quoted = !is_quoted;
    } else if (!is_quoted) {
      if (text[i] == ')' || text[i] == ']') --depth;
      visit(i, depth);
      if (text[i] == '(' || text[i] == '[') ++depth;
    }
  }
}

// Returns the trimmed parts between the given positions, in their order, of a text.
std::vector<std::string_view> cut_at(std::string_view text, const std::vector<size_t>& positions) {
  std::vector<std::string_view> out;
  size_t begin = 0;
  for (const size_t position : positions) {
    out.push_back(trim(text.substr(begin, position - begin)));
    begin = position + 1;
  }
  out.push_back(trim(text.substr(begin)));
  return out;
}

std::vector<std::string_view> split_list(std::string_view list) {
  std::vector<size_t> commas;
  for_each_outside_of_strings(list, [&](size_t i, int depth) {
    if (depth == 0 && list[i] == ',') commas.push_back(i);
  });
  return cut_at(list, commas);
}

// Whether it compares at its top level. `->` is no comparison, nor is a shift.
bool is_comparison(std::string_view item) {
  bool found = false;
  for_each_outside_of_strings(item, [&](size_t i, int depth) {
    if (depth != 0) return;
    const char before = i > 0 ? item[i - 1] : ' ', c = item[i], next = i + 1 < item.size() ? item[i + 1] : ' ';
    const bool is_pair = next == '=' && (c == '=' || c == '!');
    const bool is_angle = (c == '<' || c == '>') && before != '-' && before != c && next != c;
    found |= is_pair || is_angle;
  });
  return found;
}

}  // namespace

bool names_return(std::string_view expression) { return with_result(expression) != expression; }

std::vector<std::string> split_trace_targets(std::string_view text) {
  std::vector<size_t> commas;
  int angles = 0;  // of template arguments in the name of a function
  for_each_outside_of_strings(text, [&](size_t i, int depth) {
    if (depth != 0) return;
    if (text[i] == '<') ++angles;
    if (text[i] == '>' && angles > 0) --angles;
    if (text[i] == ',' && angles == 0) commas.push_back(i);
  });
  if (angles != 0) commas.clear();  // operator<
  const std::vector<std::string_view> parts = cut_at(text, commas);
  return {parts.begin(), parts.end()};
}

std::vector<std::string> split_trace_targets(std::span<const std::string> arguments) {
  std::vector<std::string> out;
  for (const std::string& argument : arguments)
    std::ranges::move(split_trace_targets(std::string_view(argument)), std::back_inserter(out));
  return out;
}

Result<TraceTarget> parse_trace_target(const std::string& text) {
  TraceTarget out;
  out.text = text;
  const size_t open = run::find_unquoted(text, '(');
  out.place = trim(text.substr(0, open));
  if (out.place.empty()) return fail(fmt::format("`{}` names nothing to trace", text));
  if (open == std::string::npos) return out;
  out.has_list = true;
  const std::string_view rest = trim(std::string_view(text).substr(open + 1));
  if (!rest.ends_with(')')) return fail(fmt::format("`{}` lacks its closing parenthesis at the end", text));
  const std::string_view list = trim(rest.substr(0, rest.size() - 1));
  if (list.empty()) return out;
  for (const std::string_view word : split_list(list)) {
    const TraceItem item{std::string(word), static_cast<size_t>(word.data() - text.data())};
    if (word.empty()) return fail(fmt::format("`{}` has an empty place in its list", text));
    if (word == "return") {
      out.wants_return = true;
    } else if (names_return(word)) {
      if (!is_comparison(word))
        return fail(fmt::format("`{}`: a return value can only be shown or compared", word), 0,
                    "return, or return < 0");
      out.results.push_back(item);
      out.wants_return = true;
    } else if (is_comparison(word)) {
      out.filters.push_back(item);
    } else {
      out.values.push_back(item);
    }
  }
  return out;
}

std::string with_result(std::string_view expression) {
  constexpr std::string_view kReturn = "return", kResult = "retval";
  static_assert(kReturn.size() == kResult.size());
  std::string out(expression);
  for_each_outside_of_strings(expression, [&](size_t i, int) {
    const bool begins = expression.substr(i).starts_with(kReturn) && (i == 0 || !is_word(expression[i - 1]));
    const size_t end = i + kReturn.size();
    if (begins && (end == expression.size() || !is_word(expression[end]))) out.replace(i, kReturn.size(), kResult);
  });
  return out;
}

// ---- The provider of a target's probe decides what can be shown: it binds the attach point, and its context names the
// arguments and their types. Functions of the kernel are traced by trampolines, or by kprobes with the types of BTF.

namespace {

class Finder {
 public:
  Finder(bool names_return, run::Environment& environment)
      : names_return_(names_return), e_(environment), config_(environment.config) {
    config_.symbols.demangle = false;  // functions are shown without their parameters, which the symbol tells apart
  }

  Result<std::vector<TraceProbes>> find(const TraceTarget& target) {
    const std::vector<std::string> parts = run::split_attach_point(target.place);
    if (const spec::Provider* provider = e_.registry.find_provider(parts[0]); provider && parts.size() > 1)
      return from_provider(*provider, {parts.begin() + 1, parts.end()});
    if (parts.size() == 1) {
      const bool is_known =
          has_wildcard(parts[0]) || e_.kernel->c_prototype(parts[0], "") || !e_.kernel->functions(parts[0]).empty();
      const std::string_view prefix = kEntryPrefix;
      const std::string call = parts[0].starts_with(prefix) ? parts[0].substr(prefix.size()) : parts[0];
      if (!is_known && is_system_call(call)) return system_call(call);
      return kernel_function(parts[0], "");
    }
    if (parts.size() == 2 && parts[0] == "syscalls" && !parts[1].starts_with("sys_") && is_system_call(parts[1]))
      return system_call(parts[1]);
    const bool is_path = parts[0].find('/') != std::string::npos;
    if (!is_path && parts.size() == 2 && !e_.kernel->tracepoints(parts[0], parts[1]).empty())
      return from_provider(*e_.registry.find_provider("tracepoint"), parts);
    if (!is_path && parts.size() == 2 && e_.kernel->c_prototype(parts[1], parts[0]))
      return kernel_function(parts[1], parts[0]);
    return from_provider(*e_.registry.find_provider("uprobe"), parts);
  }

 private:
  // ---- System calls: the event of the entry, and the event of the exit

  static constexpr const char *kSystemCalls = "syscalls", *kEntryPrefix = "sys_enter_", *kExitPrefix = "sys_exit_";

  bool is_system_call(const std::string& name) const {
    return !e_.kernel->tracepoints(kSystemCalls, kEntryPrefix + name).empty();
  }

  std::vector<TraceProbes> system_call(const std::string& name) {
    const spec::Provider& provider = *e_.registry.find_provider("tracepoint");
    const std::vector<std::string> entry = {kSystemCalls, kEntryPrefix + name};
    TraceProbes out{.entry = typed_place(provider.name, entry),
                    .leave = typed_place(provider.name, {kSystemCalls, kExitPrefix + name})};
    out.is_system_call = true;
    if (has_wildcard(name)) return {std::move(out)};
    out.name = name;
    out.function = entry.back();
    source::Diagnostics ignored;
    const std::vector<spec::BoundProbe> bound = bind(provider, entry, true, ignored);
    if (!bound.empty()) add_arguments(out, context_of(provider, bound[0], true));
    std::erase_if(out.arguments, [](const TraceArgument& each) { return each.name == "__syscall_nr"; });
    out.result = {"args", "ret"};
    return {std::move(out)};
  }

  // ---- The kernel's functions: by trampolines, or by kprobes with the types that BTF has for them
  Result<std::vector<TraceProbes>> kernel_function(const std::string& name, const std::string& module) {
    const bool is_wildcard = has_wildcard(name);
    const std::vector<std::string> place = module.empty() ? std::vector{name} : std::vector{module, name};
    if (is_wildcard) {
      const bool by_kprobe = e_.kernel->has(kernel::Feature::kKprobe);
      return std::vector{TraceProbes{.entry = typed_place(by_kprobe ? "kprobe" : "fentry", place),
                                     .leave = typed_place(by_kprobe ? "kretprobe" : "fexit", place)}};
    }
    const auto prototype = e_.kernel->find_function(e_.types, name, module);
    const std::vector<std::string> listed = e_.kernel->functions(name);
    const bool is_traced = !listed.empty();
    // A trampoline attaches to one of several functions that have the name.
    const bool is_shared = listed.size() > 1 && e_.kernel->has(kernel::Feature::kKprobe);
    if (!prototype && !is_traced && !e_.kernel->symbol_address(name)) return unknown_function(name);
    const bool by_trampoline = prototype && !is_shared && e_.kernel->has(kernel::Feature::kFentry) &&
                               !e_.kernel->find_functions(nullptr, name, prototype->module).empty();
    if (by_trampoline) return from_provider(*e_.registry.find_provider("fentry"), {prototype->module, name});
    TraceProbes out{.entry = typed_place("kprobe", place),
                    .leave = typed_place("kretprobe", place),
                    .name = name,
                    .function = name};
    if (prototype) add_typed_words(out, *prototype);
    return std::vector{std::move(out)};
  }

  void add_typed_words(TraceProbes& out, const kernel::FunctionPrototype& prototype) {
    const size_t in_registers = e_.kernel->arch().argument_offsets.size();
    size_t index = 0;
    for (const types::Member& parameter : prototype.parameters) {
      if (index == in_registers || e_.types[parameter.type].size_bytes > 8) break;  // what follows lies elsewhere
      const types::TypeId type = is_nameable(parameter.type) ? parameter.type : types::TypeId{};
      out.arguments.push_back({parameter.name, {fmt::format("arg{}", index++), "", type}, type});
    }
    if (e_.types[prototype.result].kind != types::Kind::kVoid)
      out.result = {"retval", "", is_nameable(prototype.result) ? prototype.result : types::TypeId{}};
    out.prototype = e_.kernel->c_prototype(prototype.name, prototype.module).value_or("");
  }

  // Whether a cast can be written: numbers, and pointers to what has a name.
  bool is_nameable(types::TypeId type) {
    const types::Type& it = e_.types[type];
    if (it.kind == types::Kind::kPointer) {
      const types::Type& element = e_.types[it.element];
      return element.kind == types::Kind::kInt || (element.kind == types::Kind::kStruct && !element.name.empty());
    }
    return it.kind == types::Kind::kInt || (it.kind == types::Kind::kEnum && !it.name.empty());
  }

  tl::unexpected<Error> unknown_function(const std::string& name) {
    const std::vector<std::string> known = e_.kernel->functions("*");
    const std::vector<std::string_view> candidates(known.begin(), known.end());
    constexpr size_t kShortest = 4;  // shorter names are near to any
    const std::string near = name.size() < kShortest ? "" : nearest(name, candidates);
    return fail(fmt::format("the kernel has no function `{}`", name), 0,
                near.empty() ? "a function of a program is written FILE:FUNCTION, a tracepoint t:CATEGORY:EVENT"
                             : fmt::format("did you mean `{}`?", near));
  }

  // ---- All other probes
  Result<std::vector<TraceProbes>> from_provider(const spec::Provider& provider,
                                                 const std::vector<std::string>& parts) {
    TraceProbes out{.entry = typed_place(provider.name, parts)};
    source::Diagnostics diagnostics;
    bool has_types = true;  // a program may have no debug information
    std::vector<spec::BoundProbe> bound = bind(provider, parts, has_types, diagnostics);
    if (bound.empty()) {
      source::Diagnostics ignored;
      has_types = false;
      bound = bind(provider, parts, has_types, ignored);
    }
    if (bound.empty()) return nothing_there(format(out.entry.points.front()), diagnostics);
    const std::string& function = bound[0].probe.function;
    const auto is_other = [&](const spec::BoundProbe& each) { return each.probe.function != function; };
    const bool is_wildcard = has_wildcard(parts.back()) || std::ranges::any_of(bound, is_other);
    if (is_wildcard && provider.find_type != nullptr && provider.return_provider != nullptr)
      if (auto groups = by_signature(provider, parts); !groups.empty()) return groups;
    if (!is_wildcard) {
      // As `func` will be: probes are bound with the names that the configuration asks for.
      out.function =
          provider.find_type != nullptr && e_.config.symbols.demangle ? symbols::demangle(function) : function;
      out.name = function.empty() ? parts.back() : symbols::demangle(function, symbols::DemangleStyle::kName);
    }
    const spec::ProbeContext context = context_of(provider, bound[0], has_types);
    if (context.boundary == spec::CallBoundary::kEntry) add_return(out, bound[0], parts, has_types);
    if (is_wildcard) {
      out.result = {};
      return std::vector{std::move(out)};
    }
    add_arguments(out, context);
    const bool is_of_kernel = context.pointers == types::AddressSpace::kKernel;
    if (context.args.empty() && !out.leave.points.empty() && is_of_kernel)
      if (const auto prototype = e_.kernel->find_function(e_.types, function)) add_typed_words(out, *prototype);
    const bool has_operands = context.args.empty() && context.boundary == spec::CallBoundary::kNone;
    for (const spec::ContextField& field : context.arguments)
      if (has_operands) out.arguments.push_back({field.name, {field.name}, field.type});
    out.prototype = e_.kernel->c_prototype(function, bound[0].probe.target).value_or("");
    return std::vector{std::move(out)};
  }

  // Of arguments with one name, `args` has the first; a file can give several that name.
  static void add_arguments(TraceProbes& out, const spec::ProbeContext& context) {
    for (const spec::ContextField& field : context.args) {
      const bool is_hidden = std::ranges::find(out.arguments, field.name, &TraceArgument::name) != out.arguments.end();
      if (is_hidden || field.name.empty())
        out.hidden.insert(field.name);
      else
        out.arguments.push_back({field.name, {"args", field.name}, field.type, field.unreadable.empty()});
    }
  }

  // The action sets the spans later.
  static syntax::AttachPoint attach_point(std::string_view provider, const std::vector<std::string>& parts) {
    syntax::Ast none;
    return syntax::Build{none, {}}.attach_point(provider, parts);
  }

  static TracePlace typed_place(std::string_view provider, const std::vector<std::string>& parts) {
    return {.points = {attach_point(provider, parts)}, .typed = {}, .plain = {}};
  }

  // ---- Functions of programs that a wildcard matches

  // By file, name and address: a file may have several functions of one name.
  using Function = std::tuple<std::string, std::string, uint64_t>;
  static Function function_of(const spec::BoundProbe& bound) {
    return {bound.probe.target, bound.probe.function, bound.probe.address};
  }

  // Functions with the same arguments and result share an action. None if there are too many kinds of functions.
  std::vector<TraceProbes> by_signature(const spec::Provider& provider, const std::vector<std::string>& parts) {
    constexpr size_t kMostSignatures = 64;
    source::Diagnostics ignored;
    source::Diagnostics of_returns;
    const auto bind_all = [&](const spec::Provider& row, bool has_types) {
      return run::bind_probes(e_, e_.config, row, parts, uses(has_types), &row == &provider ? ignored : of_returns);
    };
    const spec::Provider& returns = *provider.return_provider;
    std::map<Function, spec::BoundProbe> entries;  // those with debug information that have arguments
    for (spec::BoundProbe& each : bind_all(provider, true)) entries.try_emplace(function_of(each), std::move(each));
    Leaves leaves;
    for (spec::BoundProbe& each : bind_all(returns, true))
      leaves.emplace(std::pair(each.probe.target, each.probe.function), std::move(each));
    // Functions whose result cannot be read return nevertheless.
    for (spec::BoundProbe& each : bind_all(returns, false))
      if (leaves_at(each, leaves) == leaves.end())
        leaves.emplace(std::pair(each.probe.target, each.probe.function), std::move(each));
    std::map<std::string, TraceProbes> groups;
    for (const spec::BoundProbe& plain : bind_all(provider, false)) {
      const auto entry = entries.find(function_of(plain));
      std::vector<spec::BoundProbe> leave = leaves_of(plain, leaves);
      const bool leaves_out = std::ranges::any_of(leave, [&](const auto& each) { return is_unsafe(each); });
      if (leaves_out) leave.clear();
      TraceProbes one;
      if (entry != entries.end()) add_arguments(one, context_of(provider, entry->second, true));
      if (!leave.empty()) add_result(one, returns, leave.front(), true);
      if (!leave.empty()) one.has_frames = have_frames(returns, leave, true);
      TraceProbes& group = groups.try_emplace(signature(one, !leave.empty()), one).first->second;
      if (group.why_no_result.empty()) group.why_no_result = one.why_no_result;
      if (groups.size() > kMostSignatures) return {};
      if (leaves_out) group.unsafe.push_back(plain.probe.function);
      append(group.entry, plain, entry != entries.end() ? entry->second : plain);
      for (const spec::BoundProbe& each : leave) append(group.leave, each, each);
    }
    for (const source::Diagnostic& each : of_returns.all())
      if (run::is_about_returns(each) && (names_return_ || each.id != "stops-exceptions")) e_.diagnostics.add(each);
    std::vector<TraceProbes> out;
    for (auto& [key, group] : groups) out.push_back(std::move(group));
    return out;
  }

  using Leaves = std::multimap<std::pair<std::string, std::string>, spec::BoundProbe>;

  static Leaves::iterator leaves_at(const spec::BoundProbe& bound, Leaves& leaves) {
    const auto [begin, end] = leaves.equal_range(std::pair(bound.probe.target, bound.probe.function));
    const auto same =
        std::find_if(begin, end, [&](const auto& each) { return each.second.probe.address == bound.probe.address; });
    return same == end ? leaves.end() : same;
  }

  // Takes the probes of its returns out of `leaves`. Those at return instructions tell how far from the entry they are.
  static std::vector<spec::BoundProbe> leaves_of(const spec::BoundProbe& entry, Leaves& leaves) {
    std::vector<spec::BoundProbe> out;
    auto [each, end] = leaves.equal_range(std::pair(entry.probe.target, entry.probe.function));
    while (each != end) {
      const program::Probe& probe = each->second.probe;
      const bool is_of_entry = probe.address - probe.offset == entry.probe.address;
      if (is_of_entry) out.push_back(std::move(each->second));
      each = is_of_entry ? leaves.erase(each) : std::next(each);
    }
    return out;
  }

  static void append(TracePlace& place, const spec::BoundProbe& plain, const spec::BoundProbe& typed) {
    place.points.push_back(attach_point(plain.probe.provider, {plain.probe.target, plain.probe.function}));
    place.plain.push_back(plain);
    place.typed.push_back(typed);
  }

  // Texts of a file one behind the other, so that no two lists are equal.
  static std::string sized(const std::string& text) { return fmt::format("{}:{}", text.size(), text); }

  std::string signature(const TraceProbes& probes, bool has_leave) {
    std::string out = fmt::format("{} {} {}", has_leave, probes.result.is_there(), probes.has_frames);
    for (const TraceArgument& each : probes.arguments)
      out += fmt::format(",{} {} {}", sized(types::to_string(e_.types, each.type)), sized(each.name), each.is_readable);
    return out;
  }

  std::vector<spec::BoundProbe> bind(const spec::Provider& provider, const std::vector<std::string>& parts,
                                     bool has_types, source::Diagnostics& diagnostics) {
    return run::bind_probes(e_, config_, provider, parts, uses(has_types), diagnostics);
  }

  static spec::Uses uses(bool has_types) { return {.args = has_types, .retval = has_types}; }

  spec::ProbeContext context_of(const spec::Provider& provider, const spec::BoundProbe& bound, bool has_types) {
    return run::context_of(e_, provider, bound, uses(has_types));
  }

  // `retval`; none if probes cannot read the result, or if the function returns nothing, as its debug information
  // tells: the type of a result comes from there.
  void add_result(TraceProbes& out, const spec::Provider& provider, const spec::BoundProbe& bound, bool has_types) {
    out.result = {};
    // A wildcard leaves out what cannot be read, and is bound without types then.
    spec::BoundProbe typed = bound;
    if (has_types && provider.find_type != nullptr && !typed.share.layout) typed.share.layout = "";
    const auto result = context_of(provider, typed, has_types).retval;
    if (!result) return;
    out.why_no_result = result->unreadable;
    if (!result->unreadable.empty()) return;
    const bool is_typed = result->recipe.kind == spec::Recipe::Kind::kLocation;
    // Without a type, a number that may be negative, as most results are that are no addresses.
    if (is_typed || provider.find_type == nullptr || !has_debug_info(bound.probe))
      out.result = {"retval", "", is_raw_word(*result) ? e_.types.int64() : types::TypeId{}};
  }

  bool is_raw_word(const spec::ContextField& result) const {
    return result.recipe.kind == spec::Recipe::Kind::kContext && result.type == e_.types.uint64();
  }

  bool has_debug_info(const program::Probe& probe) {
    const auto file = e_.symbols.elf_file(probe.target);
    const auto debug = file ? (*file)->debug_info() : tl::unexpected(file.error());
    const auto address = debug ? (*file)->address_of_offset(probe.address) : std::nullopt;
    return address && (*debug)->knows(*address);
  }

  // See TraceProbes. A function that ends in a jump to another one has its frame, and returns by the address.
  bool have_frames(const spec::Provider& provider, const std::vector<spec::BoundProbe>& returns, bool has_types) {
    const auto is_at_instruction = [](const spec::BoundProbe& each) { return probes::is_at_return(each.probe); };
    return std::ranges::all_of(returns, is_at_instruction) && context_of(provider, returns.front(), has_types).frame;
  }

  bool is_unsafe(const spec::BoundProbe& of_return) const {
    return !names_return_ && probes::stops_exceptions(of_return.probe);
  }

  // The provider of returns takes the same place.
  void add_return(TraceProbes& out, const spec::BoundProbe& entry, const std::vector<std::string>& parts,
                  bool has_types) {
    const spec::Provider* begins = e_.registry.find_provider(entry.probe.provider);
    const spec::Provider* provider = begins ? begins->return_provider : nullptr;
    if (!provider || entry.probe.offset != 0) return;
    source::Diagnostics ignored;
    const std::vector<spec::BoundProbe> bound = bind(*provider, parts, has_types, ignored);
    if (bound.empty()) return;
    for (const spec::BoundProbe& each : bound)
      if (is_unsafe(each)) out.unsafe.push_back(each.probe.function);
    if (!out.unsafe.empty()) return;
    out.leave = typed_place(provider->name, parts);
    add_result(out, *provider, bound[0], has_types);
    out.has_frames = have_frames(*provider, bound, has_types);
  }

  static tl::unexpected<Error> nothing_there(const std::string& place, const source::Diagnostics& diagnostics) {
    if (diagnostics.all().empty()) return fail(fmt::format("nothing matches `{}`", place), 0, "espy -l lists probes");
    const source::Diagnostic& first = diagnostics.all().front();
    return fail(first.message, 0, first.hint);
  }

  bool names_return_;
  run::Environment& e_;
  spec::Config config_;
};

}  // namespace

Result<std::vector<TraceProbes>> find_trace_probes(const TraceTarget& target, bool names_return,
                                                   run::Environment& environment) {
  return Finder(names_return, environment).find(target);
}

}  // namespace espy::trace
