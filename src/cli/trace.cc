// espy trace: calls and events without a program. It writes one and runs it the ordinary way; `--dump=script` shows it.
//
// What a probe has to show is asked of its provider: it binds the attach point, and its context names the arguments and
// their types. Each argument becomes a variable, so that `skb->len` of a target is `$skb->len` in the script.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/strings.h"
#include "cli/environment.h"
#include "cli/pipeline.h"
#include "cli/trace_target.h"

namespace espy::cli {

namespace {

constexpr uint32_t kMaxStructBytes = 12 * 1024;  // of what is shown behind a pointer

struct Argument {
  std::string name;
  std::string source;  // `args.skb`, `(struct sk_buff *)arg0`
  types::TypeId type;  // invalid: unknown
};

// What a target stands for.
struct Probes {
  std::string entry;  // "fentry:vmlinux:vfs_read"
  std::string leave;  // "fexit:vmlinux:vfs_read"; empty: an event, which has no end
  std::string name;   // as it is shown, a literal; empty: a wildcard's, whatever `func` is
  std::vector<Argument> arguments;
  std::string result;     // "retval", "(int32)retval"; empty: it returns nothing
  std::string prototype;  // in C, where there is one
};

std::string literal(std::string_view text) { return '"' + escape(text) + '"'; }

// Of a format that prints just this.
std::string format_literal(std::string_view text) {
  return literal(fmt::format("{}", fmt::join(split(text, '%'), "%%")));
}

// ---- From targets to probes -----------------------------------------------------------------------------------------

class Finder {
 public:
  explicit Finder(Environment& environment) : e_(environment) {}

  Result<Probes> find(const TraceTarget& target) {
    const std::vector<std::string_view> words = split(target.place, ':');
    std::vector<std::string> parts(words.begin(), words.end());
    if (const spec::Provider* provider = e_.registry.find_provider(parts[0]); provider && parts.size() > 1)
      return from_provider(*provider, {parts.begin() + 1, parts.end()});
    if (parts.size() == 1) return kernel_function(parts[0], "");
    const bool is_path = parts[0].find('/') != std::string::npos;
    if (!is_path && parts.size() == 2 && !e_.kernel->tracepoints(parts[0], parts[1]).empty())
      return from_provider(*e_.registry.find_provider("tracepoint"), parts);
    if (!is_path && parts.size() == 2 && e_.kernel->c_prototype(parts[1], parts[0]))
      return kernel_function(parts[1], parts[0]);
    return from_provider(*e_.registry.find_provider("uprobe"), parts);
  }

 private:
  // ---- The kernel's functions: by trampolines, or by kprobes with the types that BTF has for them
  Result<Probes> kernel_function(const std::string& name, const std::string& module) {
    const bool is_wildcard = has_wildcard(name);
    const std::string place = module.empty() ? name : module + ":" + name;
    if (is_wildcard) {
      const bool by_kprobe = e_.kernel->has(kernel::Feature::kKprobe);
      return Probes{.entry = (by_kprobe ? "kprobe:" : "fentry:") + place,
                    .leave = (by_kprobe ? "kretprobe:" : "fexit:") + place};
    }
    const auto prototype = e_.kernel->find_function(e_.types, name, module);
    const bool is_traced = !e_.kernel->functions(name).empty();
    if (!prototype && !is_traced && !e_.kernel->symbol_address(name)) return unknown_function(name);
    const bool by_trampoline = prototype && e_.kernel->has(kernel::Feature::kFentry) &&
                               !e_.kernel->find_functions(nullptr, name, prototype->module).empty();
    if (by_trampoline) return from_provider(*e_.registry.find_provider("fentry"), {prototype->module, name});
    Probes out{.entry = "kprobe:" + place, .leave = "kretprobe:" + place, .name = name};
    if (prototype) add_typed_words(out, *prototype);
    return out;
  }

  void add_typed_words(Probes& out, const kernel::FunctionPrototype& prototype) {
    const size_t in_registers = e_.kernel->arch().argument_offsets.size();
    size_t index = 0;
    for (const types::Member& parameter : prototype.parameters) {
      if (index == in_registers || e_.types[parameter.type].size_bytes > 8) break;  // what follows lies elsewhere
      const std::string word = fmt::format("arg{}", index++);
      const bool has_name = is_nameable(parameter.type);
      out.arguments.push_back(
          {parameter.name, has_name ? cast(parameter.type, word) : word, has_name ? parameter.type : types::TypeId{}});
    }
    if (e_.types[prototype.result].kind != types::Kind::kVoid)
      out.result = is_nameable(prototype.result) ? cast(prototype.result, "retval") : "retval";
    out.prototype = e_.kernel->c_prototype(prototype.name, prototype.module).value_or("");
  }

  std::string cast(types::TypeId type, const std::string& word) {
    const std::string name = types::to_string(e_.types, type);
    return name == "uint64" ? word : fmt::format("({}){}", name, word);
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

  Result<Probes> unknown_function(const std::string& name) {
    const std::vector<std::string> known = e_.kernel->functions("*");
    const std::vector<std::string_view> candidates(known.begin(), known.end());
    const std::string near = nearest(name, candidates);
    return fail(fmt::format("the kernel has no function `{}`", name), 0,
                near.empty() ? "a function of a program is written FILE:FUNCTION, a tracepoint t:CATEGORY:EVENT"
                             : fmt::format("did you mean `{}`?", near));
  }

  // ---- All others: the provider says what there is to see
  Result<Probes> from_provider(const spec::Provider& provider, const std::vector<std::string>& parts) {
    Probes out{.entry = std::string(provider.name) + ":" + fmt::format("{}", fmt::join(quoted_parts(parts), ":"))};
    source::Diagnostics diagnostics;
    bool has_types = true;  // a program may have no debug information
    std::vector<spec::BoundProbe> bound = bind(provider, parts, has_types, diagnostics);
    if (bound.empty()) {
      source::Diagnostics ignored;
      has_types = false;
      bound = bind(provider, parts, has_types, ignored);
    }
    if (bound.empty()) return nothing_there(out.entry, diagnostics);
    const std::string& function = bound[0].probe.function;
    const bool is_wildcard = has_wildcard(parts.back());
    if (!is_wildcard) out.name = function.empty() ? parts.back() : function;
    const spec::ProbeContext context = context_of(provider, bound[0], has_types);
    if (context.boundary == spec::CallBoundary::kEntry) add_return(out, bound[0], parts, has_types);
    if (is_wildcard) return out;
    for (const spec::ContextField& field : context.args)
      out.arguments.push_back({field.name, "args." + field.name, field.type});
    const bool is_of_kernel = context.pointers == types::AddressSpace::kKernel;
    if (context.args.empty() && !out.leave.empty() && is_of_kernel)
      if (const auto prototype = e_.kernel->find_function(e_.types, function)) add_typed_words(out, *prototype);
    const bool has_operands = context.args.empty() && context.boundary == spec::CallBoundary::kNone;
    for (const spec::ContextField& field : context.arguments)
      if (has_operands) out.arguments.push_back({field.name, field.name, field.type});
    out.prototype = e_.kernel->c_prototype(function, bound[0].probe.target).value_or("");
    return out;
  }

  // Names with colons or blanks in them stay one part.
  static std::vector<std::string> quoted_parts(const std::vector<std::string>& parts) {
    std::vector<std::string> out;
    for (const std::string& part : parts)
      out.push_back(part.find_first_of(" :,{\"") == std::string::npos ? part : literal(part));
    return out;
  }

  std::vector<spec::BoundProbe> bind(const spec::Provider& provider, const std::vector<std::string>& parts,
                                     bool has_types, source::Diagnostics& diagnostics) {
    const syntax::AttachPoint point;
    spec::BindRequest request{.point = point,
                              .parts = parts,
                              .kernel = *e_.kernel,
                              .types = e_.types,
                              .symbols = &e_.symbols,
                              .config = e_.config,
                              .diagnostics = diagnostics,
                              .uses_args = has_types,
                              .uses_context = true,
                              .uses_retval = has_types};
    return provider.bind(request);
  }

  spec::ProbeContext context_of(const spec::Provider& provider, const spec::BoundProbe& bound, bool has_types) {
    spec::ContextRequest request{.probes = std::span(&bound.probe, 1),
                                 .share = bound.share,
                                 .kernel = *e_.kernel,
                                 .types = e_.types,
                                 .uses_args = has_types,
                                 .symbols = &e_.symbols,
                                 .uses_retval = has_types};
    return provider.context(request);
  }

  // The provider of returns takes the same place.
  void add_return(Probes& out, const spec::BoundProbe& entry, const std::vector<std::string>& parts, bool has_types) {
    const spec::Provider* begins = e_.registry.find_provider(entry.probe.provider);
    const spec::Provider* provider = begins ? begins->return_provider : nullptr;
    if (!provider || entry.probe.offset != 0) return;
    source::Diagnostics ignored;
    const std::vector<spec::BoundProbe> bound = bind(*provider, parts, has_types, ignored);
    if (bound.empty()) return;
    out.leave = std::string(provider->name) + out.entry.substr(out.entry.find(':'));
    if (context_of(*provider, bound[0], has_types).retval) out.result = "retval";
  }

  static tl::unexpected<Error> nothing_there(const std::string& place, const source::Diagnostics& diagnostics) {
    if (diagnostics.all().empty()) return fail(fmt::format("nothing matches `{}`", place), 0, "espy -l lists probes");
    const source::Diagnostic& first = diagnostics.all().front();
    return fail(first.message, 0, first.hint);
  }

  Environment& e_;
};

// ---- From probes to a script ----------------------------------------------------------------------------------------

class ScriptWriter {
 public:
  ScriptWriter(Environment& environment, const TraceOptions& options) : e_(environment), options_(options) {}

  Status add(const TraceTarget& target, const Probes& probes) {
    const bool has_list = !target.values.empty() || target.wants_return;
    // Only the entry, only the return, or both; a graph and an order need both.
    const bool is_call = !probes.leave.empty();
    const bool needs_both = options_.is_graph || options_.is_ordered || options_.slower_than_ns != 0;
    const bool wants_entry = !is_call || needs_both || !has_list || !target.values.empty();
    const bool wants_return = is_call && (needs_both || !has_list || target.wants_return);
    is_pair_ = wants_entry && wants_return;
    if (!target.results.empty() && (is_pair_ || !is_call))
      return fail(fmt::format("`{}`: what is returned is not known yet when a call begins", target.text), 0,
                  "compare `return` alone, which shows the returns");
    const bool is_chosen = wants_return && (!target.filters.empty() || (options_.is_ordered && count_ > 0));
    add_entry(target, probes, wants_entry, is_chosen);
    if (wants_return) add_return(target, probes, is_chosen);
    if (!order_.empty()) order_ += " ";
    order_ += probes.name;
    ++count_;
    return {};
  }

  std::string text() const {
    const char* layout = options_.is_graph ? "graph" : "columns";
    std::string config = fmt::format(
        "config = {{\n  span_layout = \"{}\";\n  print_layout = \"c\";\n  print_zeros = false;\n  print_addresses = "
        "true;\n"
        "  print_maps_on_exit = false;\n",
        layout);
    if (options_.depth != 0) config += fmt::format("  span_depth = {};\n", options_.depth);
    if (options_.slower_than_ns != 0) config += fmt::format("  span_slower_than = {};\n", options_.slower_than_ns);
    if (options_.events != 0) config += fmt::format("  span_count = {};\n", options_.events);
    if (options_.is_ordered) config += fmt::format("  span_order = \"{}\";\n", order_);
    return config + "}\n" + actions_;
  }

 private:
  void add_entry(const TraceTarget& target, const Probes& probes, bool wants_entry, bool is_chosen) {
    std::vector<std::string> names;
    for (const Argument& argument : probes.arguments) names.push_back(argument.name);
    std::string values;
    if (wants_entry)
      for (const std::string& value : target.has_list && !shows_all(target) ? chosen(target, names) : all_of(probes))
        values += ", " + value;
    std::vector<std::string> conditions;
    for (const std::string& filter : target.filters) conditions.push_back(with_variables(filter, names));
    if (options_.is_ordered && count_ > 0)
      conditions.insert(conditions.begin(), fmt::format("@open{}[tid] > 0", count_ - 1));

    std::string emit;
    if (options_.is_ordered) emit += fmt::format("@open{}[tid]++;\n", count_);
    if (is_chosen) emit += fmt::format("@chosen{}[tid, $depth] = true;\n", count_);
    if (wants_entry) emit += fmt::format("{}({}{});\n", is_pair_ ? "span_enter" : "instant", name_of(probes), values);
    if (emit.empty()) return;

    std::string body;
    for (const Argument& argument : probes.arguments)
      if (is_used(argument.name, values, conditions))
        body += fmt::format("${} = {};\n", argument.name, argument.source);
    if (is_chosen) body += fmt::format("@depth{0}[tid]++;\n$depth = @depth{0}[tid];\n", count_);
    actions_ += action(probes.entry, body + only_if(conditions, emit));
  }

  void add_return(const TraceTarget& target, const Probes& probes, bool is_chosen) {
    const bool shows_result = !probes.result.empty() && (!target.has_list || shows_all(target) || target.wants_return);
    const std::string result = shows_result ? ", (retval = $retval)" : "";
    const std::string show = is_pair_ ? fmt::format("span_exit(\"\"{});\n", result)
                                      : fmt::format("instant({}{});\n", name_of(probes), result);
    std::string emit = options_.is_ordered ? fmt::format("@open{}[tid]--;\n", count_) : "";
    emit += only_if(target.results, show);
    if (is_chosen) {
      emit = fmt::format(
          "$depth = @depth{0}[tid];\nif (has_key(@chosen{0}, (tid, $depth))) {{\n"
          "  delete(@chosen{0}, (tid, $depth));\n{1}}}\n"
          "if ($depth <= 1) {{\n  delete(@depth{0}, tid);\n}} else {{\n  @depth{0}[tid]--;\n}}\n",
          count_, indented(emit));
    }
    if (shows_result) emit.insert(0, fmt::format("$retval = {};\n", probes.result));
    actions_ += action(probes.leave, emit);
  }

  static std::string only_if(const std::vector<std::string>& conditions, const std::string& then) {
    if (conditions.empty()) return then;
    const bool is_one = conditions.size() == 1;
    const std::string all = is_one ? conditions[0] : fmt::format("({})", fmt::join(conditions, ") && ("));
    return fmt::format("if ({}) {{\n{}}}\n", all, indented(then));
  }

  // Only filters: everything is shown.
  static bool shows_all(const TraceTarget& target) {
    return target.values.empty() && !target.wants_return && !target.filters.empty();
  }

  static std::vector<std::string> chosen(const TraceTarget& target, const std::vector<std::string>& names) {
    std::vector<std::string> out;
    for (const std::string& value : target.values) out.push_back(with_variables(value, names));
    return out;
  }

  // Every argument, and what pointers to structs and strings lead to; a graph has a line for all.
  std::vector<std::string> all_of(const Probes& probes) {
    std::vector<std::string> out;
    for (const Argument& argument : probes.arguments) {
      const std::string variable = "$" + argument.name;
      if (!argument.type || e_.types[argument.type].kind != types::Kind::kPointer) {
        out.push_back(variable);
        continue;
      }
      const types::Type pointer = e_.types[argument.type];
      e_.kernel->complete(e_.types, pointer.element);
      const types::Type& element = e_.types[pointer.element];
      if (element.kind == types::Kind::kInt && element.char_like && is_string(probes, argument)) {
        out.push_back(string_of(argument, pointer.space));
        continue;
      }
      out.push_back(variable);
      const bool is_struct = element.kind == types::Kind::kStruct && element.complete && element.size_bytes > 0;
      if (is_struct && element.size_bytes <= kMaxStructBytes && !options_.is_graph) out.push_back("*" + variable);
    }
    return out;
  }

  // A function of the kernel that takes `char *` may write there; `const char *` is text, if anything.
  static bool is_string(const Probes& probes, const Argument& argument) {
    return probes.prototype.empty() || probes.prototype.find("const char *" + argument.name) != std::string::npos;
  }

  // BTF does not tell whether a function of the kernel is given the user's string or the kernel's own.
  static std::string string_of(const Argument& argument, types::AddressSpace space) {
    if (space == types::AddressSpace::kUser) return fmt::format("str(${})", argument.name);
    return fmt::format("({0} = (int64)${0} < 0 ? str(kptr(${0})) : str(uptr(${0})))", argument.name);
  }

  static bool is_used(const std::string& name, const std::string& values, const std::vector<std::string>& conditions) {
    const auto names = [&](const std::string& text) { return text.find("$" + name) != std::string::npos; };
    return names(values) || std::ranges::any_of(conditions, names);
  }

  static std::string name_of(const Probes& probes) {
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
  bool is_pair_ = false;  // of the target at hand: both its ends are shown
  size_t count_ = 0;      // of targets
  std::string order_;
  std::string actions_;
};

Result<std::string> write_script(const Options& options, Environment& environment) {
  Finder finder(environment);
  ScriptWriter writer(environment, options.trace);
  for (const std::string& text : options.targets) {
    const TraceTarget target = TRY(parse_trace_target(text));
    TRY_STATUS(writer.add(target, TRY(finder.find(target))));
  }
  return writer.text();
}

}  // namespace

int trace(const Options& options, Environment& environment, const PrepareSession& prepare) {
  const auto script = write_script(options, environment);
  if (!script) {
    complain(script.error());
    return EXIT_FAILURE;
  }
  Options with_script = options;
  with_script.mode = Mode::kRun;
  with_script.program_text = *script;
  return run_program(with_script, environment, prepare);
}

int trace(const Options& options) {
  const auto environment = open_to_run(options);
  if (environment) return trace(options, **environment, {});
  complain(environment.error());
  return EXIT_FAILURE;
}

}  // namespace espy::cli
