// The command line: one table of options, what they set, and the help made from it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "output/sink.h"

namespace espy::cli {

enum class Mode : uint8_t { kRun, kList, kInfo, kHelp, kVersion, kFormat, kReference, kDescribe, kTrace };

// How `espy trace` shows calls.
struct TraceOptions {
  bool is_graph = false;
  bool is_ordered = false;  // only calls within each other, in the order of the targets
  uint64_t depth = 0;       // 0: any
  uint64_t slower_than_ns = 0;
  uint64_t events = 0;  // after which it ends; 0: none
};

struct Options {
  Mode mode = Mode::kRun;
  std::optional<std::string> program_text;  // -e
  std::optional<std::string> file;          // FILE, or "-"
  std::string search;                       // -l PATTERN
  std::vector<std::string> targets;         // of `espy info` and `espy trace`
  TraceOptions trace;
  std::vector<std::string> positional;                     // behind the script: $1, $2, ...
  std::vector<std::pair<std::string, std::string>> named;  // behind `--`: --name=value
  std::string reference_part;                              // of --reference: cli/reference.h
  std::vector<std::string> dump;                           // stages of -d
  std::vector<std::string> include_directories;
  std::vector<std::string> include_files;
  std::vector<std::string> debug_directories;  // --debuginfo
  std::string traceable_functions;             // a file; "": what the kernel says
  std::string probe_filter;                    // a regular expression; "": every probe
  bool runs_tests = false;
  bool runs_benchmarks = false;
  std::optional<uint32_t> pid;
  std::vector<uint32_t> unwound_pids;  // --dwarf-pid
  std::optional<std::string> command;
  bool follow = false;
  std::optional<std::string> output_file;
  std::string format = "text";
  output::Buffering buffering = output::Buffering::kLine;
  std::vector<std::string> disabled_features;
  bool verbose = false;
  bool strict = false;
  bool quiet = false;
  bool unsafe = false;
  bool warn_helper_errors = false;
  bool no_warnings = false;
  bool dry_run = false;
  bool time_stages = false;
  std::chrono::steady_clock::time_point started_at = std::chrono::steady_clock::now();  // what --time counts from
};

struct OptionRow {
  char short_name = 0;         // 0: none
  std::string_view long_name;  // without dashes; empty: none
  std::string_view argument;   // "FILE"; empty: takes none
  std::string_view doc;        // one line; empty: not shown, for making the manual
  // Sets what the option says; the error is one sentence.
  Status (*set)(Options& options, std::string_view argument);
};

std::span<const OptionRow> option_rows();
// Those that only `espy trace` takes.
std::span<const OptionRow> trace_option_rows();

// argv without its first. Everything behind the script's name belongs to the script.
Result<Options> parse_options(std::span<char* const> arguments);

// One line of a list of options: what is typed, and what it does; on two lines where the first is long.
std::string help_row(std::string_view name, std::string_view doc);
std::string help_text();

}  // namespace espy::cli
