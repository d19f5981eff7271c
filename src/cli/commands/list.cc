// -l: lists probes. A pattern is an attach point with wildcards; without one all probes of the kernel are listed.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <set>

#include "base/printable.h"
#include "base/strings.h"
#include "check/check.h"
#include "cli/attach_text.h"
#include "cli/command.h"
#include "cli/replay_host.h"
#include "kernel/tracefs.h"
#include "syntax/parser.h"

namespace espy::cli {

namespace {

// What a provider lists, as text; the number of probes is returned.
size_t list_provider(const spec::Provider& provider, std::span<const std::string> parts, Environment& e,
                     const Options& options) {
  if (provider.list == nullptr) return 0;
  spec::ListRequest request{parts, options.verbose, *e.kernel, e.types, &e.symbols, e.config};
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
    if (text) std::fputs(("vmlinux:" + *text + "\n").c_str(), stdout);
    count += text.has_value() ? 1 : 0;
  }
  if (count == 0)
    complain({fmt::format("the kernel has no type `{}`", pattern), 0,
              e.kernel->has_btf() ? "" : "it tells no types at all: it has no BTF"});
  return count;
}

// `*:FILE:PATTERN`, whatever the type of probe: the functions and marks of the file. A pattern without a provider
// does not look into files otherwise, except into those of the process of -p.
bool names_a_file(std::span<const std::string> parts) {
  return parts.size() > 1 && parts[0].find('/') != std::string::npos;
}

size_t list_pattern(const std::string& pattern, Environment& e, const Options& options) {
  const std::vector<std::string> words = split_attach_point(pattern);
  const std::string_view wanted = words.size() == 1 && !words[0].empty() ? "*" : std::string_view(words[0]);
  const bool is_name = words.size() == 1 && e.registry.find_provider(words[0]) == nullptr;
  const std::vector<std::string> parts(words.begin() + (is_name ? 0 : 1), words.end());
  const spec::Provider* named = e.registry.find_provider(words[0]);
  const bool is_of_file = names_a_file(parts);
  size_t count = 0;
  for (const spec::Provider* provider : e.registry.providers()) {
    const bool is_wanted = named != nullptr
                               ? provider == named
                               : glob_match(wanted, provider->name) &&
                                     (is_of_file ? provider->needs_target_to_list
                                                 : !provider->needs_target_to_list || e.config.pid.has_value());
    if (!is_wanted) continue;
    // A word is searched in all files of the process.
    const bool is_word = named == nullptr && words.size() == 1 && provider->needs_target_to_list;
    count += list_provider(*provider, is_word ? std::vector<std::string>{"*", parts[0]} : parts, e, options);
  }
  return count;
}

// Why nothing is found in the file that a pattern names; "" if it names none, or has nothing of that name.
std::string why_unreadable(const std::string& pattern, Environment& e) {
  const std::vector<std::string> words = split_attach_point(pattern);
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
  const auto script = read_script(options, e.sources);
  if (!script) return complain(script.error());
  check::CheckRequest request = e.check_request();
  request.is_listing = true;
  syntax::Ast ast = parse_script(*script, request);
  const check::Checked checked = check::check(std::move(ast), request);
  if (report(e.diagnostics, e.sources, options)) return EXIT_FAILURE;
  std::set<std::string> shown;  // a mark may be at several places
  for (const program::Probe& probe : checked.probes) {
    if (!shown.insert(probe.name).second) continue;
    const spec::Provider* provider = e.registry.find_provider(probe.provider);
    const std::vector<std::string> words = split_attach_point(probe.name);
    const bool is_listed =
        options.verbose && provider != nullptr && list_provider(*provider, std::span(words).subspan(1), e, options) > 0;
    if (!is_listed) std::puts(printable_line(probe.name).c_str());
  }
  return EXIT_SUCCESS;
}

int list_probes(const Options& options, const Host& host) {
  const auto environment = host.open(options);
  if (!environment) return complain(environment.error());
  Environment& e = **environment;
  if (options.program_text || options.file) return list_program(options, e);
  if (!options.argument.empty() && ::access(options.argument.c_str(), F_OK) == 0) {
    Options of_file = options;
    of_file.file = options.argument;
    return list_program(of_file, e);
  }
  size_t count = 0;
  bool has_all_types = true;
  const std::string search = options.argument.empty() ? "*" : options.argument;
  for (const std::string& each : split_unquoted(search, ',')) {
    const std::string pattern(trim(each));
    const auto types = list_types(pattern, e);
    count += types ? *types : list_pattern(pattern, e, options);
    has_all_types &= !types || *types > 0;
  }
  for (const std::string& reason : e.symbols.skipped_files().reasons) complain({reason});
  if (!has_all_types) return EXIT_FAILURE;
  if (!options.recordings.empty() && options.verbose)
    if (const Status shown = show_recording(options.recordings); !shown) return complain(shown.error());
  if (count > 0 || options.argument.empty()) return EXIT_SUCCESS;
  const bool is_file_name = options.argument.ends_with(".bt");
  const bool may_be_tracepoint = options.argument.starts_with('t') || options.argument.find(':') == std::string::npos;
  if (!options.recordings.empty())
    return complain({fmt::format("no recorded probe matches `{}`", options.argument), 0, "espy -i FILE -l lists all"});
  return complain({fmt::format("no probe matches `{}`", options.argument), 0,
                   is_file_name ? "there is no such file either"
                   : may_be_tracepoint && !can_read_tracefs()
                       ? "tracepoints cannot be looked up: " + kernel::why_unreadable(*e.kernel)
                       : why_unreadable(options.argument, e)});
}

constexpr std::string_view kUsage[] = {"-l [PATTERN]"};
constexpr Example kExamples[] = {{"espy -l 'tracepoint:sched:*'", "what can be traced"}};

}  // namespace

extern const Command kList = {
    .option = {'l', "list", "", "list the probes that match a pattern, or those of a program; with -v their arguments"},
    .option_follows = "e",
    .operands = Operands::kPattern,
    .usage = kUsage,
    .examples = kExamples,
    .run = list_probes,
};

}  // namespace espy::cli
