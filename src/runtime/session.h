// Session: a loaded program while it runs. One thread, one epoll.
//
// In: a Machine with the program loaded, a Sink, the symbolizer. It runs begin, attaches, drains the rings in order of
// sequence, lets each record's builtin handle it, and at the end detaches, runs end, shows the maps. Builtins are
// called only through the function pointers in spec/: the session knows none by name.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "check/checked.h"
#include "load/machine.h"
#include "output/sink.h"
#include "program/program.h"
#include "runtime/capture.h"
#include "runtime/unwind_tables.h"
#include "spec/registry.h"
#include "symbols/symbols.h"

namespace espy::runtime {

class Session;

// How values are shown, as the configuration says.
output::TextStyle text_style(const spec::Config& config);

// One drained record, as a builtin's `handle` sees it. Good only during the call.
class EventView {
 public:
  EventView(Session& session, const program::EventSchema& schema, std::span<const std::byte> record)
      : session_(session), schema_(schema), record_(record) {}

  Session& session() { return session_; }
  const program::EventSchema& schema() const { return schema_; }
  std::span<const std::byte> record() const { return record_; }
  size_t field_count() const { return schema_.fields.size(); }
  output::Value field(size_t index) const;    // decoded
  int64_t integer(size_t index) const;        // of an integer field, without the detour
  std::vector<output::Value> fields() const;  // all, in order

 private:
  Session& session_;
  const program::EventSchema& schema_;
  std::span<const std::byte> record_;
};

struct SessionOptions {
  uint32_t child_pid = 0;               // of -c: its end ends the run; 0: none
  std::string child_program;            // what it will run
  std::optional<uint32_t> watched_pid;  // of -p: the same
  std::vector<uint32_t> unwound_pids;   // whose stacks shall be right from the first
  std::function<Status()> on_attached;  // lets the child of -c go
  bool is_dry_run = false;              // attach, then end
  bool shows_source = false;            // user stacks show what debug information tells
  bool shows_loss_report = false;       // at the end
  bool is_strict = false;               // where something was lost, the run has failed
  // Where events are made, not waited for: makes the next one; false when there are no more, which ends the run.
  std::function<Result<bool>()> next_event;
};

class Session {
 public:
  Session(load::Machine& machine, const program::Program& program, const types::Types& types,
          const source::Sources& sources, const spec::Registry& registry, const spec::Config& config,
          output::Sink& sink, output::Writer& out, symbols::Symbolizer& symbols, SessionOptions options);
  ~Session();

  // From begin to the last map. The exit status is the script's.
  Result<int> run();

  // ---- For handlers
  output::Sink& sink() { return capture_ ? *capture_ : sink_; }
  output::Writer& out() { return out_; }
  const spec::Config& config() const { return config_; }
  const source::Sources& sources() const { return sources_; }
  const types::Types& types() const { return types_; }
  const program::Program& program() const { return program_; }
  symbols::Symbolizer& symbols() { return symbols_; }
  UnwindTables& unwind_tables() { return unwind_tables_; }
  const output::Resolver& resolver() const { return resolver_; }
  // The prepared format of this event's literal `index`; made once per event.
  const output::Formatter& formatter(const program::EventSchema& schema, size_t literal_index);
  // The event's fields by that format; good until the next call.
  const std::string& format(const EventView& event, size_t literal_index, size_t first_field);
  // A begin, an end, ... of the probe with this index; shown with its place in its thread's tree.
  bool wants_spans() const;  // false once as many were shown as the configuration says
  void span(output::SpanEvent event, size_t probe_index, output::SpanPlace place);
  void print_map(program::ScriptMapId map, uint64_t top, uint64_t divisor);
  void clear_map(program::ScriptMapId map);  // forgets all keys, or that the scalar was ever assigned
  void zero_map(program::ScriptMapId map);   // keys stay, values become zero
  void unwatch(uint64_t address);            // ends the watchpoints of this address
  void request_exit(int status);
  // Runs `command` by sh -c, gives its output to the sink as "syscall" text. Only the builtin's --unsafe check allows
  // this.
  void run_command(const std::string& command);

 private:
  size_t drain();  // what is in the rings, up to a batch; returns how many records
  void drain_all();
  bool has_exit_flag() const;
  void stop_programs();  // sets the flag on which every program returns at once
  void start_clock();    // of `elapsed`
  void start_unwinding();
  output::DecodeContext decode_context();
  Status loop(int signal_fd);
  bool takes_kernel_stacks() const;
  bool has_followed_process();  // one that was started, and lives
  Status play(const std::function<Result<bool>()>& next_event);
  bool report_losses();
  // --test and --bench: each probe of the kind by itself. How many failed.
  Result<size_t> run_tests();
  Status run_benchmarks();
  output::TestResult judge(const program::Probe& probe, const load::Machine::Measured& measured);
  void clear_exit();
  std::map<std::string_view, program::ScriptMapId> maps_by_name() const;

  friend class EventView;
  struct Impl;
  std::unique_ptr<Impl> impl_;
  output::Sink& sink_;
  std::unique_ptr<Capture> capture_;  // while tests run: what they print
  output::Writer& out_;
  const spec::Config& config_;
  const source::Sources& sources_;
  const types::Types& types_;
  const program::Program& program_;
  symbols::Symbolizer& symbols_;
  UnwindTables unwind_tables_;
  output::Resolver resolver_;
  output::CutStrings cut_strings_;
};

}  // namespace espy::runtime
