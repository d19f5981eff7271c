// espy info: the prototype of a function, the layout of a type, the arguments of a probe, and how each can be traced.
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <set>

#include "base/strings.h"
#include "check/check.h"
#include "cli/command.h"
#include "cli/words.h"
#include "kernel/tracefs.h"
#include "load/hook_costs.h"
#include "probes/probe_support.h"
#include "run/attach_words.h"
#include "run/replay_host.h"
#include "run/run_script.h"
#include "symbols/demangle.h"
#include "syntax/parser.h"

namespace espy::cli {

namespace {

class Describer {
 public:
  explicit Describer(Environment& environment) : e_(environment) {}

  // Returns "" if the name is unknown.
  std::string describe(const std::string& name) {
    if (name.find(':') != std::string::npos) return probes(name);
    const std::string own = describe_word(name, e_.registry), found = functions(name) + types(name) + tracepoints(name);
    if (own.empty() && found.starts_with(kIndent)) return without_indent(found);
    return own + (own.empty() || found.empty() ? "" : "\n") + found;
  }

  // "did you mean `x`?", or "".
  std::string hint(const std::string& name) {
    const std::string near = name.find(':') == std::string::npos ? near_name(name) : "";
    return near.empty() ? "`espy help info` says which names are known; `espy list WORD` searches in names"
                        : fmt::format("did you mean `{}`?", near);
  }

 private:
  static constexpr std::string_view kIndent = "    ";  // of probes below a prototype

  // Probes without a line above them.
  static std::string without_indent(std::string_view text) {
    std::string out;
    for (std::string_view line : split(text, '\n')) {
      if (line.starts_with(kIndent)) line.remove_prefix(kIndent.size());
      out += line;
      out += '\n';
    }
    out.pop_back();
    return out;
  }

  // ---- Functions and types of the kernel
  std::string functions(const std::string& name) {
    std::string out;
    std::vector<std::string> modules;
    for (const kernel::FunctionPrototype& function : e_.kernel->find_functions(nullptr, name, "*"))
      modules.push_back(function.module);
    if (modules.empty()) modules.emplace_back();  // it may have a prototype although it is not traceable
    for (const std::string& module : modules) {
      const auto prototype = e_.kernel->c_prototype(name, module);
      if (!prototype) continue;
      out += *prototype + "\n";
      if (!module.empty() && module != "vmlinux") out += fmt::format("    in module {}\n", module);
    }
    if (out.empty())  // without BTF
      for (const std::string& found : e_.kernel->functions(name))
        if (const probes::KernelFunction function = probes::split_module(found); function.module != "vmlinux")
          out += fmt::format("    in module {}\n", function.module);
    for (const spec::Provider* provider : e_.registry.providers())
      if (!provider->needs_target_to_list && !is_of_events(*provider))
        out += list(*provider, {name}, false, ":" + name);
    for (const std::string& module : modules) out += listable(name, module.empty() ? "vmlinux" : module);
    return out;
  }

  // What `espy trace` can show of a call: the arguments, the result, and the members of structs that arguments point
  // to.
  std::string listable(const std::string& name, const std::string& module) {
    const auto function = e_.kernel->find_function(e_.types, name, module);
    if (!function) return "";
    std::string words, members;
    const auto add = [&](const std::string& word) { words += (words.empty() ? "" : ", ") + word; };
    for (const types::Member& each : function->parameters) {
      if (each.name.empty()) continue;
      add(each.name);
      members += members_behind(each);
    }
    if (e_.types[function->result].kind != types::Kind::kVoid) add("return");
    return words.empty() ? "" : fmt::format("espy trace '{}({})'\n{}", name, words, members);
  }

  // "    file->f_mode, f_op, ...": the first members of the struct behind a pointer; "" for other arguments.
  std::string members_behind(const types::Member& argument) {
    constexpr size_t kMostMembers = 16;
    const types::Type& type = e_.types[argument.type];
    if (type.kind != types::Kind::kPointer || e_.types[type.element].kind != types::Kind::kStruct) return "";
    const types::TypeId element = type.element;
    e_.kernel->complete(e_.types, element);
    const types::Type& it = e_.types[element];
    std::vector<std::string> names;
    for (const types::Member& each : it.members)
      if (!each.name.empty()) names.push_back(each.name);
    if (names.empty()) return "";
    const size_t shown = std::min(names.size(), kMostMembers);
    std::string text = fmt::format("{}->{}", argument.name, join(std::span(names).first(shown), ", "));
    if (shown < names.size())
      text += fmt::format(", ... (`espy info '{} {}'` shows all)", it.is_union ? "union" : "struct", it.name);
    return fmt::format("{}{}\n", kIndent, run::wrapped(text, kIndent.size()));
  }

  std::string types(const std::string& name) {
    const auto text = e_.kernel->c_layout(name);
    return text ? *text + "\n" : "";
  }

  // ---- Probes with arguments
  // Tracepoints and their like, which have fields.
  static bool is_of_events(const spec::Provider& provider) {
    return provider.form.find("EVENT") != std::string_view::npos;
  }

  std::string tracepoints(const std::string& name) {
    std::string out;
    const bool is_word = name.find_first_of(" *") == std::string::npos;
    for (const spec::Provider* provider : e_.registry.providers())
      if (is_word && is_of_events(*provider)) out += list(*provider, {name}, true);
    if (is_word && out.empty())  // a system call by its name
      for (const std::string& event : e_.kernel->tracepoints("syscalls", "sys_*_" + name))
        if (event.ends_with("enter_" + name) || event.ends_with("exit_" + name)) out += probes("tracepoint:" + event);
    return out;
  }

  // Those whose names end in `ending`: some providers list all that they have.
  std::string list(const spec::Provider& provider, const std::vector<std::string>& parts, bool is_verbose,
                   std::string_view ending = "") {
    spec::ListRequest request{parts, is_verbose, *e_.kernel, e_.types, &e_.symbols, e_.config, true};
    std::string out;
    for (const spec::ListedProbe& probe : provider.list ? provider.list(request) : std::vector<spec::ListedProbe>()) {
      if (!probe.name.ends_with(ending)) continue;
      out += "    " + probe.name + "\n";
      for (const std::string& argument : probe.arguments) out += "        " + argument + "\n";
    }
    return out;
  }

  // An attach point; without a provider it is a tracepoint, or a function or mark of a file.
  std::string probes(const std::string& point) {
    const std::vector<std::string> all = run::split_attach_point(point);
    const std::vector<std::string> behind(all.begin() + 1, all.end());
    if (const spec::Provider* named = e_.registry.find_provider(all[0])) {
      const std::string prototype = behind.empty() ? "" : prototype_of(*named, behind);
      return prototype + list(*named, behind, true);
    }
    std::string out;
    for (const spec::Provider* provider : e_.registry.providers())
      if (is_of_events(*provider) || provider->needs_target_to_list) out += list(*provider, all, true);
    return user_prototypes(all) + out;
  }

  // "int main(int argc, char ** argv);" of each function of a file that has the name, by the debug information that
  // its probes have; "" where there is none. The listings have lines as "int argc: di" and "int retval: ax".
  std::string user_prototypes(const std::vector<std::string>& parts) {
    if (has_wildcard(parts.back())) return "";
    struct Prototype {
      std::string name, result = "void", parameters = {};
      bool is_known = false;
    };
    std::vector<Prototype> found;
    for (const spec::ListedProbe& probe : user_functions(parts)) {
      const std::string name = probe.name.substr(probe.name.find(':') + 1);
      if (found.empty() || std::ranges::find(found, name, &Prototype::name) == found.end()) found.push_back({name});
      Prototype& prototype = *std::ranges::find(found, name, &Prototype::name);
      for (const std::string& line : probe.arguments) {
        const std::string declared = line.substr(0, line.find(':'));
        prototype.is_known |= line.find(": ") != std::string::npos;
        constexpr std::string_view kResult = "retval";
        if (declared.ends_with(" retval") || declared.ends_with("*retval") || declared.ends_with("&retval")) {
          prototype.result = trim(std::string_view(declared).substr(0, declared.size() - kResult.size()));
        } else {
          prototype.parameters += (prototype.parameters.empty() ? "" : ", ") + declared;
        }
      }
    }
    std::string out;
    for (const auto& [name, result, parameters, is_known] : found)
      if (is_known)
        out += fmt::format("{}{}{}({});\n", result, result.ends_with('*') ? "" : " ", plain_function(name),
                           parameters.empty() ? "void" : parameters);
    return out;
  }

  // The probes at the entries and returns of functions of a file, without those at statements and at marks.
  std::vector<spec::ListedProbe> user_functions(const std::vector<std::string>& parts) {
    std::vector<spec::ListedProbe> out;
    for (const spec::Provider* entry : e_.registry.providers()) {
      if (!entry->needs_target_to_list || entry->return_provider == nullptr) continue;
      for (const spec::Provider* provider : {entry, entry->return_provider}) {
        spec::ListRequest request{parts, true, *e_.kernel, e_.types, &e_.symbols, e_.config, true};
        for (spec::ListedProbe& probe : provider->list(request))
          if (run::split_attach_point(probe.name).at(1).find('@') == std::string::npos) out.push_back(std::move(probe));
      }
    }
    return out;
  }

  // "shop::twice" of "./shop:cpp:\"shop::twice(int)\"": its parameters are shown with their names.
  static std::string plain_function(std::string_view place) {
    const std::vector<std::string> parts = run::split_attach_point(place);
    const std::string& function = parts.back();
    const std::string symbol = symbols::demangle(function, symbols::DemangleStyle::kName);
    return symbol != function ? symbol : std::string(symbols::name_of_signature(function));
  }

  std::string prototype_of(const spec::Provider& provider, const std::vector<std::string>& parts) {
    if (provider.needs_target_to_list || is_of_events(provider)) return "";
    const auto text = e_.kernel->c_prototype(parts.back(), parts.size() > 1 ? parts[0] : "");
    return text ? *text + "\n" : "";
  }

  // ---- Names that are near
  std::string near_name(const std::string& name) {
    std::vector<std::string> known = e_.kernel->functions("*");
    for (std::string& type : e_.kernel->struct_names("*"))
      known.push_back(name.find(' ') == std::string::npos ? type.substr(type.find(' ') + 1) : std::move(type));
    for (const std::string& event : e_.kernel->tracepoints("*", "*"))
      known.push_back(event.substr(event.find(':') + 1));
    const std::vector<std::string_view> candidates(known.begin(), known.end());
    const std::vector<std::string> own = known_words(e_.registry);
    const std::string near = nearest(name, std::vector<std::string_view>(own.begin(), own.end()));
    return near.empty() ? nearest(name, candidates) : near;
  }

  Environment& e_;
};

int describe(const Options& options, const Host& host) {
  const auto environment = host.open(options);
  if (!environment) return complain(environment.error());
  int status = EXIT_SUCCESS;
  Describer describer(**environment);
  for (const std::string& name : options.names) {
    const std::string text = describer.describe(name);
    std::fputs(printable(text).c_str(), stdout);
    if (!text.empty()) continue;
    status = complain({fmt::format("nothing is known as `{}`", name), 0, describer.hint(name)});
  }
  return status;
}

constexpr std::string_view kDescribeUsage[] = {"info NAME..."};
constexpr std::string_view kDescribeNotes =
    "NAME is a kernel function, a type such as `struct file`, a tracepoint, or\n"
    "FILE:FUNCTION, with wildcards; a builtin, a probe type, a config variable, an\n"
    "option, a command, a tool, a kernel feature, or the id of a diagnostic.\n";
constexpr std::string_view kDescribeCommon[] = {"pid", "debuginfo"};

constexpr Example kDescribeExamples[] = {
    {"espy info vfs_read", "show a prototype, and the probes for it"},
    {"espy info 'struct timespec64' sched_switch", "show the layout of a type, and the fields of a tracepoint"}};

}  // namespace

extern const Command kDescribe = {
    .word = "info",
    .summary = "explain any name: a function, type, probe, builtin, option",
    .topic = Topic::kLookUp,
    .operands = Operands::kNames,
    .usage = kDescribeUsage,
    .notes = kDescribeNotes,
    .common = kDescribeCommon,
    .examples = kDescribeExamples,
    .run = describe,
};

// ---- -l: lists probes. A pattern is an attach point with wildcards; without one all probes of the kernel are listed.

namespace {

// What a provider lists, as text; the number of probes is returned.
size_t list_provider(const spec::Provider& provider, std::span<const std::string> parts, Environment& e,
                     const Options& options) {
  if (provider.list == nullptr) return 0;
  spec::ListRequest request{parts, options.is_verbose, *e.kernel, e.types, &e.symbols, e.config};
  request.provider = &provider;
  const std::vector<spec::ListedProbe> found = provider.list(request);
  std::string out;
  for (const spec::ListedProbe& probe : found) {
    out += printable_line(probe.name) + "\n";
    for (const std::string& argument : probe.arguments) out += "    " + printable_line(argument) + "\n";
  }
  std::fputs(out.c_str(), stdout);
  return found.size();
}

// "struct qstr", "enum foo", "union bar": the C definitions of all that match; returns their number, or nullopt for
// what names no types.
std::optional<size_t> list_types(const std::string& pattern, Environment& e) {
  const size_t space = pattern.find(' ');
  const std::string_view tag = std::string_view(pattern).substr(0, space);
  if (space == std::string::npos || (tag != "struct" && tag != "union" && tag != "enum")) return std::nullopt;
  size_t count = 0;
  for (const std::string& name : e.kernel->struct_names(std::string_view(pattern).substr(space + 1))) {
    if (!name.starts_with(tag)) continue;
    const auto text = e.kernel->c_definition(name);
    if (text) std::fputs(("vmlinux: " + *text + "\n").c_str(), stdout);
    count += text.has_value() ? 1 : 0;
  }
  if (count == 0)
    complain({fmt::format("the kernel has no type `{}`", pattern), 0,
              e.kernel->has_btf() ? "" : "the kernel has no BTF, so its types are not known"});
  return count;
}

// `*:FILE:PATTERN`, whatever the type of probe: the functions and marks of the file. A pattern without a provider
// does not look into files otherwise, except into those of the process of -p.
bool names_a_file(std::span<const std::string> parts) {
  return parts.size() > 1 && parts[0].find('/') != std::string::npos;
}

size_t list_pattern(const std::string& pattern, Environment& e, const Options& options) {
  const std::vector<std::string> words = run::split_attach_point(pattern);
  const std::string_view wanted = words.size() == 1 && !words[0].empty() ? "*" : std::string_view(words[0]);
  const bool is_name = words.size() == 1 && e.registry.find_provider(words[0]) == nullptr;
  const std::vector<std::string> parts(words.begin() + (is_name ? 0 : 1), words.end());
  const spec::Provider* named = e.registry.find_provider(words[0]);
  const bool is_of_file = names_a_file(parts);
  size_t count = 0;
  for (const spec::Provider* provider : e.registry.providers()) {
    const bool is_wanted =
        named != nullptr ? provider == named
                         : glob_match(wanted, provider->name) &&
                               (is_of_file ? provider->needs_target_to_list
                                           : !provider->needs_target_to_list || !e.config.tracee.processes.empty());
    if (!is_wanted) continue;
    // A word is searched in all files of the process.
    const bool is_word = named == nullptr && words.size() == 1 && provider->needs_target_to_list;
    count += list_provider(*provider, is_word ? std::vector<std::string>{"*", parts[0]} : parts, e, options);
  }
  return count;
}

// Why nothing is found in the file that a pattern names; "" if it names none, or has nothing of that name.
std::string why_unreadable(const std::string& pattern, Environment& e) {
  const std::vector<std::string> words = run::split_attach_point(pattern);
  const std::span parts = std::span(words).subspan(1);
  const spec::Provider* named = e.registry.find_provider(words[0]);
  for (const spec::Provider* provider : e.registry.providers()) {
    const bool is_wanted = named != nullptr ? provider == named : names_a_file(parts);
    if (!is_wanted || !provider->needs_target_to_list || !provider->tell_similar) continue;
    spec::ListRequest request{parts, false, *e.kernel, e.types, &e.symbols, e.config};
    return provider->tell_similar(request);
  }
  return "";
}

int list_program(const Options& options, Environment& e) {
  const auto script = run::read_script(options, e.sources);
  if (!script) return complain(script.error());
  check::CheckRequest request = e.check_request();
  request.binding = spec::Binding::kList;
  syntax::Ast ast = run::parse_script(*script, request);
  const check::Checked checked = check::check(std::move(ast), request);
  if (report(e.diagnostics, e.sources, options)) return EXIT_FAILURE;
  std::set<std::string> shown;  // a mark may be at several places
  for (const program::Probe& probe : checked.probes) {
    if (!shown.insert(probe.name).second) continue;
    const spec::Provider* provider = e.registry.find_provider(probe.provider);
    const std::vector<std::string> words = run::split_attach_point(probe.name);
    const bool is_listed = options.is_verbose && provider != nullptr &&
                           list_provider(*provider, std::span(words).subspan(1), e, options) > 0;
    if (!is_listed) std::puts(printable_line(probe.name).c_str());
  }
  return EXIT_SUCCESS;
}

// Why nothing is found, or the probe type that is near.
std::string what_else(const std::string& pattern, Environment& e) {
  const std::string why = why_unreadable(pattern, e);
  const std::string type = run::split_attach_point(pattern)[0];
  if (!why.empty() || type == pattern || has_wildcard(type) || e.registry.find_provider(type) != nullptr) return why;
  std::vector<std::string_view> names;
  for (const spec::Provider* provider : e.registry.providers()) names.push_back(provider->name);
  const std::string near = nearest(type, names);
  return near.empty() ? "" : fmt::format("did you mean `{}{}`?", near, pattern.substr(type.size()));
}

int list_probes(const Options& options, const Host& host) {
  const auto environment = host.open(options);
  if (!environment) return complain(environment.error());
  Environment& e = **environment;
  if (options.script.text || options.script.file) return list_program(options, e);
  if (!options.argument.empty() && ::access(options.argument.c_str(), F_OK) == 0) {
    Options of_file = options;
    of_file.script.file = options.argument;
    return list_program(of_file, e);
  }
  size_t count = 0;
  bool has_all_types = true;
  const std::string search = options.argument.empty() ? "*" : options.argument;
  for (const std::string& each : run::split_unquoted(search, ',')) {
    const std::string pattern(trim(each));
    const auto types = list_types(pattern, e);
    count += types ? *types : list_pattern(pattern, e, options);
    has_all_types &= !types || *types > 0;
  }
  for (const std::string& reason : e.symbols.skipped_files().reasons) complain({reason});
  if (!has_all_types) return EXIT_FAILURE;
  if (!options.replay.files.empty() && options.is_verbose)
    if (const Status shown = run::show_recording(options.replay.files); !shown) return complain(shown.error());
  if (count > 0 || options.argument.empty()) return EXIT_SUCCESS;
  const bool is_file_name = options.argument.ends_with(".bt");
  const bool may_be_tracepoint = options.argument.starts_with('t') || options.argument.find(':') == std::string::npos;
  if (!options.replay.files.empty())
    return complain({fmt::format("no recorded probe matches `{}`", options.argument), 0, "espy -i FILE -l lists all"});
  if (!is_file_name && may_be_tracepoint && !run::can_read_tracefs())
    return complain({fmt::format("cannot look for `{}`: {}", options.argument, kernel::why_unreadable(*e.kernel)), 0,
                     kernel::how_to_read_tracefs(*e.kernel)});
  return complain({fmt::format("no probe matches `{}`", options.argument), 0,
                   is_file_name ? "there is no such file either" : what_else(options.argument, e)});
}

constexpr std::string_view kListUsage[] = {"list [PATTERN]", "list FILE.bt | -e 'PROGRAM'"};
constexpr std::string_view kListNotes =
    "PATTERN is an attach point with wildcards, or a word to search for. With a\n"
    "script, the probes of the script are listed. `-v` shows arguments and types.\n";
constexpr std::string_view kListCommon[] = {"verbose", "pid", "e", "probe-filter"};
constexpr Example kListExamples[] = {{"espy list 'tracepoint:sched:*'", "list tracepoints of the scheduler"},
                                     {"espy list -v 'uprobe:/bin/bash:read*'", "list functions of a program"}};

}  // namespace

extern const Command kList = {
    .word = "list",
    .summary = "list what can be traced",
    .topic = Topic::kLookUp,
    .option = {'l', "list", "", "the same as `espy list`"},
    .operands = Operands::kPattern,
    .usage = kListUsage,
    .notes = kListNotes,
    .common = kListCommon,
    .examples = kListExamples,
    .run = list_probes,
};

// ---- --info: the features of the running kernel, each found by trying it.

namespace {

// The kernel shows zeros to unprivileged processes (kernel.kptr_restrict).
bool shows_addresses() {
  std::FILE* symbols = std::fopen("/proc/kallsyms", "re");
  if (symbols == nullptr) return false;
  unsigned long long any = 0;
  char line[512];
  for (int i = 0; i < 100 && std::fgets(line, sizeof(line), symbols) != nullptr; ++i)
    any |= std::strtoull(line, nullptr, 16);
  std::fclose(symbols);
  return any != 0;
}

// From the file in securityfs; if it is missing, from what the kernel refuses.
std::string lockdown_line(kernel::Kernel& kernel) {
  const kernel::Lockdown state = kernel.lockdown();
  if (state != kernel::Lockdown::kUnknown) return fmt::format("{} ({})", kernel::name_of(state), kernel::kLockdownFile);
  if (!kernel.has(kernel::Feature::kProbeReadKernel))
    return fmt::format("confidentiality (no {}, but programs may not read kernel memory)", kernel::kLockdownFile);
  return fmt::format("not known to be on (no {}; programs may read kernel memory)", kernel::kLockdownFile);
}

int show_hook_costs(kernel::Kernel& kernel) {
  std::string out = "ns an event takes to reach an empty program and to return, measured on this machine now:\n\n";
  const load::HookCosts costs = load::measure_hook_costs(kernel);
  for (const load::HookCost& cost : costs.all()) {
    const std::string ns = cost.problem.empty() ? fmt::format("{:.0f}", cost.ns) : "-";
    out += fmt::format("  {:>8}  {}{}\n", ns, load::name_of(cost), cost.problem.empty() ? "" : ": " + cost.problem);
  }
  out += "\n`espy --cost SCRIPT` shows it beside the time of the programs\n";

  std::fputs(printable(out).c_str(), stdout);
  return EXIT_SUCCESS;
}

int show_kernel_info(const Options& options, const Host& host) {
  if (const Status may_try = run::require_privileges(); !may_try) return complain(may_try.error());
  const auto environment = host.open(options);
  if (!environment) return complain(environment.error());
  Environment& e = **environment;
  if (options.cost.is_shown) return show_hook_costs(*e.kernel);
  utsname name = {};
  ::uname(&name);
  std::string out = fmt::format("espy {}\nkernel {} {}, {} CPUs\nlockdown: {}\n\n", ESPY_VERSION, name.release,
                                name.machine, e.kernel->cpu_count(), lockdown_line(*e.kernel));
  const auto add_row = [&](std::string_view feature, bool is_there, std::string_view how, std::string_view meaning) {
    out += fmt::format("  {:<24}{:<5}{:<10}{}\n", feature, is_there ? "yes" : "no", how, meaning);
  };
  out += fmt::format("  {:<24}{:<5}{:<10}\n", "feature", "here", "tried by");
  add_row("btf", e.kernel->has_btf(), "file", "types of the kernel (/sys/kernel/btf/vmlinux)");
  add_row("tracefs", run::can_read_tracefs(), "file", "tracepoints and their fields (/sys/kernel/tracing)");
  add_row("kallsyms", shows_addresses(), "file", "addresses of the kernel's functions (/proc/kallsyms)");
  for (const kernel::FeatureRow& row : kernel::feature_rows())
    add_row(row.name, e.kernel->has(row.feature), row.how, fmt::format("{} (Linux {})", row.meaning, row.since));
  out +=
      "\nHow espy tries a feature: program, map, link, event: creates one. helper: asks the verifier. types: looks in "
      "BTF.\n"
      "file: reads it.\n";
  out += "\nprobe types:";
  for (const spec::Provider* provider : e.registry.providers()) out += fmt::format(" {}", provider->name);
  std::fputs((out + "\n").c_str(), stdout);
  return EXIT_SUCCESS;
}

constexpr std::string_view kKernelInfoUsage[] = {"features [--cost]"};
constexpr std::string_view kKernelInfoCommon[] = {"cost", "no-feature"};
constexpr Example kKernelInfoExamples[] = {{"espy features", "show what this kernel has, found by trying"},
                                           {"espy features --cost", "measure what reaching a probe costs here"}};

}  // namespace

extern const Command kKernelInfo = {
    .word = "features",
    .summary = "show what this kernel offers to espy",
    .topic = Topic::kMachine,
    .option = {0, "info", "", "the same as `espy features`"},
    .usage = kKernelInfoUsage,
    .common = kKernelInfoCommon,
    .examples = kKernelInfoExamples,
    .run = show_kernel_info,
};

}  // namespace espy::cli
