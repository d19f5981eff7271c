// Runs the stages of a script in order: read, parse, check, compile, load, run. --dump prints their results, --time
// their durations.
#include "run/run_script.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <set>
#include <utility>

#include "base/files.h"
#include "base/progress.h"
#include "base/strings.h"
#include "bpf/disassemble.h"
#include "check/check.h"
#include "check/check_passes.h"
#include "compile/compile.h"
#include "ir/ir_text.h"
#include "load/refusal.h"
#include "run/environment.h"
#include "run/live_views.h"
#include "runtime/child.h"
#include "runtime/session.h"
#include "syntax/format_script.h"
#include "syntax/lexer.h"
#include "syntax/parser.h"
#include "tool/tool.h"

namespace espy::run {

namespace {

// How long each stage may take: a script of a few lines shall see its first event within 10 ms.
struct Budget {
  std::string_view stage;
  double ms;
};
constexpr Budget kBudgets[] = {{"start", 1},   {"read", 0.5}, {"parse", 0.5}, {"check", 1},
                               {"lower", 1.5}, {"opt", 0.5},  {"bpf", 0.5},   {"load", 4}};

// --time: what each stage took, in milliseconds.
class StageClock {
 public:
  StageClock(bool is_shown, std::chrono::steady_clock::time_point started_at)
      : is_shown_(is_shown), last_(started_at) {}

  void lap(std::string_view stage) {
    const auto now = std::chrono::steady_clock::now();
    if (is_shown_) {
      const double ms = std::chrono::duration<double, std::milli>(now - last_).count();
      const auto* budget = std::ranges::find(kBudgets, stage, &Budget::stage);
      const std::string allowed =
          budget == std::end(kBudgets) ? "" : fmt::format(" of {:.1f}{}", budget->ms, ms > budget->ms ? ", over" : "");
      std::fputs(fmt::format("{:<8}{:8.3f} ms{}\n", stage, ms, allowed).c_str(), stderr);
    }
    last_ = now;
  }

 private:
  bool is_shown_;
  std::chrono::steady_clock::time_point last_;
};

bool wants(const RunOptions& options, std::string_view stage) {
  return std::ranges::find(options.stages.dumped, stage) != options.stages.dumped.end();
}

void dump(const RunOptions& options, std::string_view stage, const std::function<std::string()>& text) {
  if (!wants(options, stage)) return;
  const std::string shown = stage == "script" ? text() : printable(text());  // programs name what is in other stages
  std::fputs(fmt::format("--- {}\n{}\n", stage, shown).c_str(), stdout);
}

std::string disassemble_all(const program::Program& program) {
  std::string out;
  for (const program::BpfProgram& p : program.programs) out += bpf::disassemble(p, program) + "\n";
  return out;
}

bool takes_addresses(const syntax::Ast& ast) {
  return std::ranges::any_of(ast.exprs, [](const syntax::Expr& each) {
    const auto* unary = std::get_if<syntax::Unary>(&each.node);
    return unary && unary->op == syntax::UnaryOp::kAddressOf;
  });
}

// Reports a refusal by the verifier at its line of the script.
void explain_refusal(const load::Refusal& refusal, const program::Program& program, const syntax::Ast& ast,
                     const source::Sources& sources) {
  const program::BpfProgram& code = program.programs[refusal.program];
  source::Diagnostics diagnostics;
  if (load::reason_of(refusal, code) == load::RefusalReason::kTooLong)
    compile::report_too_long(diagnostics, load::span_of(refusal, code));
  else
    load::report_refusal(refusal, code, takes_addresses(ast), diagnostics);
  std::fputs(render(diagnostics, sources).c_str(), stderr);
}

struct Output {
  OwnedFd file;
  std::unique_ptr<output::Writer> writer;
  std::unique_ptr<output::Sink> sink;
  runtime::TerminalText terminal;
};

// The texts of a script that have control characters, such as those that switch colours: they are meant for a terminal.
std::set<std::string> own_texts(const syntax::Ast& ast) {
  std::set<std::string> out;
  for (const syntax::Expr& each : ast.exprs)
    if (const auto* text = std::get_if<syntax::StringLiteral>(&each.node))
      if (printable_line(text->value) != text->value) out.insert(text->value);
  return out;
}

// The texts of a script that was built are names of files, and no own texts.
runtime::TerminalText terminal_of(const output::SinkRow& format, const output::Writer& writer, const syntax::Ast& ast,
                                  bool is_built) {
  runtime::TerminalText out;
  out.is_output = format.has_text && writer.is_terminal();
  out.is_messages = format.has_text && ::isatty(STDERR_FILENO) == 1;
  if (out.is_output || out.is_messages)
    out.own_texts = std::make_shared<const std::set<std::string>>(is_built ? std::set<std::string>() : own_texts(ast));
  return out;
}

Status check_appended(const RunOptions& options) {
  if (!options.output.appends) return {};
  const std::string_view option = options.output.reopens ? "--reopen" : "--append";
  if (!options.output.file) return fail(fmt::format("{} needs a file to write to", option), 0, "-o FILE");
  if (output::find_sink(options.output.format)->has_lines) return {};
  return fail(fmt::format("{} cannot be used with -f {}: a file of this format holds one run, with a head and an end",
                          option, options.output.format),
              0, fmt::format("the formats that consist of lines are {}", output::sinks_with_lines()));
}

// O_APPEND: what another program has cut off from the file, as `copytruncate` of logrotate(8) does, leaves no hole.
Result<OwnedFd> open_output_file(const RunOptions& options, int flags) {
  const std::string file = options.is_dry_run ? "/dev/null" : *options.output.file;
  return espy::open_output(file, O_WRONLY | O_CREAT | O_APPEND | flags, 0644);
}

// --reopen, after SIGHUP.
void reopen_output(const RunOptions& options, Output& out) {
  auto file = open_output_file(options, 0);
  if (!file) {
    const std::string message =
        fmt::format("WARNING: {}; espy continues to write to the open file\n", file.error().message);
    std::fputs(printable(message).c_str(), stderr);
    return;
  }
  out.writer->move_to(file->get());
  out.file = std::move(*file);
}

// Until the session takes SIGHUP, SIGHUP waits: a rotation may come at any time. Children unblock all signals.
void block_hangup() {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGHUP);
  ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
}

Result<Output> open_output(const RunOptions& options, const check::Checked& checked, bool is_built) {
  Output out;
  int fd = STDOUT_FILENO;
  const output::SinkRow& format = *output::find_sink(options.output.format);
  if (format.is_binary && !options.output.file && ::isatty(fd) == 1)
    return fail(fmt::format("-f {} writes a binary file, not for a terminal", format.name), 0,
                "name a file with -o, or redirect the output");
  if (options.output.file) {
    out.file = TRY(open_output_file(options, options.output.appends ? 0 : O_TRUNC));
    fd = out.file.get();
  }
  out.writer = std::make_unique<output::Writer>(fd, options.output.buffering);
  const bool is_binary =
      !format.binary_suffix.empty() && options.output.file && options.output.file->ends_with(format.binary_suffix);
  output::TextStyle style = runtime::text_style(checked.config);
  out.terminal = terminal_of(format, *out.writer, checked.ast, is_built);
  style.own_texts = out.terminal.own_texts;
  out.sink = (is_binary ? format.create_binary : format.create)(
      *out.writer, std::move(style), options.output.is_quiet ? output::Quiet::kYes : output::Quiet::kNo);
  return out;
}

// No shell reads the command of -c: what would be an operator of a shell is an argument.
void warn_of_shell_operators(const std::string& command) {
  constexpr std::string_view kOperators[] = {"|", "||", "&&", "&", ">", ">>", "<", "2>", "2>&1", "|&"};
  const std::vector<std::string_view> words = split(command, ' ');
  bool is_quoted = false;
  for (const std::string_view word : words) {
    const bool is_operator = std::ranges::find(kOperators, word) != std::end(kOperators);
    if (is_operator && !is_quoted && word.data() != command.data()) {
      std::fputs(printable(fmt::format("WARNING: no shell reads the command of -c: `{}` is an argument of `{}`\n"
                                       "  hint: -c \"sh -c '...'\" runs a shell\n",
                                       word, words.front()))
                     .c_str(),
                 stderr);
      return;
    }
    if ((std::ranges::count(word, '\'') + std::ranges::count(word, '"')) % 2 != 0) is_quoted = !is_quoted;
  }
}

Result<std::optional<runtime::Child>> start_child(const RunOptions& options, const runtime::Identity* user,
                                                  spec::Config& config) {
  if (!options.tracee.command) return std::nullopt;
  if (!options.output.hides_warnings) warn_of_shell_operators(*options.tracee.command);
  runtime::Child child = TRY(runtime::Child::start(*options.tracee.command, user));
  config.tracee.has_child = true;
  config.tracee.child_pid = child.pid();
  if (config.tracee.follows) config.tracee.child_start = find_process_start(config, config.tracee.child_pid);
  return std::optional(std::move(child));
}

// What --time and --dump show of a compilation.
void show_stage(const compile::StageResult& result, const Environment& e, const RunOptions& options,
                StageClock& clock) {
  switch (result.stage) {
    case compile::Stage::kLower:
      clock.lap("lower");
      dump(options, "ir", [&] { return ir::print(result.ir); });
      break;
    case compile::Stage::kOptimize:
      clock.lap("opt");
      dump(options, "opt", [&] { return ir::print(result.ir); });
      break;
    case compile::Stage::kOutlineLoops: break;
    case compile::Stage::kEmit:
      clock.lap("bpf");
      dump(options, "bpf", [&] { return disassemble_all(result.program); });
      dump(options, "program", [&] { return program::print(result.program, e.types); });
      dump(options, "events", [&] { return dump_events(result.program, e.types); });
      break;
  }
}

Status load(const program::Program& program, Environment& e, const RunOptions& options) {
  e.machine->keep_verifier_log(wants(options, "verifier"));
  const Status loaded = e.machine->load(program, e.types, e.sources);
  dump(options, "verifier", [&] { return e.machine->verifier_log(); });
  return loaded;
}

bool is_refused(const Environment& e) {
  const auto& refusal = e.machine->refusal();
  return refusal && load::is_by_verifier(*refusal);
}

bool is_too_long(const Environment& e, const program::Program& program) {
  const load::Refusal& refusal = *e.machine->refusal();
  return load::reason_of(refusal, program.programs[refusal.program]) == load::RefusalReason::kTooLong;
}

// `-- --help`, unless the script has an option of that name itself.
bool asks_for_help(const check::Checked& checked) {
  const auto is_help = [](const auto& option) { return option.first == "help"; };
  return std::ranges::any_of(checked.config.arguments.named, is_help) &&
         std::ranges::find(checked.options, "help", &check::ScriptOption::name) == checked.options.end();
}

std::string script_help(const check::Checked& checked, const std::string& name) {
  if (checked.options.empty()) return fmt::format("{} has no options\n", name);
  return fmt::format("options of {}, behind `--`:\n{}", name, script_option_lines(checked.options));
}

// Some warnings before the run tell that numbers will not be exact.
Status refuse_partly_probed(const source::Diagnostics& diagnostics) {
  constexpr std::string_view kInexact[] = {"partly-probed", "counted-again", "inlined-copies",
                                           "mixed-signs",   "shared-code",   "never-fires"};
  for (const source::Diagnostic& each : diagnostics.all())
    if (std::ranges::find(kInexact, each.id) != std::end(kInexact))
      return fail("not all that would be shown is exact: " + each.message);
  return {};
}

// Processes of one program have the same mappings if addresses are not randomised.
symbols::CachePolicy cache_policy(const spec::Config& config) {
  using spec::UserSymbolCache;
  const auto randomised = read_file("/proc/sys/kernel/randomize_va_space");
  const bool is_same = randomised && trim(*randomised) == "0";
  switch (config.symbols.cache.value_or(is_same ? UserSymbolCache::kPerProgram : UserSymbolCache::kPerPid)) {
    case UserSymbolCache::kPerProgram: return symbols::CachePolicy::kPerProgram;
    case UserSymbolCache::kPerPid: return symbols::CachePolicy::kPerPid;
    case UserSymbolCache::kNone: return symbols::CachePolicy::kNone;
  }
  return symbols::CachePolicy::kPerPid;
}

// Compiles the script and loads the program, unless only dumps are wanted. nullopt, after a report, if the program does
// not fit the kernel's limits, or if the verifier refused it.
Result<std::optional<program::Program>> compile_and_load(const check::Checked& checked, Environment& e,
                                                         const RunOptions& options, StageClock& clock) {
  compile::Options compile_options;
  compile_options.after_pass = e.after_pass;
  compile_options.observer = [&](const compile::StageResult& result) { show_stage(result, e, options, clock); };
  compile::Compiled compiled = compile::compile(checked, e.types, *e.kernel, compile_options);
  if (report(compiled.diagnostics, e.sources, options)) return std::nullopt;
  if (ends_before_load(options)) return std::move(compiled.program);

  Status loaded = load(compiled.program, e, options);
  const auto load_with = [&](bool compile::Options::*option) {
    compile_options.*option = true;
    compiled = compile::compile(checked, e.types, *e.kernel, compile_options);
    loaded = load(compiled.program, e, options);
  };
  if (!loaded && is_refused(e) && compiled.has_copies && is_too_long(e, compiled.program))
    load_with(&compile::Options::loops_for_unroll);
  if (!loaded && is_refused(e) && compiled.has_merged_programs) load_with(&compile::Options::separate_programs);
  if (!loaded && is_refused(e)) {
    explain_refusal(*e.machine->refusal(), compiled.program, checked.ast, e.sources);
    return std::nullopt;
  }
  TRY_STATUS(loaded);
  clock.lap("load");
  return std::move(compiled.program);
}

// --duration: sends this process the signal of Ctrl-C then.
Status interrupt_after(uint64_t duration_ns) {
  constexpr uint64_t kSecond = 1'000'000'000;
  sigevent event = {};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGINT;
  timer_t timer = {};
  itimerspec when = {};
  when.it_value = {static_cast<time_t>(duration_ns / kSecond), static_cast<long>(duration_ns % kSecond)};
  if (::timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || ::timer_settime(timer, 0, &when, nullptr) != 0)
    return fail_errno("cannot set a timer for --duration", errno);
  return {};
}

// `child`: the process of -c; null without.
runtime::SessionOptions session_options_of(const RunOptions& options, const check::Checked& checked,
                                           runtime::Child* child) {
  runtime::SessionOptions out;
  out.is_dry_run = options.is_dry_run;
  out.is_strict = options.is_strict;
  out.shown.has_loss_report = options.is_verbose || (options.is_strict && options.output.format == "json");
  out.shown.stack_detail = {.has_source = checked.config.symbols.debug_info,
                            .has_files = output::find_sink(options.output.format)->needs_files};
  out.cost.is_shown = options.cost.is_shown || options.is_verbose;
  out.cost.interval_ns = options.cost.interval_ns;
  out.cost.budget_cpus = options.cost.budget_cpus;
  out.cost.is_checked = options.cost.is_checked;
  out.tracee.follows_new_only = options.tracee.follows_new_only;
  out.tracee.unwound_pids = options.tracee.unwound_pids;
  out.left_out_by_filter = check::events_in_other_tasks(checked);
  if (checked.config.tracee.cgroup && !checked.config.tracee.cgroup->is_root)
    out.tracee.watched_directory = checked.config.tracee.cgroup->path;
  if (child) {
    out.tracee.child_pid = child->pid();
    out.tracee.child_program = runtime::split_command(*options.tracee.command)->front();
    out.on_attached = [child] { return child->let_go(); };
  }
  if (options.duration_ns > 0)
    out.on_attached = [next = std::move(out.on_attached), duration_ns = options.duration_ns]() -> Status {
      TRY_STATUS(interrupt_after(duration_ns));
      return next ? next() : Status();
    };
  return out;
}

void warn_if_failed(const Status& done) {
  if (!done) std::fputs(printable(fmt::format("WARNING: {}\n", done.error().message)).c_str(), stderr);
}

void finish_child(runtime::Child& child, bool hides_warnings) {
  warn_if_failed(child.end());
  if (!hides_warnings && !child.failure().empty())
    std::fputs(fmt::format("WARNING: the command of -c {}\n", child.failure()).c_str(), stderr);
}

// Gives the script of a file its words of the command line: `--name VALUE` is one option if the script asks for it with
// getopt(). What is wrong is reported here, once, rather than at each place that uses it.
Status take_script_words(const RunOptions& options, const std::string& text, spec::Config& config) {
  const auto head = tool::tool_head(text);
  if (options.script.words.empty()) return head ? tool::check_parameters(*head, config.arguments.positional) : Status();
  const std::vector<check::ScriptOption> known = tool::script_options(text);
  config.arguments.named.clear();
  std::vector<std::string> plain;
  for (size_t i = 0; i < options.script.words.size(); ++i) {
    const std::string& word = options.script.words[i];
    if (!word.starts_with("--")) {
      plain.push_back(word);
      continue;
    }
    const size_t equals = std::min(word.find('='), word.size());
    const std::string name = word.substr(2, equals - 2);
    std::string value = equals < word.size() ? word.substr(equals + 1) : "true";
    const auto option = std::ranges::find(known, name, &check::ScriptOption::name);
    if (option != known.end()) {
      if (equals == word.size() && !option->is_switch()) {
        if (i + 1 == options.script.words.size()) return fail(fmt::format("--{} needs an argument", name));
        value = options.script.words[++i];
      }
      TRY_STATUS(tool::check_value(*option, value));
    }
    config.arguments.named.emplace_back(name, value);
  }
  const auto is_plain = [](const std::string& word) { return !word.starts_with("--"); };
  config.arguments.positional.resize(config.arguments.positional.size() -
                                     static_cast<size_t>(std::ranges::count_if(options.script.words, is_plain)));
  std::ranges::move(plain, std::back_inserter(config.arguments.positional));
  return head ? tool::check_parameters(*head, config.arguments.positional) : Status();
}

Status why_not_here(const tool::Tool& tool, const source::Diagnostics& diagnostics) {
  const auto is_error = [](const source::Diagnostic& each) { return each.severity == source::Severity::kError; };
  const auto first = std::ranges::find_if(diagnostics.all(), is_error);
  const auto count = std::ranges::count_if(diagnostics.all(), is_error);
  return fail(fmt::format("{} cannot run on this kernel: {}{}", tool.name, first->message,
                          count > 1 ? fmt::format(" ({} more such errors)", count - 1) : ""),
              0, first->hint);
}

// Without the events that it is about, a tool would print its header and nothing else, for ever. `missing_probes` lets
// a script run without some of its probes.
Status refuse_tool_without_events(const tool::Tool& tool, const check::Checked& checked) {
  const auto is_event = [](const check::Unit& unit) {
    return unit.action != nullptr && unit.context.is_limited_to_pid;
  };
  if (std::ranges::any_of(checked.units, is_event)) return {};
  const auto is_missing = [&](const syntax::Action& action) {
    return std::ranges::find(checked.units, &action, &check::Unit::action) == checked.units.end();
  };
  const auto missing = std::ranges::find_if(checked.ast.actions, is_missing);
  if (missing == checked.ast.actions.end()) return {};
  std::string probe = missing->attach_points.front().provider.text;
  for (const syntax::AttachPart& part : missing->attach_points.front().parts) probe += ":" + part.text;
  return fail(fmt::format("{} cannot run on this kernel: it has no {}", tool.name, probe));
}

// Fails in one line if a tool of espy cannot run here: its script is not the user's.
Status check_bundled(const tool::Tool& tool, const check::Checked& checked, const source::Diagnostics& diagnostics) {
  return diagnostics.has_errors() ? why_not_here(tool, diagnostics) : refuse_tool_without_events(tool, checked);
}

bool has_stack(const types::Types& types, types::TypeId id) {
  const types::Type& type = types[id];
  if (type.kind == types::Kind::kKernelStack || type.kind == types::Kind::kUserStack) return true;
  return is_struct_like(type) &&
         std::ranges::any_of(type.members, [&](const types::Member& each) { return has_stack(types, each.type); });
}

// Formats of stacks show nothing of a script without stacks.
Status refuse_format_without_stacks(const RunOptions& options, const check::Checked& checked,
                                    const types::Types& types) {
  if (!output::find_sink(options.output.format)->shows_stacks) return {};
  const auto is_shown = [&](const check::CheckedMap& map) { return map.key.valid() && has_stack(types, map.key); };
  if (std::ranges::any_of(checked.maps, is_shown)) return {};
  return fail(fmt::format("{} has no stacks, and -f {} shows maps with a stack in the key", options.script.tool->name,
                          options.output.format),
              0, "-f json has all that it shows");
}

// A script that was checked when its tool was built.
int refuse_tool(const RunOptions& options, const source::Diagnostics& diagnostics) {
  utsname kernel = {};
  const auto is_about_arguments = [](const source::Diagnostic& each) { return each.id == "bad-option"; };
  if (std::ranges::any_of(diagnostics.all(), is_about_arguments)) return EXIT_FAILURE;
  if (!options.script.tool || !options.script.tool->knows_all_options || ::uname(&kernel) != 0) return EXIT_FAILURE;
  return complain(
      {fmt::format("the tool was built without this error: this kernel, Linux {}, lacks a feature, or the "
                   "arguments are wrong",
                   kernel.release)});
}

// Behind `--` as well, where any name is accepted until the script is checked.
Status refuse_unknown_options(const tool::Tool& tool, const check::Checked& checked) {
  const auto has = [](const auto& options, const std::string& name) {
    return std::ranges::find(options, name, &check::ScriptOption::name) != options.end();
  };
  for (const auto& [name, value] : checked.config.arguments.named)
    if (!has(checked.options, name) && !has(tool.options, name))
      return fail(fmt::format("there is no option `--{}`", name), 0, "--help lists them");
  return {};
}

Status check_tool(const RunOptions& options, const check::Checked& checked, const types::Types& types) {
  TRY_STATUS(refuse_unknown_options(*options.script.tool, checked));
  return refuse_format_without_stacks(options, checked, types);
}

// An iterator sees all objects of the machine, in espy's own process.
Status refuse_iterators_of_group(const check::Checked& checked) {
  const auto iterates = [](const check::Unit& unit) { return unit.context.kind == program::ProgramKind::kIter; };
  if (!checked.config.tracee.cgroup || std::ranges::none_of(checked.units, iterates)) return {};
  return fail("an `iter` probe cannot be limited to a control group: it visits the whole machine", 0,
              "without --cgroup and --container it runs");
}

// The tree of a script that is text.
syntax::Ast parse(source::SourceId script, check::CheckRequest& request, const RunOptions& options) {
  syntax::Ast out = parse_script(script, request);
  dump(options, "script", [&] { return request.sources[script].text; });
  dump(options, "tokens", [&] { return dump_tokens(request.sources, script); });
  return out;
}

// The tree of a script that was built, whose probes must outlive the request, with what the headers of --include
// define.
syntax::Ast take(BuiltScript& script, check::CheckRequest& request, const RunOptions& options) {
  request.bound = script.probes;
  syntax::Prelude prelude = check::read_script_headers(script.ast, request);
  script.ast.c_definitions = std::move(prelude.definitions);
  dump(options, "script", [&] { return printable(syntax::format(script.ast)); });
  return std::move(script.ast);
}

runtime::RunParts parts_of(Environment& e, const program::Program& program, const spec::Config& config,
                           output::Sink& sink, output::Writer& out) {
  return {.machine = *e.machine,
          .program = program,
          .types = e.types,
          .sources = e.sources,
          .registry = e.registry,
          .config = config,
          .symbols = e.symbols,
          .sink = sink,
          .out = out};
}

// `built`: the script to run; if null, the script that the options name.
Result<int> compile_and_run(const RunOptions& options, Environment* e, const PrepareSession& prepare,
                            BuiltScript* built) {
  StageClock clock(options.stages.are_timed, options.stages.started_at);
  clock.lap("start");
  TRY_STATUS(check_appended(options));
  if (options.output.reopens) block_hangup();
  const source::SourceId script = built == nullptr ? TRY(read_script(options, e->sources)) : source::SourceId();
  if (built == nullptr && !options.script.tool)
    TRY_STATUS(take_script_words(options, e->sources[script].text, e->config));
  const std::optional<runtime::Identity> user =
      options.user.empty() ? std::nullopt : std::optional(TRY(runtime::find_identity(options.user)));
  auto child = TRY(start_child(options, user ? &*user : nullptr, e->config));
  clock.lap("read");

  // With fewer values than the kernel has CPUs, what happens on the others would be lost.
  if (e->kernel->cpu_count() == 0)
    return fail("cannot determine the number of possible CPUs: cannot read /sys/devices/system/cpu/possible", 0,
                "`mount -t sysfs sysfs /sys` mounts it");
  check::CheckRequest request = e->check_request();
  syntax::Ast ast = built == nullptr ? parse(script, request, options) : take(*built, request, options);
  clock.lap("parse");
  dump(options, "ast", [&] { return syntax::dump(ast, e->sources); });
  if (e->diagnostics.has_errors()) {
    report(e->diagnostics, e->sources, options);
    return EXIT_FAILURE;
  }

  if (ast.actions.empty())
    return fail("the program has no probes", 0, "a probe is `begin { ... }`; espy -l lists what can be traced");

  const check::Checked checked = check::check(std::move(ast), request);
  clock.lap("check");
  if (options.script.tool && options.script.tool->is_bundled)
    TRY_STATUS(check_bundled(*options.script.tool, checked, e->diagnostics));
  if (report(e->diagnostics, e->sources, options)) return refuse_tool(options, e->diagnostics);
  if (options.is_strict) TRY_STATUS(refuse_partly_probed(e->diagnostics));
  if (options.script.tool) TRY_STATUS(check_tool(options, checked, e->types));
  dump(options, "types", [&] { return dump_types(checked, e->types); });
  if (built == nullptr && asks_for_help(checked)) {
    std::fputs(script_help(checked, e->sources[script].name).c_str(), stdout);
    return EXIT_FAILURE;  // as in bpftrace: the script did not run
  }
  TRY_STATUS(refuse_iterators_of_group(checked));
  if (checked.config.tracee.follows && !e->kernel->find_struct(e->types, "task_struct").valid())
    return fail("--follow, and -c of a tool, need the types of the kernel (BTF), which this kernel lacks");
  e->symbols.configure(checked.config.symbols.demangle, cache_policy(checked.config));

  const auto program = TRY(compile_and_load(checked, *e, options, clock));
  if (!program) return EXIT_FAILURE;
  if (!options.stages.dumped.empty()) return EXIT_SUCCESS;
  if (child) child->wait_until_ready();

  Progress progress(STDERR_FILENO, !options.output.is_quiet);  // outlives the writer, which hides it
  Output out = TRY(open_output(options, checked, built != nullptr));
  runtime::SessionOptions session_options = session_options_of(options, checked, child ? &*child : nullptr);
  session_options.shown.terminal = out.terminal;
  if (options.output.reopens) session_options.on_hangup = [&] { reopen_output(options, out); };
  if (progress.is_shown()) {
    session_options.shown.progress = &progress;
    e->symbols.on_work([&progress] { progress.tick(); });
    out.writer->before_output([&progress] { progress.hide(); });
  }
  const auto watch = TRY(open_watch(options, checked, *program, *e, *out.sink));
  if (watch) session_options.shown.servers.push_back(watch.get());
  const auto server = TRY(open_live_server(options, checked, *program, *e, watch ? watch->sink() : *out.sink));
  if (server) session_options.shown.servers.push_back(server.get());
  if (user)
    session_options.on_set_up = [&] { return give_up_rights(*user, check::capabilities_of(checked, e->registry), *e); };
  if (options.cost.is_budget_of_all_cpus) session_options.cost.budget_cpus *= e->kernel->cpu_count();
  if (prepare) prepare(*program, *e, session_options);
  const bool needs_hooks = options.cost.needs_hook_costs() || options.output.listen.has_value();
  if (needs_hooks && session_options.replay.next_event == nullptr)
    session_options.cost.hooks = load::measure_hook_costs(*e->kernel, *program);
  output::Sink& sink = server ? server->sink() : watch ? watch->sink() : *out.sink;
  runtime::Session session(parts_of(*e, *program, checked.config, sink, *out.writer), session_options);
  const int status = TRY(session.run());
  clock.lap("run");
  if (child) finish_child(*child, options.output.hides_warnings);
  return status;
}

}  // namespace

bool ends_before_load(const RunOptions& options) {
  return !options.stages.dumped.empty() && !wants(options, "verifier");
}

namespace {

int run(const RunOptions& options, Environment& environment, const PrepareSession& prepare, BuiltScript* built) {
  const auto status = compile_and_run(options, &environment, prepare, built);
  if (status) return *status;
  if (status.error().code == EPIPE) ::raise(SIGPIPE);  // the reader has gone: ends silently, as other programs do
  return complain(status.error());
}

}  // namespace

int run_script(const RunOptions& options, Environment& environment, const PrepareSession& prepare) {
  return run(options, environment, prepare, nullptr);
}

int run_script(BuiltScript script, const RunOptions& options, Environment& environment, const PrepareSession& prepare) {
  return run(options, environment, prepare, &script);
}

std::string wrapped(std::string_view doc, size_t column) {
  constexpr size_t kColumns = 80;
  std::string out;
  size_t used = column;
  for (const std::string_view word : split(doc, ' ')) {
    if (used > column && used + 1 + word.size() > kColumns) {
      out += fmt::format("\n{:{}}", "", column);
      used = column;
    }
    if (used > column) out += ' ';
    used += (used > column ? 1 : 0) + word.size();
    out += word;
  }
  return out;
}

std::string help_row(std::string_view name, std::string_view doc, size_t column) {
  const std::string text = wrapped(doc, column);
  return name.size() + 3 < column ? fmt::format("  {:<{}}{}\n", name, column - 2, text)
                                  : fmt::format("  {}\n{:{}}{}\n", name, "", column, text);
}

std::string script_option_lines(const std::vector<check::ScriptOption>& options) {
  std::string out;
  for (const check::ScriptOption& option : options) {
    const std::string left = fmt::format("--{}{}", option.name, option.is_switch() ? "" : "=VALUE");
    out += help_row(left, fmt::format("{}{}(default: {})", option.doc, option.doc.empty() ? "" : " ", option.initial));
  }
  return out;
}

std::string dump_tokens(const source::Sources& sources, source::SourceId script) {
  const std::string_view text = sources[script].text;
  syntax::Lexer lexer(text);
  std::string out;
  for (syntax::Token token = lexer.next(); token.kind != syntax::TokenKind::kEnd; token = lexer.next()) {
    const source::LineColumn place = sources.line_column(script, token.begin);
    out +=
        fmt::format("{}:{} {}\n", place.line, place.column, escape(text.substr(token.begin, token.end - token.begin)));
  }
  return out;
}

std::string dump_types(const check::Checked& checked, const types::Types& types) {
  const auto name = [&](types::TypeId type) { return type ? types::to_string(types, type) : "?"; };
  std::string out;
  for (const check::CheckedMap& map : checked.maps)
    out += fmt::format("{} key={} value={}\n", map.name, name(map.key), name(map.value));
  for (const check::Unit& unit : checked.units) {
    out += unit.function != nullptr ? fmt::format("fn {}\n", unit.function->name) : "action\n";
    for (const program::ProbeId id : unit.probes)
      out += fmt::format("  probe {}\n", printable_line(checked.probes[id].name));
    for (const spec::ContextField& field : unit.context.args)
      out += fmt::format("  args.{} {}\n", field.name, name(field.type));
    for (const spec::ContextField& field : unit.context.locals)
      out += fmt::format("  locals.{} {}\n", field.name, name(field.type));
    for (const check::Variable& variable : unit.variables)
      out += fmt::format("  {} {}\n", variable.name, name(variable.type));
  }
  return out;
}

std::string dump_events(const program::Program& program, const types::Types& types) {
  std::string out;
  for (const program::EventId id : program.events.ids()) {
    const program::EventSchema& schema = program.events[id];
    out += fmt::format("{} {} {} bytes", id.index, schema.builtin, schema.size_bytes);
    for (const program::EventField& field : schema.fields)
      out += fmt::format(", {} at {}{}", types::to_string(types, field.type), field.offset_bytes,
                         field.is_in_tail ? " in the tail" : "");
    out += '\n';
  }
  return out;
}

namespace {

constexpr uint64_t kBpf = uint64_t{1} << CAP_BPF;

}  // namespace

Status give_up_rights(const runtime::Identity& user, const std::vector<std::string_view>& used, Environment& e) {
  if (std::ranges::find(used, "CAP_SYSLOG") != used.end())
    while (e.symbols.read_kernel_ahead()) {
    }
  const auto fail_with = [&](int code) {
    return fail_errno(fmt::format("cannot become the user {}", user.name), code,
                      "--user needs root, or CAP_SETUID and CAP_SETGID");
  };
  if (::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0) return fail_with(errno);
  if (const int code = runtime::become(user); code != 0) return fail_with(code);
  // The effective capabilities have gone with the ids.
  const bool keeps_bpf = e.machine->refuses_maps();
  if (const int code = runtime::drop_capabilities(keeps_bpf ? kBpf : 0); code != 0) return fail_with(code);
  if (keeps_bpf)
    std::fputs("WARNING: espy keeps CAP_BPF, without which this kernel does not let it read maps\n", stderr);
  return {};
}

}  // namespace espy::run
