// One table serves the script and the environment. The environment is read first and has precedence: the names that it
// sets are kept in the config.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>

#include "base/strings.h"
#include "check/check_passes.h"

namespace espy::check {

using spec::Config;
using Limits = Config::Limits;
using Print = Config::Print;
using Spans = Config::Spans;
using Symbols = Config::Symbols;
using Counting = Config::Counting;
using Ignored = Config::Ignored;

namespace {

// What is wrong with a value; empty if nothing is.
using Problem = std::string;

struct Key {
  std::string_view name;
  std::string_view old_name;  // may be empty
  Problem (*set)(Config&, std::string_view text);
  std::string_view doc = {};                     // empty: without effect, accepted for old scripts
  std::string (*show)(const Config&) = nullptr;  // null with an empty doc
};

template <auto... kPath>
std::string show_number(const Config& config) {
  return std::to_string((config.*....*kPath));
}

template <auto... kPath>
std::string show_flag(const Config& config) {
  return (config.*....*kPath) ? "true" : "false";
}

template <auto... kPath>
std::string show_text(const Config& config) {
  return (config.*....*kPath);
}

// A word for a value. If a value has several, the first is shown.
template <class T>
struct Word {
  std::string_view word;
  T value;
  bool is_suggested = true;  // in the error about an unknown word
};

template <class T, size_t kCount>
using Words = std::array<Word<T>, kCount>;

constexpr Words<types::StackMode, 4> kStackModes = {{{"bpftrace", types::StackMode::kBpftrace},
                                                     {"perf", types::StackMode::kPerf},
                                                     {"raw", types::StackMode::kRaw},
                                                     {"build_id", types::StackMode::kBuildId}}};
constexpr Words<spec::MissingProbes, 3> kMissingProbes = {{{"error", spec::MissingProbes::kError},
                                                           {"warn", spec::MissingProbes::kWarn},
                                                           {"ignore", spec::MissingProbes::kIgnore}}};
constexpr Words<spec::UserSymbolCache, 5> kSymbolCaches = {{{"PER_PROGRAM", spec::UserSymbolCache::kPerProgram},
                                                            {"PER_PID", spec::UserSymbolCache::kPerPid},
                                                            {"NONE", spec::UserSymbolCache::kNone},
                                                            {"1", spec::UserSymbolCache::kPerProgram, false},
                                                            {"0", spec::UserSymbolCache::kNone, false}}};
constexpr Words<spec::PrintLayout, 2> kPrintLayouts = {
    {{"line", spec::PrintLayout::kLine}, {"c", spec::PrintLayout::kC}}};
constexpr Words<spec::SpanLayout, 3> kSpanLayouts = {
    {{"tree", spec::SpanLayout::kTree}, {"columns", spec::SpanLayout::kColumns}, {"graph", spec::SpanLayout::kGraph}}};

template <const auto& kWords, auto... kPath>
std::string show_word(const Config& config) {
  return std::string(
      std::ranges::find_if(kWords, [&](const auto& each) { return each.value == (config.*....*kPath); })->word);
}

template <const auto& kWords, auto... kPath>
Problem set_word(Config& config, std::string_view text) {
  std::vector<std::string> told;
  for (const auto& [word, value, is_suggested] : kWords) {
    if (to_lower(text) == to_lower(word)) return (config.*....*kPath) = value, Problem();
    if (is_suggested) told.emplace_back(word);
  }
  const std::string last = told.back();
  told.pop_back();
  return "must be " + join(told, ", ") + " or " + last;
}

// Variables that others read are only checked.
template <uint64_t kLeast, uint64_t kMost>
Problem check_number(Config&, std::string_view text) {
  const auto value = parse_int(text);
  if (!value || *value < 0 || static_cast<uint64_t>(*value) < kLeast || static_cast<uint64_t>(*value) > kMost)
    return fmt::format("must be a number from {} to {}", kLeast, kMost);
  return {};
}

template <uint64_t kLeast, uint64_t kMost, auto... kPath>
Problem set_number(Config& config, std::string_view text) {
  Problem problem = check_number<kLeast, kMost>(config, text);
  if (problem.empty()) (config.*....*kPath) = static_cast<uint64_t>(*parse_int(text));
  return problem;
}

template <uint64_t kLeast, uint64_t kMost, auto... kPath>
Problem set_power(Config& config, std::string_view text) {
  const auto value = parse_int(text);
  const auto number = static_cast<uint64_t>(value.value_or(0));
  if (!value || *value < 0 || !std::has_single_bit(number) || number < kLeast || number > kMost)
    return fmt::format("must be a power of two from {} to {}", kLeast, kMost);
  (config.*....*kPath) = number;
  return {};
}

template <bool kMeans, auto... kPath>
Problem set_flag(Config& config, std::string_view text) {
  const std::string word = to_lower(text);
  if (word == "1" || word == "true") return (config.*....*kPath) = kMeans, Problem();
  if (word == "0" || word == "false") return (config.*....*kPath) = !kMeans, Problem();
  return "must be true or false";
}

template <auto... kPath>
Problem set_text(Config& config, std::string_view text) {
  (config.*....*kPath) = text;
  return {};
}

// "@lat=ns, @size=bytes", of maps whose names do not tell their units.
Problem set_print_units(Config& config, std::string_view text) {
  if (text.find('@') == text.npos) {
    const Problem problem = set_flag<true, &Config::print, &Print::units>(config, text);
    return problem.empty() ? problem : problem + ", or units of maps: \"@lat=ns, @size=bytes\"";
  }
  for (const std::string_view part : split(text, ',')) {
    const size_t equals = part.find('=');
    const std::string_view word = equals == part.npos ? "" : trim(part.substr(equals + 1));
    const auto unit = types::unit_named(word);
    if (!unit || !trim(part).starts_with('@'))
      return fmt::format("has `{}`, which is not as `@lat=ns`: the units are ns, us, ms, s and bytes", trim(part));
    config.print.map_units[std::string(trim(part.substr(0, equals)))] = *unit;
  }
  config.print.units = true;
  return {};
}

Problem set_license(Config& config, std::string_view text) {
  static constexpr std::array<std::string_view, 6> kAccepted = {
      "GPL", "GPL v2", "GPL and additional rights", "Dual BSD/GPL", "Dual MIT/GPL", "Dual MPL/GPL"};
  for (const std::string_view accepted : kAccepted)
    if (text == accepted) return config.license = accepted, Problem();
  return "must be GPL-compatible: GPL, GPL v2, GPL and additional rights, Dual BSD/GPL, "
         "Dual MIT/GPL or Dual MPL/GPL";
}

Problem accept(Config&, std::string_view) { return {}; }

constexpr uint64_t kLargest = 1u << 30;

constexpr std::array kKeys = {
    Key{"max_strlen", "strlen", set_number<1, 1 << 20, &Config::limits, &Limits::max_strlen>,
        "The longest string that str() and buf() read, in bytes.", show_number<&Config::limits, &Limits::max_strlen>},
    Key{"max_map_keys", "map_keys_max", set_number<1, kLargest, &Config::limits, &Limits::max_map_keys>,
        "The maximum number of keys of a map whose declaration does not give one.",
        show_number<&Config::limits, &Limits::max_map_keys>},
    Key{"max_probes", "", set_number<1, 1 << 20, &Config::limits, &Limits::max_probes>,
        "The maximum number of probes that a run attaches.", show_number<&Config::limits, &Limits::max_probes>},
    Key{"max_bpf_progs", "", set_number<1, 1 << 20, &Config::limits, &Limits::max_bpf_progs>,
        "The maximum number of BPF programs that a run loads.", show_number<&Config::limits, &Limits::max_bpf_progs>},
    Key{"max_cat_bytes", "cat_bytes_max", set_number<1, kLargest, &Config::limits, &Limits::max_cat_bytes>,
        "The maximum number of bytes of a file that cat() prints.",
        show_number<&Config::limits, &Limits::max_cat_bytes>},
    Key{"max_system_bytes", "", set_number<1, kLargest, &Config::limits, &Limits::max_system_bytes>,
        "The maximum number of bytes that system() prints of what a command writes.",
        show_number<&Config::limits, &Limits::max_system_bytes>},
    Key{"max_system_seconds", "", set_number<0, 1 << 30, &Config::limits, &Limits::max_system_seconds>,
        "How long system() waits for a command before it ends it. 0: without limit.",
        show_number<&Config::limits, &Limits::max_system_seconds>},
    Key{"max_compile_seconds", "", set_number<0, 1 << 30, &Config::limits, &Limits::max_compile_seconds>,
        "How long the C compiler may take for the headers of a script. 0: without limit.",
        show_number<&Config::limits, &Limits::max_compile_seconds>},
    Key{"log_size", "", set_number<1, kLargest, &Config::limits, &Limits::log_size>,
        "The size of the buffer for the verifier's log, in bytes.", show_number<&Config::limits, &Limits::log_size>},
    Key{"perf_rb_pages", "", set_number<1, 1 << 18, &Config::limits, &Limits::perf_rb_pages>,
        "The size of the ring of records of each CPU, in pages, rounded up to a power of two; 0: chosen by memory.",
        show_number<&Config::limits, &Limits::perf_rb_pages>},
    Key{"cpp_demangle", "", set_flag<true, &Config::symbols, &Symbols::demangle>,
        "Whether names of C++ and Rust functions are demangled. `no_cpp_demangle`, its old name, means the opposite.",
        show_flag<&Config::symbols, &Symbols::demangle>},
    Key{"no_cpp_demangle", "", set_flag<false, &Config::symbols, &Symbols::demangle>},
    Key{"print_maps_on_exit", "", set_flag<true, &Config::print, &Print::maps_on_exit>,
        "Whether maps that are not empty are printed at the end.", show_flag<&Config::print, &Print::maps_on_exit>},
    Key{"print_layout", "", set_word<kPrintLayouts, &Config::print, &Print::layout>,
        "How structs are printed: on one `line`, or as in `c`, with a line for each member.",
        show_word<kPrintLayouts, &Config::print, &Print::layout>},
    Key{"print_zeros", "", set_flag<true, &Config::print, &Print::zeros>,
        "Whether members that are all zeros are printed; a struct without others is `{}`.",
        show_flag<&Config::print, &Print::zeros>},
    Key{"print_depth", "", set_number<0, 1000, &Config::print, &Print::depth>,
        "How deep nested structs are printed; deeper ones are `{ ... }`. 0: all.",
        show_number<&Config::print, &Print::depth>},
    Key{"print_items", "", set_number<0, kLargest, &Config::print, &Print::items>,
        "How many elements of an array, and members of a struct, are printed before `...`. 0: all.",
        show_number<&Config::print, &Print::items>},
    Key{"print_addresses", "", set_flag<true, &Config::print, &Print::addresses>,
        "Whether members of structs are explained. IP and Ethernet addresses, recognised by type and name, print as "
        "addresses. `__be16` to `__be64` print in host order, with a mark. Flags print by the names in their enum.",
        show_flag<&Config::print, &Print::addresses>},
    Key{"print_units", "", set_print_units,
        "Whether values of maps are printed as 1.5 us or 3 KiB. The last word of the name is the unit: `@read_bytes`, "
        "`@us`. `\"@lat=ns, @size=bytes\"` gives units of other maps too. Text only.",
        show_flag<&Config::print, &Print::units>},
    Key{"hist_percentiles", "", set_flag<true, &Config::print, &Print::percentiles>,
        "Whether a line with p50, p90 and p99 follows each histogram: the largest values of the buckets that they are "
        "in. "
        "Text only.",
        show_flag<&Config::print, &Print::percentiles>},
    Key{"span_layout", "", set_word<kSpanLayouts, &Config::spans, &Spans::layout>,
        "How spans are shown as text: an indented `tree`, `columns` with time, CPU, process and arguments, or a "
        "`graph` "
        "as C, with durations.",
        show_word<kSpanLayouts, &Config::spans, &Spans::layout>},
    Key{"span_depth", "", set_number<0, 1000000, &Config::spans, &Spans::depth>,
        "How deep nested spans are shown. 0: all.", show_number<&Config::spans, &Spans::depth>},
    Key{"span_slower_than", "", set_number<0, INT64_MAX, &Config::spans, &Spans::slower_than_ns>,
        "The shortest duration of spans that are shown, in nanoseconds or as `10us`.",
        show_number<&Config::spans, &Spans::slower_than_ns>},
    Key{"span_count", "", set_number<0, INT64_MAX, &Config::spans, &Spans::count>,
        "The number of spans and instants after which the run ends. 0: unlimited.",
        show_number<&Config::spans, &Spans::count>},
    Key{"span_order", "", set_text<&Config::spans, &Spans::order>,
        "Names separated by spaces: only spans that are nested in this order are shown. A space in a name is `\\ `.",
        show_text<&Config::spans, &Spans::order>},
    Key{"span_before", "", set_number<0, 1000, &Config::spans, &Spans::before>,
        "How many of the thread's last calls before `span_hold()` are shown before its tree.",
        show_number<&Config::spans, &Spans::before>},
    Key{"span_hold_bytes", "", set_power<4 << 10, 64 << 10, &Config::spans, &Spans::hold_bytes>,
        "The memory of a thread for the spans of a tree that `span_hold()` keeps, in bytes: a power of two.",
        show_number<&Config::spans, &Spans::hold_bytes>},
    Key{"span_hold_threads", "", set_power<16, 1 << 16, &Config::spans, &Spans::hold_threads>,
        "How many threads can keep a tree by `span_hold()` at a time, each with memory of its own: a power of two.",
        show_number<&Config::spans, &Spans::hold_threads>},
    Key{"returns_first", "", set_flag<true, &Config::returns_first>,
        "Whether return probes are attached before entry probes. Then each counted entry has its return. Otherwise "
        "entries come first, and few returns lack their entry.",
        show_flag<&Config::returns_first>},
    Key{"accept_cost", "", set_flag<true, &Config::counting, &Counting::accepts_cost>,
        "Whether `--check-cost` only warns if the probes would take more than 10% of a CPU, like `--yes`.",
        show_flag<&Config::counting, &Counting::accepts_cost>},
    Key{"labels", "", accept,
        "The names that the parts of keys have in the metrics and on the page of `--listen`: "
        "`\"@reads: process, file; @sizes: process\"`. Without, they are named by their expressions.",
        [](const Config&) -> std::string { return ""; }},
    Key{"max_metric_samples", "", check_number<1, 1 << 20>,
        "The largest number of samples of a map in the metrics of `--listen`. Further keys are "
        "skipped and counted.",
        [](const Config&) -> std::string { return "10000"; }},
    Key{"license", "", set_license,
        "The licence of the programs, as declared to the kernel; it must be GPL-compatible.",
        show_text<&Config::license>},
    Key{"str_trunc_trailer", "", set_text<&Config::print, &Print::trunc_trailer>, "The text after a truncated string.",
        show_text<&Config::print, &Print::trunc_trailer>},
    Key{"stack_mode", "", set_word<kStackModes, &Config::symbols, &Symbols::stack_mode>,
        "How stacks are shown if the call does not say: bpftrace, perf, raw or build_id.",
        show_word<kStackModes, &Config::symbols, &Symbols::stack_mode>},
    Key{"max_stacks", "", set_number<1, 1 << 22, &Config::limits, &Limits::max_stacks>,
        "The number of different stacks that are kept at least, of each mode and number of frames. Kernels before 6.1 "
        "keep fewer, because some stacks share a hash.",
        show_number<&Config::limits, &Limits::max_stacks>},
    Key{"unwind_table_rows", "", set_number<1 << 10, 1 << 27, &Config::limits, &Limits::unwind_table_rows>,
        "The largest size of the tables for unwinding user stacks, in rows of 8 bytes. They grow as files need them; "
        "a C library takes 30,000.",
        show_number<&Config::limits, &Limits::unwind_table_rows>},
    Key{"missing_probes", "", set_word<kMissingProbes, &Config::missing_probes>,
        "How an attach point without a match is treated: error, warn or ignore.",
        show_word<kMissingProbes, &Config::missing_probes>},
    Key{"cache_user_symbols", "", set_word<kSymbolCaches, &Config::symbols, &Symbols::cache>,
        "How the mappings of a process are cached: `PER_PID`; `PER_PROGRAM`, shared by all processes of a program; or "
        "`NONE`, read again for each address.",
        [](const Config&) -> std::string { return "PER_PID; PER_PROGRAM without randomised addresses"; }},
    Key{"show_debug_info", "use_blazesym", set_flag<true, &Config::symbols, &Symbols::debug_info>,
        "Whether user stacks show source locations from debug information: `true`, the file, the line and a frame for "
        "each inlined call, `fn+12@dir/file.c:42`, `[inlined] fn@dir/file.c:7`; `false`, nothing.",
        show_flag<&Config::symbols, &Symbols::debug_info>},
    // Of bpftrace, without effect: espy itself decides where values are stored, when symbols are read and how types are
    // found.
    Key{"on_stack_limit", "", set_number<0, 512, &Config::ignored, &Ignored::on_stack_limit>},
    Key{"lazy_symbolication", "", set_flag<true, &Config::ignored, &Ignored::lazy_symbolication>},
    Key{"symbol_source", "", accept},
    Key{"max_type_res_iterations", "", accept},
};

const Key* find_key(std::string_view name) {
  for (const Key& key : kKeys)
    if (key.name == name || (!key.old_name.empty() && key.old_name == name)) return &key;
  return nullptr;
}

std::string value_text(const syntax::Ast& ast, ExprId id) {
  if (const auto* number = ast.get<syntax::IntegerLiteral>(id)) return std::to_string(number->value);
  if (const auto* flag = ast.get<syntax::BoolLiteral>(id)) return flag->value ? "true" : "false";
  if (const auto* text = ast.get<syntax::StringLiteral>(id)) return text->value;
  if (const auto* name = ast.get<syntax::Name>(id)) return name->name;
  return {};
}

constexpr std::string_view kVariablePrefix = "BPFTRACE_";
// Read elsewhere, or by bpftrace.
constexpr std::string_view kOtherVariables[] = {"BTF", "COLOR", "KERNEL_SOURCE", "KERNEL_BUILD", "VMLINUX"};

// "max_strlen" -> "BPFTRACE_MAX_STRLEN"
std::string variable_of(std::string_view name) {
  std::string out(kVariablePrefix);
  for (const char c : name) out += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return out;
}

}  // namespace

std::vector<ConfigRow> config_rows() {
  std::vector<ConfigRow> rows;
  for (const Key& key : kKeys)
    rows.push_back({key.name, key.old_name, key.doc, key.show != nullptr ? key.show(Config()) : ""});
  return rows;
}

void read_config(const syntax::Ast& ast, Config& config, source::Diagnostics& diagnostics) {
  for (const syntax::ConfigEntry& entry : ast.config) {
    std::string name = to_lower(entry.name);
    if (name.starts_with("bpftrace_")) name = name.substr(9);
    if (name.starts_with("unstable_")) continue;  // each version of bpftrace has others
    const Key* key = find_key(name);
    if (!key) {
      std::vector<std::string> names;
      for (const Key& known : kKeys) names.emplace_back(known.name);
      diagnostics.error("unknown-config", entry.name_span, "no config variable named `" + entry.name + "`",
                        did_you_mean(name, names));
      continue;
    }
    const std::string upper(key->name);
    if (std::ranges::find(config.from_environment, upper) != config.from_environment.end()) continue;
    const std::string problem = key->set(config, value_text(ast, entry.value));
    if (!problem.empty())
      diagnostics.error("bad-config", entry.value ? ast[entry.value].span : entry.span,
                        "`" + std::string(key->name) + "` " + problem);
  }
}

void check_print_units(const Checked& checked, source::Diagnostics& diagnostics) {
  std::vector<std::string> names;
  for (const CheckedMap& map : checked.maps) names.push_back(map.name);
  const auto is_about_units = [](const syntax::ConfigEntry& entry) { return to_lower(entry.name) == "print_units"; };
  const auto entry = std::ranges::find_if(checked.ast.config, is_about_units);
  // The environment's may be for other scripts.
  const auto& from_environment = checked.config.from_environment;
  if (entry == checked.ast.config.end() || std::ranges::count(from_environment, "print_units") > 0) return;
  for (const auto& [name, unit] : checked.config.print.map_units)
    if (std::ranges::count(names, name) == 0)
      diagnostics.error("bad-config", entry->value ? checked.ast[entry->value].span : entry->span,
                        fmt::format("`print_units` names `{}`, which is not a map of this script", name),
                        did_you_mean(name, names));
}

void read_environment(Config& config, const std::function<const char*(const char*)>& getenv,
                      source::Diagnostics& diagnostics) {
  for (const Key& key : kKeys) {
    for (const std::string_view name : {key.name, key.old_name}) {
      if (name.empty()) continue;
      const std::string variable = variable_of(name);
      const char* text = getenv(variable.c_str());
      if (!text) continue;
      const std::string problem = key.set(config, text);
      if (problem.empty())
        config.from_environment.emplace_back(key.name == "no_cpp_demangle" ? "cpp_demangle" : key.name);
      else
        diagnostics.error("bad-config", {}, variable + " " + problem + ", not `" + text + "`");
    }
  }
}

std::string config_value(const syntax::Ast& ast, std::string_view name,
                         const std::function<const char*(const char*)>& getenv) {
  if (const char* text = getenv(variable_of(name).c_str())) return text;
  std::string out;
  for (const syntax::ConfigEntry& entry : ast.config)
    if (to_lower(entry.name) == name) out = value_text(ast, entry.value);
  return out;
}

void warn_of_unknown_variables(std::span<const std::string> names, source::Diagnostics& diagnostics) {
  if (names.empty()) return;
  std::vector<std::string> known(std::begin(kOtherVariables), std::end(kOtherVariables));
  for (const Key& key : kKeys)
    for (const std::string_view name : {key.name, key.old_name})
      if (!name.empty()) known.push_back(variable_of(name).substr(kVariablePrefix.size()));
  const std::vector<std::string_view> candidates(known.begin(), known.end());
  for (const std::string& name : names) {
    const bool is_read = name.starts_with(kVariablePrefix);
    constexpr std::string_view kOwnPrefix = "ESPY_";
    if (!is_read && !name.starts_with(kOwnPrefix)) continue;
    const std::string_view word = std::string_view(name).substr(is_read ? kVariablePrefix.size() : kOwnPrefix.size());
    if (is_read && std::ranges::find(known, word) != known.end()) continue;
    const std::string near = nearest(word, candidates);
    if (!near.empty())
      diagnostics.warning("unknown-variable", {}, "the environment variable " + name + " has no effect",
                          fmt::format("did you mean {}{}?", kVariablePrefix, near));
  }
}

}  // namespace espy::check
