// What a run of a script is given: the script, where its events come from, what it shows.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "output/sink.h"
#include "recording/writer.h"
#include "runtime/session.h"
#include "source/diagnostic.h"
#include "spec/config.h"
#include "symbols/symbols.h"
#include "tool/tool.h"

namespace espy::run {

struct RunOptions {
  std::shared_ptr<const tool::Tool> tool;   // whose script is run; null: the script is that of `program_text` or `file`
  std::optional<std::string> program_text;  // -e
  // Where to show a diagnostic about a program that espy has written itself; null: where it is.
  std::function<source::Diagnostic(const source::Diagnostic&)> shown_diagnostic;
  std::optional<std::string> file;           // FILE, or "-"
  uint64_t from_ns = 0, to_ns = UINT64_MAX;  // of a recording, since its beginning
  std::optional<std::string> record_file;    // --record
  recording::RingLimits ring;                // of what is recorded: --rotate, --keep, --last
  std::vector<std::string> recordings;       // -i: files, or the name of a ring of files

  // For the modules below: options set their fields directly.
  spec::Config config;
  runtime::SessionOptions session;
  symbols::Symbolizer::Options symbols;

  // Of the kernel.
  std::vector<std::string> disabled_features;
  std::string traceable_functions;  // a file; empty: the kernel's list

  std::optional<std::string> child_command;  // -c
  std::string cgroup;                        // --cgroup: a path
  std::string container;                     // --container: an id, or the beginning of one
  std::string user;                          // --user
  std::optional<std::string> output_file;
  std::optional<std::string> listen;  // --listen: ADDRESS:PORT
  uint64_t watch_interval_ns = 0;     // --watch; 0: not
  std::string format = "text";
  output::Buffering buffering = output::Buffering::kLine;
  std::vector<std::string> dump;  // stages
  bool verbose = false;
  bool shows_cost = false;             // --cost
  bool is_budget_of_all_cpus = false;  // --budget=N%/all
  bool quiet = false;
  bool no_warnings = false;
  bool time_stages = false;
  std::chrono::steady_clock::time_point started_at = std::chrono::steady_clock::now();  // what --time counts from
};

}  // namespace espy::run
