// output: from bytes to values, and from values to text, JSON and other formats.
//
// Sink: one output format. Each is implemented in a file of its own, output/NAME.cc; sink.cc lists them.
//
// In: Values and events of a run, in order. Out: bytes to a Writer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "output/compact_entries.h"
#include "output/decode.h"
#include "output/format.h"
#include "output/loss_report.h"
#include "output/spans.h"
#include "output/value.h"
#include "types/type.h"

namespace espy::output {

enum class Buffering : uint8_t { kLine, kFull, kNone };

// A buffered writer to a descriptor. Flushes at batch_end() (kLine), when the buffer is full (all), or after each write
// (kNone), and when destroyed. Keeps the first error, of a closed pipe, say, as `status`; writes nothing after it.
class Writer {
 public:
  Writer(int fd, Buffering buffering);
  ~Writer();
  void write(std::string_view bytes);
  // The buffer to write: call wrote() after you append to it.
  std::string& buffer() { return buffer_; }
  void wrote();
  void flush();
  void batch_end();  // after the records of one poll: flushes if kLine
  // Flushes, and writes to `fd` from now on.
  void move_to(int fd);
  // Calls this before it writes, and at each end of a batch: a line of progress must go.
  void before_output(std::function<void()> call) { before_output_ = std::move(call); }
  const Status& status() const { return status_; }
  bool is_terminal() const;

 private:
  int fd_;
  Buffering buffering_;
  std::string buffer_;
  Status status_;
  std::function<void()> before_output_;
};

// The run that a sink shows, for formats with times or ids of their own.
struct RunInfo {
  std::function<uint64_t()> now_ns;                   // CLOCK_BOOTTIME, like the times of spans
  std::function<uint64_t(uint64_t boot_ns)> wall_ns;  // such a time since the epoch
  std::function<uint64_t()> random;                   // 64 bits, different in each run
  std::function<std::string()> host;                  // its name
};

struct MapView {
  std::string_view name;  // "@x"
  bool is_scalar = false;
  std::vector<MapEntry> entries;                // in display order; a scalar has one with an empty key
  CompactEntries compact = {};                  // has the entries if `entries` has none: see shown_entries()
  uint64_t top = 0;                             // how many of the last entries to show; 0: all
  uint64_t divisor = 0;                         // of the values shown; 0: none
  types::Kind kind = {};                        // of the values: kCount, kSum, kInt, ...
  bool is_signed = true;                        // numbers may be negative
  std::span<const std::string> key_names = {};  // the parts of the keys, in the words of the script
  program::SamplePeriod sampled = {};           // what one of a count stands for
  double seen_share = 1;                        // of the events; less if a budget had probes off for a part of the time
};

// A BPF helper that failed, and where in the script: for -k.
struct HelperError {
  std::string_view helper;  // "probe_read_user"
  int64_t code = 0;         // what it returned
  std::string_view message;
  std::string_view file;
  uint32_t line = 0, column = 0, end_column = 0;
  std::string_view excerpt;  // the line of the script, underlined
};

struct TestResult {
  std::string name;
  uint64_t duration_ns = 0;
  bool has_passed = true;
  std::string output;  // what it printed, and why it failed
};

class Sink {
 public:
  virtual ~Sink() = default;

  virtual void begin(const RunInfo&) {}  // before all others
  virtual void attached(uint64_t probe_count) = 0;
  // Formatted text; `kind` is the JSON "type": "printf", "time", "cat", "join" or "syscall".
  virtual void text(std::string_view kind, std::string_view text) = 0;
  // Formatted text that is a line of its own; the newline is not part of it.
  virtual void text_line(std::string_view kind, std::string_view text) { this->text(kind, std::string(text) + "\n"); }
  virtual void value(const Value& value) = 0;  // print(v)
  virtual void span(const SpanEvent& event) = 0;
  virtual void map(const MapView& map) = 0;  // print(@m), and at exit
  virtual void lost(uint64_t events) = 0;
  virtual void total_lost(uint64_t events) = 0;                 // at exit
  virtual void loss_report(const LossReport& loss_report) = 0;  // at exit, after all others
  virtual void cost(const CostReport& report) = 0;              // during the run, and at exit
  // An explanation of the preceding message: the macro expansions that it came from. Text output only.
  virtual void explain(std::string_view text) = 0;
  virtual void helper_error(const HelperError& error) = 0;
  // `kind` is "errorf", "warnf" or "runtime_error".
  virtual void message(std::string_view kind, std::string_view text, std::string_view file, uint32_t line,
                       uint32_t column, uint32_t end_column) = 0;
  virtual void end() = 0;  // before the final maps

  virtual void map_cleared(std::string_view) {}  // or zeroed, by the script
  virtual void batch_end() {}                    // after the records of one poll
  virtual void finish() {}                       // after the last output

  // --test and --bench.
  virtual void tests_begin(size_t count) = 0;
  virtual void test_begin(std::string_view name) = 0;
  virtual void test_end(const TestResult& result) = 0;
  virtual void tests_end(const std::vector<TestResult>& results) = 0;
  virtual void benchmarks_begin() = 0;
  virtual void benchmark(std::string_view name, uint64_t average_ns, uint64_t iterations) = 0;
};

// Whether a sink does without saying how many probes were attached.
enum class Quiet : uint8_t { kNo, kYes };

// An output format. Each is defined in a file of its own, output/NAME.cc, and listed in sink.cc.
struct SinkRow {
  std::string_view name;      // of -f: "text"
  std::string_view doc;       // for --help and the manual: a few words
  bool is_binary = false;     // not for terminals
  bool needs_files = false;   // frames of user code come with Frame::code
  bool has_text = false;      // shows what printf() prints as it is
  bool has_lines = false;     // lines without a head or an end: the output of several runs can be in one file
  bool shows_stacks = false;  // only maps with a stack in the key
  // `out` must outlive the sink.
  std::unique_ptr<Sink> (*create)(Writer& out, TextStyle style, Quiet quiet);
  // Files whose names end so are written by another sink.
  std::string_view binary_suffix = {};
  std::unique_ptr<Sink> (*create_binary)(Writer& out, TextStyle style, Quiet quiet) = nullptr;
};
const std::vector<SinkRow>& sinks();              // the first is the default
const SinkRow* find_sink(std::string_view name);  // null if there is none
std::string sinks_doc();                          // "text (default): DOC; json: DOC; ..."
std::string sinks_with_lines();                   // "text, json, ..."

}  // namespace espy::output
