#include "cli/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/regex.h"
#include "base/strings.h"

namespace espy::cli {

namespace {

constexpr std::string_view kStages[] = {"tokens", "ast",     "types",  "ir",       "opt",
                                        "bpf",    "program", "events", "verifier", "script"};

template <bool Options::*Member>
Status set_flag(Options& options, std::string_view) {
  options.*Member = true;
  return {};
}

template <Mode kMode>
Status set_mode(Options& options, std::string_view) {
  options.mode = kMode;
  return {};
}

template <auto kMember>
Status set_text(Options& options, std::string_view text) {
  options.*kMember = text;
  return {};
}

template <auto kMember>
Status add_text(Options& options, std::string_view text) {
  (options.*kMember).emplace_back(text);
  return {};
}

Status set_program(Options& options, std::string_view text) {
  if (options.program_text) return fail("-e is given twice");
  options.program_text = text;
  return {};
}

Status set_pid(Options& options, std::string_view text) {
  const auto pid = parse_int(text);
  if (!pid || *pid <= 0 || *pid > INT32_MAX) return fail(fmt::format("`{}` is not a process id", text));
  options.pid = static_cast<uint32_t>(*pid);
  return {};
}

Status set_format(Options& options, std::string_view text) {
  if (output::find_sink(text) == nullptr) {
    std::vector<std::string> names;
    for (const output::SinkRow& row : output::sinks()) names.emplace_back(row.name);
    return fail(fmt::format("Invalid output format \"{}\"", text), 0, "there are " + join(names, ", "));
  }
  options.format = text;
  return {};
}

Status set_buffering(Options& options, std::string_view text) {
  if (text == "line") {
    options.buffering = output::Buffering::kLine;
  } else if (text == "full") {
    options.buffering = output::Buffering::kFull;
  } else if (text == "none") {
    options.buffering = output::Buffering::kNone;
  } else {
    return fail(fmt::format("-B takes line, full or none, not `{}`", text));
  }
  return {};
}

Status set_debug_directories(Options& options, std::string_view text) {
  for (const std::string_view directory : split(text, ':'))
    if (!directory.empty()) options.debug_directories.emplace_back(directory);
  return {};
}

Status set_probe_filter(Options& options, std::string_view text) {
  options.probe_filter = text;
  const auto regex = Regex::compile(options.probe_filter);
  return regex ? Status() : tl::unexpected(regex.error());
}

Status set_unwound_pid(Options& options, std::string_view text) {
  const auto pid = parse_int(text);
  if (!pid || *pid <= 0 || *pid > INT32_MAX)
    return fail("--dwarf-pid needs a process id, not `" + std::string(text) + "`");
  options.unwound_pids.push_back(static_cast<uint32_t>(*pid));
  return {};
}

Status set_no_feature(Options& options, std::string_view text) {
  for (const std::string_view name : split(text, ',')) options.disabled_features.emplace_back(name);
  return {};
}

Status set_dump(Options& options, std::string_view text) {
  for (const std::string_view stage : split(text, ',')) {
    if (std::ranges::find(kStages, stage) == std::end(kStages)) {
      const std::string near = nearest(stage, kStages);
      return fail(fmt::format("there is no stage `{}` to dump", stage), 0,
                  near.empty() ? "the stages are script, tokens, ast, types, ir, opt, bpf, program, events, verifier"
                               : fmt::format("did you mean `{}`?", near));
    }
    options.dump.emplace_back(stage);
  }
  return {};
}

Status set_count(uint64_t& out, std::string_view what, std::string_view text) {
  const auto count = parse_int(text);
  if (!count || *count <= 0) return fail(fmt::format("{} takes a number from 1 on, not `{}`", what, text));
  out = static_cast<uint64_t>(*count);
  return {};
}

Status set_depth(Options& options, std::string_view text) { return set_count(options.trace.depth, "--depth", text); }
Status set_events(Options& options, std::string_view text) { return set_count(options.trace.events, "-n", text); }

Status set_slower_than(Options& options, std::string_view text) {
  constexpr std::pair<std::string_view, uint64_t> kUnits[] = {
      {"ns", 1}, {"us", 1000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto* unit = std::ranges::find(kUnits, text.substr(digits), &std::pair<std::string_view, uint64_t>::first);
  const auto count = parse_int(text.substr(0, digits));
  if (unit == std::end(kUnits) || !count || *count <= 0 || *count > 1'000'000'000)
    return fail(fmt::format("--slower-than takes a time such as 10us or 2ms, not `{}`", text));
  options.trace.slower_than_ns = static_cast<uint64_t>(*count) * unit->second;
  return {};
}

Status set_graph(Options& options, std::string_view) {
  options.trace.is_graph = true;
  return {};
}

Status set_order(Options& options, std::string_view) {
  options.trace.is_ordered = true;
  return {};
}

Status set_reference(Options& options, std::string_view part) {
  options.mode = Mode::kReference;
  options.reference_part = part;
  return {};
}

Status set_short_dump(Options& options, std::string_view) { return set_dump(options, "ast,ir,bpf"); }

bool is_stage_list(std::string_view text) {
  const auto is_stage = [](std::string_view name) { return std::ranges::find(kStages, name) != std::end(kStages); };
  return std::ranges::all_of(split(text, ','), is_stage);
}

Status accept(Options&, std::string_view) { return {}; }

constexpr OptionRow kRows[] = {
    {'e', "", "PROGRAM", "run this program", set_program},
    {'l', "list", "", "list the probes that match a pattern, or those of a program; with -v their arguments",
     set_mode<Mode::kList>},
    {'p', "pid", "PID", "trace only this process, and end when it ends", set_pid},
    {'c', "cmd", "COMMAND", "start this command when all is attached, and end when it ends",
     set_text<&Options::command>},
    {0, "follow", "", "with -p or -c: trace this process and those it starts, and end when all have ended",
     set_flag<&Options::follow>},
    {'o', "output", "FILE", "write the output to this file", set_text<&Options::output_file>},
    {'f', "format", "FORMAT", "", set_format},  // its text: output::sinks_doc()
    {'B', "buffer", "MODE", "output buffering: line (default), full or none", set_buffering},
    {'v', "verbose", "", "show at the end how often each probe fired, and what it missed; with -l: its arguments",
     set_flag<&Options::verbose>},
    {0, "strict", "", "fail with a reason if any number shown is not exact", set_flag<&Options::strict>},
    {'q', "quiet", "", "do not say how many probes were attached", set_flag<&Options::quiet>},
    {'k', "warnings", "", "say where in the script a kernel helper failed", set_flag<&Options::warn_helper_errors>},
    {0, "no-warnings", "", "show errors about the program, but no warnings", set_flag<&Options::no_warnings>},
    {0, "unsafe", "", "allow system(), signal() and others that change the machine", set_flag<&Options::unsafe>},
    {'I', "", "DIRECTORY", "look for headers that are included in this directory, too",
     add_text<&Options::include_directories>},
    {0, "include", "FILE", "include this header before the first line of the program",
     add_text<&Options::include_files>},
    {0, "debuginfo", "DIRECTORIES", "look for separate debug files below these directories, too (colon-separated)",
     set_debug_directories},
    {0, "traceable-functions", "FILE", "take the kernel functions that may be traced from this file, one a line",
     set_text<&Options::traceable_functions>},
    {0, "dwarf-pid", "PID",
     "read what unwinding this process' stacks takes before tracing begins; others' is read when they come",
     set_unwound_pid},
    {0, "usdt-file-activation", "", "accepted; semaphores of USDT probes always count for every process of a file",
     accept},
    {0, "test", "", "run the program's `test` probes, and show which fail", set_flag<&Options::runs_tests>},
    {0, "bench", "", "run the program's `bench` probes, and show how long they take",
     set_flag<&Options::runs_benchmarks>},
    {0, "probe-filter", "REGEX", "leave out the probes whose names this regular expression does not match",
     set_probe_filter},
    {0, "no-feature", "NAMES", "do without these kernel features (comma-separated; --info lists them)", set_no_feature},
    {0, "info", "", "show what this kernel offers", set_mode<Mode::kInfo>},
    {0, "dry-run", "", "compile, load and attach, run begin and end, but wait for nothing",
     set_flag<&Options::dry_run>},
    {0, "dump", "STAGES",
     "show stages of the compilation and end (comma-separated): script, tokens, ast, types, ir, opt, bpf, "
     "program, events, verifier",
     set_dump},
    {'d', "", "", "the same as --dump with the stages that follow, or ast,ir,bpf", set_short_dump},
    {0, "time", "", "show the milliseconds that each stage took, and how many it may take",
     set_flag<&Options::time_stages>},
    {0, "fmt", "", "print the program well formatted, and end", set_mode<Mode::kFormat>},
    {'b', "btf", "", "accepted for old scripts; BTF is always used", accept},
    {0, "reference", "PART", "", set_reference},
    {'h', "help", "", "show this page", set_mode<Mode::kHelp>},
    {'V', "version", "", "show the version", set_mode<Mode::kVersion>},
};

constexpr OptionRow kTraceRows[] = {
    {'s', "stack-order", "", "show only calls within each other in the order of the targets", set_order},
    {0, "graph", "", "show calls as a graph, as C with durations", set_graph},
    {0, "depth", "N", "show only N levels of calls within calls", set_depth},
    {0, "slower-than", "TIME", "show only calls that take longer: 10us, 2ms", set_slower_than},
    {'n', "events", "N", "end after N events", set_events},
};

std::vector<OptionRow> rows_of(Mode mode) {
  std::vector<OptionRow> rows(option_rows().begin(), option_rows().end());
  if (mode == Mode::kTrace) rows.insert(rows.begin(), std::begin(kTraceRows), std::end(kTraceRows));
  return rows;
}

tl::unexpected<Error> unknown_option(std::string_view typed, std::span<const OptionRow> rows) {
  std::vector<std::string_view> names;
  for (const OptionRow& row : rows)
    if (!row.long_name.empty()) names.push_back(row.long_name);
  const std::string near = typed.starts_with("--") ? nearest(typed.substr(2), names) : "";
  return fail(fmt::format("there is no option `{}`", typed), 0,
              near.empty() ? "espy --help lists them" : fmt::format("did you mean `--{}`?", near));
}

// Walks the arguments: options, then the script or its file, then what belongs to the script.
class Parser {
 public:
  explicit Parser(std::span<char* const> arguments) : arguments_(arguments) {}

  Result<Options> parse() {
    take_subcommand();
    rows_ = rows_of(options_.mode);
    while (next_ < arguments_.size()) {
      const std::string_view word = arguments_[next_++];
      if (word == "--") {
        TRY_STATUS(take_named());
      } else if (word.starts_with("--")) {
        TRY_STATUS(take_long(word));
      } else if (word.size() > 1 && word[0] == '-' && !is_script_argument()) {
        TRY_STATUS(take_short(word));
      } else {
        take_word(word);
      }
    }
    return std::move(options_);
  }

 private:
  // The first word may say what is to be done; a script of that name is `./trace`.
  void take_subcommand() {
    if (arguments_.empty()) return;
    const std::string_view word = arguments_[0];
    if (word == "info") options_.mode = Mode::kDescribe;
    if (word == "trace") options_.mode = Mode::kTrace;
    takes_targets_ = options_.mode != Mode::kRun;
    next_ = takes_targets_ ? 1 : 0;
  }

  const OptionRow* find_short(char name) const {
    for (const OptionRow& row : rows_)
      if (row.short_name == name) return &row;
    return nullptr;
  }

  const OptionRow* find_long(std::string_view name) const {
    for (const OptionRow& row : rows_)
      if (!row.long_name.empty() && row.long_name == name) return &row;
    return nullptr;
  }

  bool has_script() const { return options_.program_text || options_.file; }
  // "-1" behind a script is an argument of the script.
  bool is_script_argument() const {
    return has_script() && arguments_[next_ - 1][1] >= '0' && arguments_[next_ - 1][1] <= '9';
  }

  void take_word(std::string_view word) {
    if (takes_targets_) {
      options_.targets.emplace_back(word);
    } else if (options_.mode == Mode::kList && options_.search.empty() && !has_script()) {
      options_.search = word;
    } else if (!has_script()) {
      options_.file = word;
    } else {
      options_.positional.emplace_back(word);
    }
  }

  Result<std::string_view> argument_of(std::string_view option) {
    if (next_ == arguments_.size()) return fail(fmt::format("{} needs an argument", option));
    return std::string_view(arguments_[next_++]);
  }

  Status take_long(std::string_view word) {
    const size_t equals = word.find('=');
    const OptionRow* row = find_long(word.substr(2, equals == std::string_view::npos ? equals : equals - 2));
    if (row == nullptr) return unknown_option(word.substr(0, equals), rows_);
    if (row->argument.empty()) {
      if (equals != std::string_view::npos) return fail(fmt::format("--{} takes no argument", row->long_name));
      return row->set(options_, {});
    }
    if (equals != std::string_view::npos) return row->set(options_, word.substr(equals + 1));
    return row->set(options_, TRY(argument_of(word)));
  }

  Status take_short(std::string_view word) {
    for (size_t i = 1; i < word.size(); ++i) {
      const OptionRow* row = find_short(word[i]);
      if (row == nullptr) return unknown_option(fmt::format("-{}", word[i]), rows_);
      // `-d` may stand alone, also twice.
      const bool takes_stages = word == "-d" && next_ < arguments_.size() && is_stage_list(arguments_[next_]);
      if (takes_stages) return set_dump(options_, arguments_[next_++]);
      if (row->argument.empty()) {
        TRY_STATUS(row->set(options_, {}));
        continue;
      }
      const std::string_view rest = word.substr(i + 1);
      if (!rest.empty()) return row->set(options_, rest);
      return row->set(options_, TRY(argument_of(word)));
    }
    return {};
  }

  // Behind `--`: --name, --name=value, and plain words as positional arguments.
  Status take_named() {
    while (next_ < arguments_.size()) {
      const std::string_view word = arguments_[next_++];
      if (!word.starts_with("--")) {
        take_word(word);
        continue;
      }
      const size_t equals = word.find('=');
      const std::string name(word.substr(2, equals == std::string_view::npos ? equals : equals - 2));
      options_.named.emplace_back(name, equals == std::string_view::npos ? "true" : word.substr(equals + 1));
    }
    return {};
  }

  std::span<char* const> arguments_;
  size_t next_ = 0;
  bool takes_targets_ = false;
  std::vector<OptionRow> rows_;
  Options options_;
};

Status check_combination(const Options& options) {
  if (options.pid && options.command) return fail("-p and -c cannot be used together");
  if (options.follow && !options.pid && !options.command)
    return fail("--follow needs a process to follow", 0, "-p PID, or -c COMMAND");
  const bool wants_target = options.mode == Mode::kDescribe || options.mode == Mode::kTrace;
  if (wants_target && options.targets.empty())
    return fail("there is nothing to look at", 0, "espy info vfs_read, espy trace 'vfs_read(count > 100, count)'");
  const bool wants_program = options.mode == Mode::kRun || options.mode == Mode::kFormat;
  if (wants_program && !options.program_text && !options.file)
    return fail("there is no program to run", 0, "espy -e 'begin { printf(\"hello\\n\"); }', or espy FILE");
  return {};
}

}  // namespace

std::span<const OptionRow> option_rows() {
  static const std::string format_doc = output::sinks_doc();
  static const auto rows = [] {
    auto all = std::to_array(kRows);
    std::ranges::find(all, 'f', &OptionRow::short_name)->doc = format_doc;
    return all;
  }();
  return rows;
}
std::span<const OptionRow> trace_option_rows() { return kTraceRows; }

Result<Options> parse_options(std::span<char* const> arguments) {
  Options options = TRY(Parser(arguments).parse());
  TRY_STATUS(check_combination(options));
  return options;
}

std::string help_row(std::string_view name, std::string_view doc) {
  constexpr size_t kColumn = 26;
  const std::string left = fmt::format("  {:<{}}", name, kColumn);
  return name.size() < kColumn ? fmt::format("{}{}\n", left, doc)
                               : fmt::format("{}\n{:{}}{}\n", left, "", 2 + kColumn, doc);
}

namespace {

std::string option_lines(std::span<const OptionRow> rows) {
  std::string out;
  for (const OptionRow& row : rows) {
    if (row.doc.empty()) continue;
    std::string names = row.short_name != 0 ? fmt::format("-{}", row.short_name) : "  ";
    if (!row.long_name.empty()) names += fmt::format("{}--{}", row.short_name != 0 ? ", " : "  ", row.long_name);
    if (!row.argument.empty()) names += fmt::format(" {}", row.argument);
    out += help_row(names, row.doc);
  }
  return out;
}

}  // namespace

std::string help_text() {
  std::string out =
      "espy traces Linux: it compiles a script to BPF, runs it in the kernel and shows what it saw.\n\n"
      "usage: espy [options] FILE [arguments]\n"
      "       espy [options] -e 'PROGRAM' [arguments]\n"
      "       espy -l [PATTERN]\n"
      "       espy info NAME...\n"
      "       espy trace [options] TARGET...\n\n"
      "options:\n";
  out += option_lines(option_rows());
  out += "\noptions of espy trace, besides:\n" + option_lines(kTraceRows);
  out +=
      "\nexamples:\n"
      "  espy -e 'tracepoint:syscalls:sys_enter_openat { printf(\"%s %s\\n\", comm, str(args.filename)); }'\n"
      "      which process opens which file\n"
      "  espy -e 'tracepoint:syscalls:sys_enter_* { @[probe] = count(); }'\n"
      "      system calls by name, until Ctrl-C\n"
      "  espy -l 'tracepoint:sched:*'\n"
      "      what can be traced\n"
      "  espy info vfs_read\n"
      "      the prototype of a function, the layout of a type, the fields of a tracepoint\n"
      "  espy trace 'vfs_read(count > 4096, file->f_path.dentry->d_name.name, count)'\n"
      "      calls of a function, without a program\n";
  return out;
}

}  // namespace espy::cli
