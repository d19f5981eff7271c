// The provider of a target's probe decides what can be shown: it binds the attach point, and its context names the
// arguments and their types. Functions of the kernel are traced by trampolines, or by kprobes with the types of BTF.
#include "cli/trace_probes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/strings.h"
#include "cli/attach_text.h"
#include "cli/bind_probes.h"
#include "symbols/debug_info.h"
#include "symbols/demangle.h"

namespace espy::cli {

namespace {

class Finder {
 public:
  explicit Finder(Environment& environment) : e_(environment), config_(environment.config) {
    config_.cpp_demangle = false;  // functions are shown without their parameters, which the symbol tells apart
  }

  Result<std::vector<TraceProbes>> find(const TraceTarget& target) {
    const std::vector<std::string> parts = split_attach_point(target.place);
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
  Result<std::vector<TraceProbes>> kernel_function(const std::string& name, const std::string& module) {
    const bool is_wildcard = has_wildcard(name);
    const std::string place = module.empty() ? name : module + ":" + name;
    if (is_wildcard) {
      const bool by_kprobe = e_.kernel->has(kernel::Feature::kKprobe);
      return std::vector{TraceProbes{.entry = (by_kprobe ? "kprobe:" : "fentry:") + place,
                                     .leave = (by_kprobe ? "kretprobe:" : "fexit:") + place}};
    }
    const auto prototype = e_.kernel->find_function(e_.types, name, module);
    const bool is_traced = !e_.kernel->functions(name).empty();
    if (!prototype && !is_traced && !e_.kernel->symbol_address(name)) return unknown_function(name);
    const bool by_trampoline = prototype && e_.kernel->has(kernel::Feature::kFentry) &&
                               !e_.kernel->find_functions(nullptr, name, prototype->module).empty();
    if (by_trampoline) return from_provider(*e_.registry.find_provider("fentry"), {prototype->module, name});
    TraceProbes out{.entry = "kprobe:" + place, .leave = "kretprobe:" + place, .name = name, .function = name};
    if (prototype) add_typed_words(out, *prototype);
    return std::vector{std::move(out)};
  }

  void add_typed_words(TraceProbes& out, const kernel::FunctionPrototype& prototype) {
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
    const bool is_unsigned_char = e_.types[type].char_like && !e_.types[type].is_signed;
    const std::string name = is_unsigned_char ? "uint8" : types::to_string(e_.types, type);
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

  tl::unexpected<Error> unknown_function(const std::string& name) {
    const std::vector<std::string> known = e_.kernel->functions("*");
    const std::vector<std::string_view> candidates(known.begin(), known.end());
    const std::string near = nearest(name, candidates);
    return fail(fmt::format("the kernel has no function `{}`", name), 0,
                near.empty() ? "a function of a program is written FILE:FUNCTION, a tracepoint t:CATEGORY:EVENT"
                             : fmt::format("did you mean `{}`?", near));
  }

  // ---- All other probes
  Result<std::vector<TraceProbes>> from_provider(const spec::Provider& provider,
                                                 const std::vector<std::string>& parts) {
    TraceProbes out{.entry = attach_point(provider, parts)};
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
    const auto is_other = [&](const spec::BoundProbe& each) { return each.probe.function != function; };
    const bool is_wildcard = has_wildcard(parts.back()) || std::ranges::any_of(bound, is_other);
    if (is_wildcard && provider.find_type != nullptr && provider.return_provider != nullptr)
      if (auto groups = by_signature(provider, parts, bound); !groups.empty()) return groups;
    if (!is_wildcard) {
      out.function = function;
      out.name = function.empty() ? parts.back() : symbols::demangle(function, symbols::DemangleStyle::kName);
    }
    const spec::ProbeContext context = context_of(provider, bound[0], has_types);
    if (context.boundary == spec::CallBoundary::kEntry) add_return(out, bound[0], parts, has_types);
    if (is_wildcard) {
      out.result.clear();
      return std::vector{std::move(out)};
    }
    add_arguments(out, context);
    const bool is_of_kernel = context.pointers == types::AddressSpace::kKernel;
    if (context.args.empty() && !out.leave.empty() && is_of_kernel)
      if (const auto prototype = e_.kernel->find_function(e_.types, function)) add_typed_words(out, *prototype);
    const bool has_operands = context.args.empty() && context.boundary == spec::CallBoundary::kNone;
    for (const spec::ContextField& field : context.arguments)
      if (has_operands) out.arguments.push_back({field.name, field.name, field.type});
    out.prototype = e_.kernel->c_prototype(function, bound[0].probe.target).value_or("");
    return std::vector{std::move(out)};
  }

  static void add_arguments(TraceProbes& out, const spec::ProbeContext& context) {
    for (const spec::ContextField& field : context.args)
      out.arguments.push_back({field.name, "args." + field.name, field.type, field.unreadable.empty()});
  }

  static std::string attach_point(const spec::Provider& provider, const std::vector<std::string>& parts) {
    return fmt::format("{}:{}", provider.name, fmt::join(quoted_parts(parts), ":"));
  }

  // ---- Functions of programs that a wildcard matches

  using ByFunction = std::map<std::pair<std::string, std::string>, spec::BoundProbe>;  // by file and name
  static ByFunction by_function(const std::vector<spec::BoundProbe>& bound) {
    ByFunction out;
    for (const spec::BoundProbe& each : bound) out.try_emplace({each.probe.target, each.probe.function}, each);
    return out;
  }

  // Functions with the same arguments and result share an action. None if there are too many kinds of functions.
  // `typed`: those with debug information that have arguments.
  std::vector<TraceProbes> by_signature(const spec::Provider& provider, const std::vector<std::string>& parts,
                                        const std::vector<spec::BoundProbe>& typed) {
    constexpr size_t kMostSignatures = 64;
    source::Diagnostics ignored;
    const spec::Provider& returns = *provider.return_provider;
    const ByFunction entries = by_function(typed), leaves = by_function(bind(returns, parts, true, ignored));
    std::map<std::string, TraceProbes> groups;
    for (const auto& [function, bound] : by_function(bind(provider, parts, false, ignored))) {
      const std::vector<std::string> place = {function.first, function.second};
      const auto entry = entries.find(function), leave = leaves.find(function);
      TraceProbes one;
      if (entry != entries.end()) add_arguments(one, context_of(provider, entry->second, true));
      if (leave != leaves.end()) one.result = result_of(returns, leave->second, true);
      TraceProbes& group = groups.try_emplace(signature(one, leave != leaves.end()), one).first->second;
      if (groups.size() > kMostSignatures) return {};
      const auto append = [](std::string& list, const std::string& point) {
        list += (list.empty() ? "" : ",\n") + point;
      };
      append(group.entry, attach_point(provider, place));
      if (leave != leaves.end()) append(group.leave, attach_point(returns, place));
    }
    std::vector<TraceProbes> out;
    for (auto& [key, group] : groups) out.push_back(std::move(group));
    return out;
  }

  std::string signature(const TraceProbes& probes, bool has_leave) {
    std::string out = fmt::format("{} {}", has_leave, probes.result);
    for (const TraceArgument& each : probes.arguments)
      out += fmt::format(",{} {} {}", types::to_string(e_.types, each.type), each.name, each.is_readable);
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
    return bind_probes(e_, config_, provider, parts, has_types, diagnostics);
  }

  spec::ProbeContext context_of(const spec::Provider& provider, const spec::BoundProbe& bound, bool has_types) {
    return cli::context_of(e_, provider, bound, has_types);
  }

  // "retval"; "" if probes cannot read the result, or if the function returns nothing, as its debug information tells:
  // the type of a result comes from there.
  std::string result_of(const spec::Provider& provider, const spec::BoundProbe& bound, bool has_types) {
    const auto result = context_of(provider, bound, has_types).retval;
    if (!result || !result->unreadable.empty()) return "";
    const bool is_typed = result->recipe.kind == spec::Recipe::Kind::kLocation;
    return !is_typed && provider.find_type != nullptr && has_debug_info(bound.probe) ? "" : "retval";
  }

  bool has_debug_info(const program::Probe& probe) {
    const auto file = e_.symbols.elf_file(probe.target);
    const auto debug = file ? (*file)->debug_info() : tl::unexpected(file.error());
    const auto address = debug ? (*file)->address_of_offset(probe.address) : std::nullopt;
    return address && (*debug)->knows(*address);
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
    out.leave = std::string(provider->name) + out.entry.substr(out.entry.find(':'));
    out.result = result_of(*provider, bound[0], has_types);
  }

  static tl::unexpected<Error> nothing_there(const std::string& place, const source::Diagnostics& diagnostics) {
    if (diagnostics.all().empty()) return fail(fmt::format("nothing matches `{}`", place), 0, "espy -l lists probes");
    const source::Diagnostic& first = diagnostics.all().front();
    return fail(first.message, 0, first.hint);
  }

  Environment& e_;
  spec::Config config_;
};

}  // namespace

std::string literal(std::string_view text) { return '"' + escape(text) + '"'; }

Result<std::vector<TraceProbes>> find_trace_probes(const TraceTarget& target, Environment& environment) {
  return Finder(environment).find(target);
}

}  // namespace espy::cli
