// The configuration of a run: variables of the script's `config = { }` block and of the environment (BPFTRACE_*), and
// options of the command line. The table of variables is in check/config.cc.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "types/type.h"

namespace espy::spec {

enum class MissingProbes : uint8_t { kError, kWarn, kIgnore };
enum class UserSymbolCache : uint8_t { kPerProgram, kPerPid, kNone };
enum class PrintLayout : uint8_t { kLine, kC };  // of structs: on one line, or one line for each member as in C
enum class SpanLayout : uint8_t { kTree, kColumns, kGraph };  // of spans as text: output/spans.h

// A pid namespace other than the initial one, as bpf_get_ns_current_pid_tgid() identifies it (bpf-helpers(7)).
struct PidNamespace {
  uint64_t device = 0;  // in the kernel's encoding of dev_t
  uint64_t inode = 0;
  bool numbers_proc = false;  // /proc shows the ids of this namespace
};

// A control group of version 2, to which the probes are limited.
struct ControlGroup {
  std::string path;      // of the directory
  bool is_root = false;  // of the mount there: it is never removed
};

// When a process started, by the kernel's CLOCK_BOOTTIME: as precise as in /proc.
struct ProcessStart {
  uint64_t earliest_ns = 0;
  uint64_t precision_ns = 0;  // it was less than this later
};

// A process that probes are limited to.
struct TracedProcess {
  uint32_t pid = 0;
  std::optional<ProcessStart> start = {};  // another process can get its number; unset: not known
};

struct Config {
  // ---- Variables of `config = { }` and of the environment.

  struct Limits {
    uint64_t max_strlen = 1024;
    uint64_t max_map_keys = 4 * 1024;
    uint64_t max_probes = 1024;
    uint64_t max_bpf_progs = 1024;
    uint64_t max_cat_bytes = 10240;
    uint64_t max_system_bytes = 64 << 20;
    uint64_t max_system_seconds = 60;   // 0: no limit
    uint64_t max_compile_seconds = 60;  // 0: no limit
    uint64_t max_stacks = 32'768;       // different ones, of each type
    uint64_t log_size = 1000000;
    uint64_t perf_rb_pages = 0;             // 0: chosen by the size of memory
    uint64_t unwind_table_rows = 16 << 20;  // of 8 bytes each
  };
  // How values are printed.
  struct Print {
    bool maps_on_exit = true;
    std::string trunc_trailer = "..";
    bool zeros = true;
    bool addresses = false;
    uint64_t depth = 0;  // 0: unlimited
    uint64_t items = 0;  // 0: unlimited
    PrintLayout layout = PrintLayout::kLine;
    bool units = false;                            // values of maps in the units of their names
    std::map<std::string, types::Unit> map_units;  // with `units`: units of other maps, by name
    bool percentiles = false;                      // of histograms
  };
  // How spans are printed, and which.
  struct Spans {
    SpanLayout layout = SpanLayout::kTree;
    uint64_t depth = 0;  // 0: unlimited
    uint64_t slower_than_ns = 0;
    uint64_t count = 0;  // after which the run ends; 0: unlimited
    std::string order;
    uint64_t before = 0;  // calls that are shown before a tree of span_hold()
    uint64_t hold_bytes = 64 * 1024;
    uint64_t hold_threads = 256;
  };
  struct Symbols {
    bool demangle = true;
    std::optional<UserSymbolCache> cache;
    bool debug_info = true;  // source lines and inlined calls in user stacks
    types::StackMode stack_mode = types::StackMode::kBpftrace;
  };
  // Variables of bpftrace, without effect. Scripts can read them.
  struct Ignored {
    uint64_t on_stack_limit = 32;
    bool lazy_symbolication = true;
  };

  Limits limits;
  Print print;
  Spans spans;
  Symbols symbols;
  Ignored ignored;
  std::string license = "GPL";
  MissingProbes missing_probes = MissingProbes::kError;
  bool returns_first = false;                 // return probes are attached before entry probes
  std::vector<std::string> from_environment;  // names that the environment sets, which the script cannot override

  // ---- Options of the command line.

  // Values of the script.
  struct Arguments {
    std::vector<std::string> positional;                     // $1, $2, ...
    std::vector<std::pair<std::string, std::string>> named;  // --name=value after `--`
  };
  struct Headers {
    std::vector<std::string> directories;  // -I
    std::vector<std::string> files;        // --include
  };
  // What programs count besides what the script says.
  struct Counting {
    bool losses = false;        // -v, --strict: hits and failed reads
    bool hits = false;          // how often probes fire; with `losses`, too
    bool cost = false;          // -v, --cost, --budget: programs can be timed
    bool has_gates = false;     // --budget, --check-cost: probes can be turned off
    bool accepts_cost = false;  // --yes: --check-cost only warns
  };
  // The processes that probes are limited to, and the command that the run starts.
  struct Tracee {
    std::vector<TracedProcess> processes;   // -p, each once
    std::vector<std::string> thread_names;  // --comm, of at most 15 bytes: probes act in threads of these names alone
    std::optional<PidNamespace> pid_namespace;  // of espy, which numbers processes and the builtins; unset: the initial
    std::optional<ControlGroup> cgroup;         // --cgroup, --container: probes act in its tasks alone
    bool has_child = false;                     // -c
    uint32_t child_pid = 0;
    std::optional<ProcessStart> child_start;
    bool follows = false;  // --follow: processes that they start are traced, too

    // The processes that probes are limited to, with --follow together with those they start; empty if not limited.
    std::vector<TracedProcess> only_processes() const {
      if (processes.empty() && follows && has_child) return {{child_pid, child_start}};
      return processes;
    }
    // The pid for filters in the kernel, which take one and cannot follow child processes; nullopt if there is none.
    std::optional<uint32_t> only_process_for_kernel() const {
      return follows || processes.size() != 1 ? std::nullopt : std::optional(processes.front().pid);
    }
  };

  Arguments arguments;
  Headers headers;
  Counting counting;
  Tracee tracee;
  std::string probe_filter;      // --probe-filter; empty: every probe
  bool runs_tests = false;       // --test
  bool runs_benchmarks = false;  // --bench
  bool allow_unsafe = false;
  bool warns = true;                // not with --no-warnings
  bool warn_helper_errors = false;  // -k
};

}  // namespace espy::spec
