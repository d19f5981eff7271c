// espy record: writes the events of probes to a file, over which `espy -i` runs scripts later.
#include <fmt/format.h>
#include <sys/utsname.h>
#include <time.h>

#include <charconv>
#include <cstdio>
#include <unordered_map>
#include <vector>

#include "base/byte_reader.h"
#include "base/printable.h"
#include "base/strings.h"
#include "cli/command.h"
#include "cli/record_script.h"
#include "cli/run_script.h"
#include "recording/writer.h"
#include "runtime/record_tap.h"

namespace espy::cli {

namespace {

constexpr uint64_t kLongestWaitNs = 1'000'000'000;  // of an event that is not written yet

struct RecordOptions : CommandOptions {
  uint32_t max_text_bytes = 256;
};

uint64_t clock_ns(clockid_t clock) {
  timespec now = {};
  ::clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// The records of the script of write_record_script(), as events of a recording.
class Recorder final : public runtime::RecordTap {
 public:
  Recorder(recording::Writer writer, uint32_t max_text_bytes, const std::vector<recording::Probe>& probes,
           const types::Types& types)
      : writer_(std::move(writer)), max_text_bytes_(max_text_bytes), probes_(probes), types_(types) {}

  bool take(const program::EventSchema& schema, std::span<const std::byte> record) override {
    const uint32_t probe = probe_of(schema);
    if (probe >= probes_.size() || schema.fields.size() != kEventFields + probes_[probe].fields.size()) return false;
    const auto header = [&](size_t index) { return number(schema.fields[index], record); };
    recording::Task& task = task_;
    task.pid = static_cast<uint32_t>(header(2));
    task.tid = static_cast<uint32_t>(header(3));
    task.uid = static_cast<uint32_t>(header(4));
    task.gid = static_cast<uint32_t>(header(5));
    task.cgroup = static_cast<uint64_t>(header(6));
    task.comm = text(schema.fields[7], record);
    writer_.begin_event(probe, static_cast<uint64_t>(header(0)), static_cast<uint32_t>(header(1)), task);
    for (size_t i = 0; i < probes_[probe].fields.size(); ++i) {
      const program::EventField& field = schema.fields[kEventFields + i];
      if (probes_[probe].fields[i].kind == recording::FieldKind::kNumber) {
        writer_.add_number(number(field, record));
      } else {
        writer_.add_text(text(field, record));
      }
    }
    keep_error(writer_.end_event());
    return true;
  }

  void lost(uint64_t count) override { writer_.note_lost(count); }

  Status batch_end() override {
    const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (!writer_.has_buffered()) last_flush_ns_ = now_ns;
    if (now_ns - last_flush_ns_ >= kLongestWaitNs) {
      keep_error(writer_.flush());
      last_flush_ns_ = now_ns;
    }
    return status_;
  }

  Status finish() {
    keep_error(writer_.finish(clock_ns(CLOCK_BOOTTIME)));
    return status_;
  }
  const recording::Writer& writer() const { return writer_; }

 private:
  void keep_error(Status done) {
    if (status_) status_ = std::move(done);
  }

  // The number at the start of the format; UINT32_MAX for what is no event of the recording.
  uint32_t probe_of(const program::EventSchema& schema) {
    const auto [known, is_new] = by_schema_.try_emplace(&schema, UINT32_MAX);
    if (!is_new || schema.literals.empty()) return known->second;
    const std::string& format = schema.literals[0];
    std::from_chars(format.data(), format.data() + format.size(), known->second);
    return known->second;
  }

  int64_t number(const program::EventField& field, std::span<const std::byte> record) const {
    const types::Type& type = types_[field.type];
    const uint64_t bits = load_le(record, field.offset_bytes, type.size_bytes);
    const unsigned unused = 64 - 8 * std::min<unsigned>(type.size_bytes, 8);
    return type.is_signed && unused < 64 ? static_cast<int64_t>(bits << unused) >> unused : static_cast<int64_t>(bits);
  }

  std::string_view text(const program::EventField& field, std::span<const std::byte> record) const {
    const std::string_view bytes(reinterpret_cast<const char*>(record.data()), record.size());
    size_t offset = field.offset_bytes, size = types_[field.type].size_bytes;
    if (field.is_in_tail) {
      offset = load_le(record, field.offset_bytes, 4);
      size = load_le(record, field.offset_bytes + 4, 4);
    }
    const std::string_view found =
        bytes.substr(std::min(offset, bytes.size()), std::min<size_t>(size, max_text_bytes_ - 1));
    return found.substr(0, found.find('\0'));
  }

  recording::Writer writer_;
  uint32_t max_text_bytes_;
  const std::vector<recording::Probe>& probes_;
  const types::Types& types_;
  std::unordered_map<const program::EventSchema*, uint32_t> by_schema_;
  recording::Task task_;
  uint64_t last_flush_ns_ = 0;
  Status status_;
};

Status set_size(Options& options, std::string_view text) {
  constexpr uint64_t kMaxTextBytes = 16 << 10;
  const uint64_t size = TRY(parse_count("--size", text));
  if (size < 16 || size > kMaxTextBytes)
    return fail(fmt::format("--size takes 16 to {} bytes, not `{}`", kMaxTextBytes, text));
  static_cast<RecordOptions&>(*options.own).max_text_bytes = static_cast<uint32_t>(size);
  return {};
}

constexpr OptionRow kRows[] = {
    {0, "size", "BYTES", "record this much of each text that an argument points to (256)", set_size},
};

recording::Description describe(const Options& options, const Environment& e, const RecordScript& script) {
  recording::Description out;
  out.espy_version = ESPY_VERSION;
  out.command = fmt::format("espy record {}", fmt::join(options.names, " "));
  if (options.child_command) out.command += fmt::format(" -c '{}'", *options.child_command);
  utsname names = {};
  if (::uname(&names) == 0) out.kernel_release = names.release;
  out.arch = e.kernel->arch().name;
  out.page_size_bytes = e.kernel->page_size_bytes();
  out.cpu_count = e.kernel->cpu_count();
  out.started_ns = clock_ns(CLOCK_BOOTTIME);
  out.started_wall_ns = clock_ns(CLOCK_REALTIME);
  out.max_text_bytes = static_cast<const RecordOptions&>(*options.own).max_text_bytes;
  out.tracepoints = script.tracepoints;
  out.probes = script.probes;
  return out;
}

void show_summary(const recording::Writer& writer, const std::string& path) {
  std::string line = fmt::format("Recorded {} events in {}, {:.1f} KB\n", writer.event_count(), path,
                                 static_cast<double>(writer.file_bytes()) / 1024);
  std::fputs(printable(line).c_str(), stderr);
}

int run_recorder(const Options& options, const Host& host, Environment& e, const RecordScript& script) {
  const recording::Description description = describe(options, e, script);
  auto writer = recording::Writer::create(*options.output_file, description);
  if (!writer) return complain(writer.error());
  Recorder recorder(std::move(*writer), description.max_text_bytes, script.probes, e.types);
  Options with_script = options;
  with_script.program_text = script.text;
  with_script.output_file = "/dev/null";  // the script prints nothing; messages go to standard error
  with_script.format = "text";
  with_script.no_warnings = true;
  const auto prepare = [&](const program::Program& program, Environment& environment,
                           runtime::SessionOptions& session) {
    if (host.prepare) host.prepare(program, environment, session);
    session.tap = &recorder;
  };
  const int status = run_script(with_script, e, prepare);
  if (!options.dump.empty()) return status;
  if (const Status done = recorder.finish(); !done) return complain(done.error());
  if (!options.quiet) show_summary(recorder.writer(), *options.output_file);
  return status;
}

int record(const Options& options, const Host& host) {
  if (!options.output_file)
    return complain({"espy record needs a file to write to", 0, "espy record -o FILE PROBE..."});
  if (options.recording) return complain({"espy record takes its events from this machine, not from a recording"});
  if (const Status may_run = host.check_can_run(options); !may_run) return complain(may_run.error());
  const auto environment = host.open(options);
  if (!environment) return complain(environment.error());
  Environment& e = **environment;
  follow_command(options, e);
  const auto& own = static_cast<const RecordOptions&>(*options.own);
  const auto script = write_record_script(options.names, own.max_text_bytes, e);
  return script ? run_recorder(options, host, e, *script) : complain(script.error());
}

constexpr std::string_view kUsage[] = {"record [options] -o FILE PROBE..."};
constexpr Example kExamples[] = {{"espy record -o calls.rec -c make 'tracepoint:syscalls:*'",
                                  "the system calls of a command, for `espy -i calls.rec`"}};

}  // namespace

extern const Command kRecord = {
    .word = "record",
    .operands = Operands::kNames,
    .options = kRows,
    .make_options = [] { return std::shared_ptr<CommandOptions>(std::make_shared<RecordOptions>()); },
    .usage = kUsage,
    .examples = kExamples,
    .run = record,
};

}  // namespace espy::cli
