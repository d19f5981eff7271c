// The way of a script. Each stage is a value that --dump can show and --time can measure.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "base/fd.h"
#include "base/strings.h"
#include "bpf/disassemble.h"
#include "check/check.h"
#include "cli/dump.h"
#include "cli/emit.h"
#include "cli/environment.h"
#include "cli/pipeline.h"
#include "ir/text.h"
#include "lower/lower.h"
#include "opt/pipeline.h"
#include "runtime/child.h"
#include "runtime/session.h"
#include "syntax/format.h"
#include "syntax/parser.h"

namespace espy::cli {

namespace {

// What the stages may take, in milliseconds: a script of a few lines should see its first event within 10.
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

bool wants(const Options& options, std::string_view stage) {
  return std::ranges::find(options.dump, stage) != options.dump.end();
}

// What is made and not loaded can be shown to anybody.
bool ends_before_load(const Options& options) { return !options.dump.empty() && !wants(options, "verifier"); }

void dump(const Options& options, std::string_view stage, const std::function<std::string()>& text) {
  if (wants(options, stage)) std::fputs(fmt::format("--- {}\n{}\n", stage, text()).c_str(), stdout);
}

std::string disassemble_all(const program::Program& program) {
  std::string out;
  for (const program::BpfProgram& p : program.programs) out += bpf::disassemble(p, program) + "\n";
  return out;
}

// The verifier's limits: BPF_COMPLEXITY_LIMIT_INSNS, BPF_COMPLEXITY_LIMIT_JMP_SEQ.
bool is_beyond_limits(std::string_view sentence) {
  return sentence.find("program is too large") != sentence.npos ||
         sentence.find("jumps is too complex") != sentence.npos;
}

// "unknown func bpf_probe_read_kernel#113", or "program of this type cannot use helper ...". Every kernel that espy
// runs on has these helpers, but lockdown takes them away.
bool is_locked_down(std::string_view sentence) {
  return sentence.find("bpf_probe_read_kernel") != sentence.npos &&
         (sentence.find("unknown func") != sentence.npos || sentence.find("cannot use helper") != sentence.npos);
}

// A refusal by the verifier is our mistake: show where in the script it is, and the verifier's own words. But for what
// is too much for it, and for what is forbidden.
void explain_refusal(const load::Refusal& refusal, const program::Program& program, const source::Sources& sources) {
  source::Span span;
  for (const program::LineInfo& line : program.programs[refusal.program].lines)
    if (line.insn <= refusal.insn) span = line.span;
  source::Diagnostics diagnostics;
  if (is_beyond_limits(refusal.sentence))
    diagnostics.error(
        "action-too-long", span,
        "the kernel refuses an action as long as this: it looks at a million instructions at most, and at "
        "8192 branches in a row",
        "make several actions of it; those of one probe run in the order of the script");
  else if (is_locked_down(refusal.sentence))
    diagnostics.error("lockdown", span,
                      "the kernel's lockdown (confidentiality) forbids this: it reads memory of the kernel",
                      "arguments, the memory of processes, stacks, counting and printing work");
  else
    diagnostics.error("verifier", span,
                      "the kernel's verifier refused what espy made of this: " +
                          (refusal.sentence.empty() ? "it gave no reason" : refusal.sentence),
                      "this is a bug in espy; --dump=verifier,bpf shows the whole log");
  std::fputs(render(diagnostics, sources).c_str(), stderr);
}

struct Output {
  OwnedFd file;
  std::unique_ptr<output::Writer> writer;
  std::unique_ptr<output::Sink> sink;
};

Result<Output> open_output(const Options& options, const spec::Config& config) {
  Output out;
  int fd = STDOUT_FILENO;
  if (options.output_file) {
    out.file = OwnedFd(::open(options.output_file->c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!out.file.valid()) return fail_errno("cannot write to " + *options.output_file, errno);
    fd = out.file.get();
  }
  out.writer = std::make_unique<output::Writer>(fd, options.buffering);
  out.sink = output::find_sink(options.format)->create(*out.writer, runtime::text_style(config), options.quiet);
  return out;
}

Result<std::optional<runtime::Child>> start_child(const Options& options, spec::Config& config) {
  if (!options.command) return std::nullopt;
  runtime::Child child = TRY(runtime::Child::start(*options.command));
  config.has_child = true;
  config.child_pid = child.pid();
  return std::optional(std::move(child));
}

struct Compiled {
  program::Program program;
  bool has_merged_programs = false;  // some actions have a program in common, which may be too much for it
};

// From a checked script to a program with code; the diagnostics say what does not fit on the BPF stack.
Compiled compile(const check::Checked& checked, Environment& e, const Options& options, StageClock& clock,
                 bool apart = false) {
  lower::Lowered lowered = lower::lower(checked, e.types, *e.kernel, apart);
  clock.lap("lower");
  dump(options, "ir", [&] { return ir::print(lowered.ir); });
  opt::optimize(lowered.ir, e.after_pass);
  clock.lap("opt");
  dump(options, "opt", [&] { return ir::print(lowered.ir); });
  const std::vector<bpf::EmitProblem> problems = emit(lowered.ir, *e.kernel, lowered.program, e.after_pass);
  if (!problems.empty() && lowered.has_merged_programs) return compile(checked, e, options, clock, true);
  for (const bpf::EmitProblem& problem : problems) {
    e.diagnostics.error("stack-too-large", {},
                        fmt::format("the program `{}` needs {} bytes of stack, the kernel gives 512",
                                    lowered.program.programs[problem.program].name, problem.stack_bytes));
  }
  clock.lap("bpf");
  dump(options, "bpf", [&] { return disassemble_all(lowered.program); });
  dump(options, "program", [&] { return program::print(lowered.program, e.types); });
  dump(options, "events", [&] { return dump_events(lowered.program, e.types); });
  return {std::move(lowered.program), lowered.has_merged_programs};
}

Status load(const program::Program& program, Environment& e, const Options& options) {
  e.machine->keep_verifier_log(wants(options, "verifier"));
  const Status loaded = e.machine->load(program, e.types, e.sources);
  dump(options, "verifier", [&] { return e.machine->verifier_log(); });
  return loaded;
}

bool is_refused(const Environment& e) { return e.machine->refusal() && e.machine->refusal()->code != EPERM; }

// `-- --help`, unless the script has an option of that name itself.
bool asks_for_help(const check::Checked& checked) {
  const auto is_help = [](const auto& option) { return option.first == "help"; };
  return std::ranges::any_of(checked.config.named, is_help) &&
         std::ranges::find(checked.options, "help", &check::ScriptOption::name) == checked.options.end();
}

std::string script_help(const check::Checked& checked, const std::string& name) {
  if (checked.options.empty()) return fmt::format("{} has no options\n", name);
  std::string out = fmt::format("options of {}, behind `--`:\n", name);
  for (const check::ScriptOption& option : checked.options) {
    const bool is_switch = option.initial == "true" || option.initial == "false";
    const std::string left = fmt::format("--{}{}", option.name, is_switch ? "" : "=VALUE");
    out += help_row(left, fmt::format("{}{}(default: {})", option.doc, option.doc.empty() ? "" : " ", option.initial));
  }
  return out;
}

// Processes of one program share their mappings where these do not differ: without randomised addresses, and for what
// -c starts.
symbols::CachePolicy cache_policy(const spec::Config& config) {
  using spec::UserSymbolCache;
  const auto randomised = read_file("/proc/sys/kernel/randomize_va_space");
  const bool is_same = config.has_child || (randomised && trim(*randomised) == "0");
  switch (config.cache_user_symbols.value_or(is_same ? UserSymbolCache::kPerProgram : UserSymbolCache::kPerPid)) {
    case UserSymbolCache::kPerProgram: return symbols::CachePolicy::kPerProgram;
    case UserSymbolCache::kPerPid: return symbols::CachePolicy::kPerPid;
    case UserSymbolCache::kNone: return symbols::CachePolicy::kNone;
  }
  return symbols::CachePolicy::kPerPid;
}

Result<int> run_script(const Options& options, Environment* e, const PrepareSession& prepare) {
  StageClock clock(options.time_stages, options.started_at);
  clock.lap("start");
  const source::SourceId script = TRY(read_script(options, e->sources));
  auto child = TRY(start_child(options, e->config));
  clock.lap("read");

  check::CheckRequest request = e->check_request();
  syntax::Ast ast = parse_script(script, request);
  clock.lap("parse");
  dump(options, "script", [&] { return e->sources[script].text; });
  dump(options, "tokens", [&] { return dump_tokens(e->sources, script); });
  dump(options, "ast", [&] { return syntax::dump(ast, e->sources); });
  if (e->diagnostics.has_errors()) {
    report(e->diagnostics, e->sources, options);
    return EXIT_FAILURE;
  }

  if (ast.actions.empty())
    return fail("the program has no probes", 0, "a probe is `begin { ... }`; espy -l lists what can be traced");

  const check::Checked checked = check::check(std::move(ast), request);
  clock.lap("check");
  if (report(e->diagnostics, e->sources, options)) return EXIT_FAILURE;
  dump(options, "types", [&] { return dump_types(checked, e->types); });
  if (asks_for_help(checked)) {
    std::fputs(script_help(checked, e->sources[script].name).c_str(), stdout);
    return EXIT_SUCCESS;
  }
  if (checked.config.follows && !e->kernel->find_struct(e->types, "task_struct").valid())
    return fail("--follow needs the types of the kernel (BTF), which this kernel does not tell");
  e->symbols.configure(checked.config.cpp_demangle, cache_policy(checked.config));

  const size_t reported = e->diagnostics.all().size();
  Compiled compiled = compile(checked, *e, options, clock);
  if (e->diagnostics.all().size() > reported) {
    report(e->diagnostics, e->sources, options);
    return EXIT_FAILURE;
  }
  if (ends_before_load(options)) return EXIT_SUCCESS;

  Status loaded = load(compiled.program, *e, options);
  if (!loaded && compiled.has_merged_programs && is_refused(*e)) {
    compiled = compile(checked, *e, options, clock, true);
    loaded = load(compiled.program, *e, options);
  }
  const program::Program& program = compiled.program;
  if (!loaded && is_refused(*e)) explain_refusal(*e->machine->refusal(), program, e->sources);
  TRY_STATUS(loaded);
  clock.lap("load");
  if (!options.dump.empty()) return EXIT_SUCCESS;

  const Output out = TRY(open_output(options, checked.config));
  runtime::SessionOptions session_options;
  session_options.is_dry_run = options.dry_run;
  session_options.shows_loss_report = options.verbose || (options.strict && options.format == "json");
  session_options.is_strict = options.strict;
  session_options.shows_source =
      checked.config.show_debug_info.value_or(output::find_sink(options.format)->shows_inlined);
  session_options.watched_pid = options.pid;
  session_options.unwound_pids = options.unwound_pids;
  if (child) {
    session_options.child_pid = child->pid();
    session_options.child_program = runtime::split_command(*options.command).front();
    session_options.on_attached = [&] { return child->let_go(); };
  }
  if (prepare) prepare(program, *e, session_options);
  runtime::Session session(*e->machine, program, e->types, e->sources, e->registry, checked.config, *out.sink,
                           *out.writer, e->symbols, session_options);
  const int status = TRY(session.run());
  clock.lap("run");
  return status;
}

}  // namespace

Result<std::unique_ptr<Environment>> open_to_run(const Options& options) {
  const auto is_help = [](const auto& option) { return option.first == "help"; };
  const bool ends_early = ends_before_load(options) || std::ranges::any_of(options.named, is_help);
  if (!ends_early) TRY_STATUS(require_privileges());
  if (options.pid && ::kill(static_cast<pid_t>(*options.pid), 0) != 0 && errno == ESRCH)
    return fail(fmt::format("there is no process {}", *options.pid), ESRCH);
  return open_environment(options);
}

int run_program(const Options& options, Environment& environment, const PrepareSession& prepare) {
  const auto status = run_script(options, &environment, prepare);
  if (status) return *status;
  complain(status.error());
  return EXIT_FAILURE;
}

int run_program(const Options& options) {
  const auto environment = open_to_run(options);
  if (environment) return run_program(options, **environment, {});
  complain(environment.error());
  return EXIT_FAILURE;
}

int format_program(const Options& options) {
  source::Sources sources;
  source::Diagnostics diagnostics;
  const auto script = read_script(options, sources);
  if (!script) {
    complain(script.error());
    return EXIT_FAILURE;
  }
  const syntax::Ast ast = syntax::parse(sources, *script, diagnostics);
  // Headers are not read for this, and a length in them is not known; definitions in C are printed as they are.
  source::Diagnostics serious;
  for (const source::Diagnostic& each : diagnostics.all())
    if (each.id != "not-a-constant") serious.add(each);
  if (report(serious, sources, options)) return EXIT_FAILURE;
  std::fputs(syntax::format(ast, sources, *script).c_str(), stdout);
  return EXIT_SUCCESS;
}

}  // namespace espy::cli
