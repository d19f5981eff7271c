// What the user-space half of a builtin gets: its record, the maps, the symbols, the spans.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "load/machine.h"
#include "output/sink.h"
#include "output/spans.h"
#include "program/program.h"
#include "runtime/record_decoder.h"
#include "runtime/run_control.h"
#include "runtime/run_parts.h"
#include "runtime/unwind_tables.h"
#include "source/source.h"
#include "spec/config.h"
#include "symbols/symbols.h"

namespace espy::runtime {

// ---- SpanCollector: the span events of a run, which output::CallTrees places in the call tree of their thread.

class SpanCollector {
 public:
  using Show = std::function<void(const output::SpanEvent&)>;
  SpanCollector(const program::Program& program, const spec::Config& config, Show show);

  // True if as many spans were shown as the configuration asks for.
  bool is_full() const { return trees_.is_full(); }
  // An event of the probe with this index, an index of Program::probes or greater if it is of none.
  void add(output::SpanEvent event, size_t probe_index, output::SpanPlace place);

  // See CallTrees.
  bool is_hidden(uint64_t time_ns) const { return trees_.is_hidden(time_ns); }
  void end_thread(const output::SpanEvent& last) { trees_.end_thread(last); }
  void hide(uint64_t from_ns, uint64_t to_ns) { trees_.hide(from_ns, to_ns); }
  void note_losses() { trees_.note_losses(); }
  void close(uint64_t now_ns) { trees_.close(now_ns); }

 private:
  const program::Program& program_;
  output::CallTrees trees_;
  std::vector<uint32_t> function_numbers_;  // by ProbeId
};

// ---- What the user-space half of a builtin (spec/builtin.h, `handle`) gets: the record that its IR has sent, and the
// services that it may use.

class HandlerContext {
 public:
  // What the session has made for the run. All of it must outlive the context.
  struct Services {
    UnwindTables& unwind_tables;
    const UnwoundStacks& unwound_stacks;
    RunControl& control;
  };
  HandlerContext(const RunParts& parts, const Services& services, StackDetail detail);

  output::Sink& sink() { return *sink_; }
  void set_sink(output::Sink& sink) { sink_ = &sink; }
  const spec::Config& config() const { return config_; }
  const source::Sources& sources() const { return sources_; }
  symbols::Symbolizer& symbols() { return symbols_; }
  UnwindTables& unwind_tables() { return unwind_tables_; }
  RecordDecoder& decoder() { return decoder_; }
  SpanCollector& spans() { return spans_; }
  const program::Program& program() const { return program_; }

  // False once as many spans were shown as the configuration asks for.
  bool wants_spans() const { return !spans_.is_full(); }
  // See SpanCollector::add. The last span that is wanted ends the run.
  void add_span(output::SpanEvent event, size_t probe_index, output::SpanPlace place);

  // With the share of the events that it has seen.
  Result<output::MapView> read_map(program::ScriptMapId map, const MapReader::Wanted& wanted = {});
  // These report failures to the sink as "runtime_error".
  // `top`, `divisor`: see MapView. `until_ns`: as above. `is_by_key`: in the order of the keys, not of the values.
  void print_map(program::ScriptMapId map, uint64_t top, uint64_t divisor, uint64_t until_ns = UINT64_MAX,
                 bool is_by_key = false);
  // `key` starts with the bytes of the key; nothing if it is absent.
  void print_element(program::ScriptMapId map, std::span<const std::byte> key);
  void clear_map(program::ScriptMapId map);  // removes all keys; unsets a scalar
  void zero_map(program::ScriptMapId map);   // keeps the keys, zeroes the values
  // Sets the function that returns the share of events that a map has seen.
  void tell_seen_share(std::function<double(program::ScriptMapId)> share) { seen_share_ = std::move(share); }
  // Runs `command` by sh -c and gives its output to the sink as "syscall" text. Calls what `before_commands` has set
  // first. `check` allows system() only with --unsafe.
  void run_command(const std::string& command);
  void before_commands(std::function<void()> call) { before_command_ = std::move(call); }
  // Commands may run on when the end of the run was requested long ago.
  void let_commands_finish() { ends_late_commands_ = false; }
  // True if a command was run since the last call.
  bool take_has_run_command() { return std::exchange(has_run_command_, false); }
  // True once a command was not waited for, because it ran on after the end of the run was requested.
  bool has_left_command() const { return has_left_command_; }

  // cat() has shown only the first bytes of a file.
  void note_cut_file() { ++cut_files_; }
  uint64_t cut_files() const { return cut_files_; }
  // The commands of system() of whose output the first bytes were shown only.
  uint64_t cut_commands() const { return cut_commands_; }

  void detach_watchpoints(uint64_t address) { machine_.detach_watchpoints(address); }
  void request_exit(int status) { control_.request_exit(status); }

 private:
  void report(const Error& error);

  load::Machine& machine_;
  const program::Program& program_;
  const source::Sources& sources_;
  const spec::Config& config_;
  symbols::Symbolizer& symbols_;
  UnwindTables& unwind_tables_;
  RunControl& control_;
  output::Sink* sink_;
  RecordDecoder decoder_;
  SpanCollector spans_;
  MapReader maps_;
  std::function<void()> before_command_ = [] {};
  std::function<double(program::ScriptMapId)> seen_share_ = [](program::ScriptMapId) { return 1.0; };
  bool ends_late_commands_ = true;
  bool has_run_command_ = false;
  bool has_left_command_ = false;
  uint64_t cut_files_ = 0;
  uint64_t cut_commands_ = 0;
};

// One drained record. Valid only during the handler's call.
class EventRecord {
 public:
  EventRecord(HandlerContext& context, const program::EventSchema& schema, std::span<const std::byte> bytes)
      : context_(context), schema_(schema), bytes_(bytes) {}

  HandlerContext& context() { return context_; }
  const program::EventSchema& schema() const { return schema_; }
  std::span<const std::byte> bytes() const { return bytes_; }  // from its program::RecordHeader on
  size_t field_count() const { return schema_.fields.size(); }
  output::Value field(size_t index) const { return context_.decoder().value(schema_.fields[index], bytes_); }
  // The value of an integer field of up to 8 bytes.
  int64_t integer(size_t index) const { return context_.decoder().integer(schema_.fields[index], bytes_); }
  // The bytes from a field that is not in the tail to the end of the record.
  std::span<const std::byte> bytes_from(size_t index) const {
    return bytes_.subspan(std::min<size_t>(schema_.fields[index].offset_bytes, bytes_.size()));
  }
  // The bytes of a string or buffer in the record's tail; none if they are not within the record.
  std::span<const std::byte> tail(size_t index) const;
  // The fields from `first_field` on, by the format that is the schema's literal `literal_index`; good until the next
  // call.
  const std::string& format(size_t literal_index, size_t first_field) const {
    return context_.decoder().format(schema_, bytes_, literal_index, first_field);
  }
  // All fields, by the first literal.
  const std::string& shown(TextUse use) const { return context_.decoder().format(schema_, bytes_, 0, 0, use); }

 private:
  HandlerContext& context_;
  const program::EventSchema& schema_;
  std::span<const std::byte> bytes_;
};

}  // namespace espy::runtime
