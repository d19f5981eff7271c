// What a run of a script is given by the command line: the script, where its events come from, what it shows.
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
#include "source/diagnostic.h"
#include "spec/config.h"
#include "symbols/symbols.h"
#include "tool/tool.h"

namespace espy::run {

struct RunOptions {
  // The first of these that is there.
  struct Script {
    std::shared_ptr<const tool::Tool> tool;  // whose script is run
    std::optional<std::string> text;         // -e
    std::optional<std::string> file;         // FILE, or "-"
    std::vector<std::string> words;          // after `--`, as typed; Config::arguments has them as well
  };
  // -i: events come from a recording.
  struct Replay {
    std::vector<std::string> files;            // or the name of a ring of files; none: events come from the kernel
    uint64_t from_ns = 0, to_ns = UINT64_MAX;  // since its beginning
  };
  // --record, and what `espy record` writes.
  struct Record {
    std::optional<std::string> file;  // of --record
    recording::RingLimits ring;       // --rotate, --keep, --last
  };
  // The traced processes, besides Config::Tracee.
  struct Tracee {
    std::optional<std::string> command;  // -c
    bool follows_new_only = false;       // --follow-new
    std::string cgroup;                  // --cgroup: a path
    std::string container;               // --container: an id, or the beginning of one
    std::vector<uint32_t> unwound_pids;  // --dwarf-pid
  };
  struct Output {
    std::optional<std::string> file;  // -o; nullopt: stdout
    bool appends = false;             // --append, --reopen: `file` is not emptied
    bool reopens = false;             // --reopen
    std::string format = "text";
    output::Buffering buffering = output::Buffering::kLine;
    bool is_quiet = false;
    bool hides_warnings = false;        // about the script
    std::optional<std::string> listen;  // --listen: ADDRESS:PORT
    uint64_t watch_interval_ns = 0;     // --watch; 0: not
  };
  struct Cost {
    bool is_shown = false;               // --cost
    uint64_t interval_ns = 0;            // --cost=INTERVAL; 0: at the end only
    double budget_cpus = 0;              // --budget: a share of one CPU; 0: no limit
    bool is_budget_of_all_cpus = false;  // --budget=N%/all: of each CPU
    bool is_checked = false;             // --check-cost

    // Whether it must be known what reaching a probe costs on this machine.
    bool needs_hook_costs() const { return is_shown || budget_cpus > 0 || is_checked; }
  };
  struct Kernel {
    std::vector<std::string> disabled_features;
    std::string traceable_functions;  // a file; empty: the kernel's list
  };
  // Options of the pipeline.
  struct Stages {
    std::vector<std::string> dumped;                                                      // --dump
    bool are_timed = false;                                                               // --time
    std::chrono::steady_clock::time_point started_at = std::chrono::steady_clock::now();  // what --time counts from
  };

  Script script;
  Replay replay;
  Record record;
  Tracee tracee;
  Output output;
  Cost cost;
  Kernel kernel;
  Stages stages;
  // For the modules below: options set their fields directly.
  spec::Config config;
  symbols::Symbolizer::Options symbols;

  std::string user;          // --user
  uint64_t duration_ns = 0;  // --duration, from when all probes are attached; 0: no limit
  bool is_verbose = false;
  bool is_strict = false;
  bool is_dry_run = false;
  // Where to show a diagnostic about a script that espy has built itself; null: where it is.
  std::function<source::Diagnostic(const source::Diagnostic&)> shown_diagnostic;
};

}  // namespace espy::run
