// espy record: writes the events of probes to a file, over which `espy -i` runs scripts later.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/strings.h"
#include "cli/command.h"
#include "kernel/snapshot.h"
#include "record/record_script.h"
#include "record/recorder.h"
#include "run/run_script.h"

namespace espy::cli {

namespace {

struct RecordOptions : CommandOptions {
  record::RecordWishes wishes;
  std::vector<std::string> scripts;  // --for

  bool makes_recordings() const override { return true; }
  bool replaces_names() const override { return !scripts.empty(); }
};

record::RecordWishes& wishes_of(Options& options) { return static_cast<RecordOptions&>(*options.own).wishes; }

Status set_size(Options& options, std::string_view text) {
  constexpr uint64_t kMaxTextBytes = 16 << 10;
  const uint64_t size = TRY(parse_count("--size", text));
  if (size < 16 || size > kMaxTextBytes)
    return fail(fmt::format("--size takes 16 to {} bytes, not `{}`", kMaxTextBytes, text));
  wishes_of(options).max_text_bytes = static_cast<uint32_t>(size);
  return {};
}

Status set_depth(Options& options, std::string_view text) {
  const auto depth = parse_int(text);
  if (!depth || *depth < 0 || *depth > record::kMaxRecordDepth)
    return fail(fmt::format("--depth takes 0 to {} pointers, not `{}`", record::kMaxRecordDepth, text));
  wishes_of(options).depth = static_cast<uint32_t>(*depth);
  return {};
}

Status set_parents(Options& options, std::string_view text) {
  const auto count = parse_int(text);
  if (!count || *count < 0 || *count > record::kMaxParents)
    return fail(fmt::format("--parents takes 0 to {} parents, not `{}`", record::kMaxParents, text));
  wishes_of(options).parents = static_cast<uint32_t>(*count);
  return {};
}

template <bool record::RecordWishes::*kStack>
Status set_stack(Options& options, std::string_view) {
  wishes_of(options).*kStack = true;
  return {};
}

Status add_script(Options& options, std::string_view path) {
  static_cast<RecordOptions&>(*options.own).scripts.emplace_back(path);
  return {};
}

// What the scripts of --for read.
Status add_scripts(const Options& options, Environment& e, record::RecordWishes& wishes) {
  const auto& own = static_cast<const RecordOptions&>(*options.own);
  if (own.scripts.empty()) return {};
  record::ScriptReads reads;
  e.config.tracee.has_child = options.tracee.command.has_value();  // it is started later
  for (const std::string& path : own.scripts) {
    Options of_script = options;
    of_script.script.file = path;
    TRY_STATUS(record::add_reads(of_script, e, reads));
  }
  e.config.tracee.has_child = false;
  wishes.depth = std::min(record::kMaxRecordDepth, std::max(wishes.depth, reads.depth));
  wishes.reads = std::move(reads);
  return {};
}

constexpr OptionRow kRows[] = {
    {0, "for", "SCRIPT", "record the data that this script reads (may be repeated)", add_script},
    {0, "size", "BYTES", "record this many bytes of each string and struct (256)", set_size},
    {0, "depth", "N", "record strings and structs behind this many pointers (1)", set_depth},
    {0, "parents", "N", "record the ids and names of this many parents of each task (1)", set_parents},
    {0, "kstack", "", "record the kernel stack of each event", set_stack<&record::RecordWishes::kernel_stack>},
    {0, "ustack", "", "record the user stack of each event", set_stack<&record::RecordWishes::user_stack>},
};

std::string command_line(const Options& options) {
  std::string out = "espy record";
  for (const std::string& path : static_cast<const RecordOptions&>(*options.own).scripts)
    out += fmt::format(" --for {}", path);
  for (const std::string& name : options.names) out += " " + name;
  if (options.tracee.command) out += fmt::format(" -c '{}'", *options.tracee.command);
  return out;
}

int record(const Options& options, const Host& host) {
  if (!options.output.file)
    return complain({"espy record needs a file to write to", 0, "espy record -o FILE PROBE..."});
  if (!options.replay.files.empty())
    return complain({"espy record takes its events from this machine, not from a recording"});
  if (options.output.listen || options.output.watch_interval_ns > 0)
    return complain({"espy record has no maps to show", 0, "--listen and --watch go with a script"});
  for (const std::string& script : static_cast<const RecordOptions&>(*options.own).scripts)
    if (const Status kept = check_script_is_kept("-o", *options.output.file, script); !kept)
      return complain(kept.error());
  if (const Status may_run = host.check_can_run(options); !may_run) return complain(may_run.error());
  const auto environment = host.open(options);
  if (!environment) return complain(environment.error());
  Environment& e = **environment;
  run::follow_command(options, e);
  record::RecordWishes wishes = static_cast<const RecordOptions&>(*options.own).wishes;
  if (const Status added = add_scripts(options, e, wishes); !added) return complain(added.error());
  auto script = record::write_record_script(options.names, wishes, e);
  if (!script) return complain(script.error());
  if (!options.output.hides_warnings) record::show_warnings(*script);
  // The probes are attached, and nothing is written.
  if (options.is_dry_run)
    return run::run_script(std::move(script->script), record::options_of_recorder(options), e, host.prepare);
  return record::run_recorder(options, host, e, wishes, std::move(*script),
                              {*options.output.file, command_line(options), options.record.ring});
}

constexpr std::string_view kRecordUsage[] = {"record [OPTION...] -o FILE PROBE...",
                                             "record [OPTION...] -o FILE --for SCRIPT..."};
constexpr std::string_view kRecordCommon[] = {"output", "pid",  "cmd",  "follow", "comm",
                                              "rotate", "keep", "last", "quiet"};
constexpr std::string_view kRecordNotes =
    "A PROBE is an attach point, as in a script: `espy help target`.\n"
    "`espy -i FILE SCRIPT` runs scripts on the recording.\n";
constexpr Example kRecordExamples[] = {
    {"espy record -o calls.rec -c make 'tracepoint:syscalls:*'", "record the system calls of a command"},
    {"espy record -o ring -p 4711 --last 10m 'tracepoint:sched:*'", "keep the last ten minutes of a process"}};

}  // namespace

extern const Command kRecord = {
    .word = "record",
    .summary = "write events to a file, for scripts to read later",
    .operands = Operands::kNames,
    .options = kRows,
    .make_options = [] { return std::shared_ptr<CommandOptions>(std::make_shared<RecordOptions>()); },
    .usage = kRecordUsage,
    .notes = kRecordNotes,
    .common = kRecordCommon,
    .examples = kRecordExamples,
    .run = record,
};

// ---- espy snapshot: what a kernel offers, in one file, for `espy check --on` elsewhere.

namespace {

kernel::Trial rights() {
  if (!run::require_privileges()) return kernel::Trial::kNone;
  return run::is_administrator() ? kernel::Trial::kAll : kernel::Trial::kPrograms;
}

Result<std::vector<std::string>> write_to_output(const Options& options, kernel::Kernel& kernel) {
  const kernel::Trial trial = rights();
  if (!options.output.file) {
    if (::isatty(STDOUT_FILENO) == 1)
      return fail("a snapshot is a compressed file, which a terminal cannot show", 0, "`espy snapshot > KERNEL`");
    return kernel::write_snapshot(kernel, STDOUT_FILENO, trial);
  }
  const OwnedFd file = TRY(open_output(*options.output.file, O_WRONLY | O_CREAT | O_TRUNC, 0644));
  return kernel::write_snapshot(kernel, file.get(), trial);
}

int take_snapshot(const Options& options, const Host& host) {
  const auto environment = host.open(options);
  if (!environment) return complain(environment.error());
  const auto unknown = write_to_output(options, *(*environment)->kernel);
  if (!unknown) return complain(unknown.error());
  if (unknown->empty()) return EXIT_SUCCESS;
  std::string out = "espy: the snapshot is not complete, because espy lacks rights:\n";
  for (const std::string& each : *unknown) out += fmt::format("  {}\n", each);
  out += "  hint: `espy check --on` says \"not known\" where a script depends on it; sudo takes a whole one\n";
  std::fputs(printable(out).c_str(), stderr);
  return EXIT_SUCCESS;
}

constexpr std::string_view kSnapshotUsage[] = {"snapshot > KERNEL", "snapshot -o KERNEL"};
constexpr std::string_view kSnapshotCommon[] = {"output"};
constexpr std::string_view kSnapshotNotes =
    "KERNEL has the facts that scripts need: functions, tracepoints, types,\nfeatures.\n";

constexpr Example kSnapshotExamples[] = {
    {"espy snapshot > KERNEL", "describe this kernel in a file"},
    {"espy check --on KERNEL tools/*.bt", "check scripts for it, on another machine"}};

}  // namespace

extern const Command kSnapshot = {
    .word = "snapshot",
    .summary = "write what this kernel offers to a file, for `espy check`",
    .topic = Topic::kMachine,
    .operands = Operands::kNone,
    .usage = kSnapshotUsage,
    .notes = kSnapshotNotes,
    .common = kSnapshotCommon,
    .examples = kSnapshotExamples,
    .run = take_snapshot,
};

}  // namespace espy::cli
