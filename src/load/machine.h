// Machine: everything we may DO to the kernel. Asking is Kernel's business (kernel/kernel.h).
//
// In: a Program. Out: maps that exist, programs that passed the kernel's verifier, links that fire. Two forms: Linux
// (linux.cc, over the thin bpf(2) layer of bpf.h) and the simulator of tests/support. All that a Machine made goes away
// with it; `detach_all` ends the firing first, and what is slow to detach is closed by a helper process so that the
// prompt is not kept waiting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernel/features.h"
#include "program/program.h"
#include "source/source.h"

namespace espy::load {

using program::MapId;
using program::ProgramId;

// The kernel's verifier said no. `log` is its whole text; `insn` the last instruction it looked at.
struct Refusal {
  ProgramId program;
  std::string sentence;  // the verifier's own last words
  std::string log;
  uint32_t insn = 0;
  int code = 0;  // errno
};

struct PerfEvent {
  uint32_t type = 0;  // PERF_TYPE_*
  uint64_t config = 0;
  uint64_t config1 = 0;  // uprobe: path is passed by `path`; breakpoint: address
  uint64_t config2 = 0;
  uint64_t period = 0;  // 0: none; a count, or Hz if `is_frequency`
  bool is_frequency = false;
  uint32_t breakpoint_type = 0;
  int32_t pid = -1;              // -1: every process
  int32_t cpu = -1;              // -1: every CPU (only with a pid), else one
  bool for_new_threads = false;  // also for threads and processes that `pid`, a thread, starts from now on
  bool is_user_probe = false;
  std::string path = {};  // what config1 points to: a uprobe's file, a kprobe's function
};

struct UprobeMulti {
  std::string path;
  std::vector<uint64_t> offsets;
  std::vector<uint64_t> reference_counters;  // as many as offsets, or none
  std::vector<uint64_t> cookies;
  uint32_t pid = 0;        // 0: every process
  bool is_return = false;  // not of a session, which the program was loaded for
};

// One place in the kernel's code, by name or by address.
struct Kprobe {
  std::string function;  // "": `address` says where
  uint64_t address = 0;
  uint64_t offset = 0;  // behind the function's start
  bool is_return = false;
};

struct KprobeMulti {
  std::vector<std::string> functions;  // each once
  std::vector<uint64_t> cookies;       // as many
  bool is_return = false;              // not of a session, which the program was loaded for
};

class Machine {
 public:
  virtual ~Machine() = default;

  virtual bool try_feature(kernel::Feature feature) = 0;  // does a small thing that needs it, and undoes it
  // Whether programs of a type (enum bpf_prog_type) may call the kernel's function with this BTF id.
  virtual bool try_kfunc(uint32_t /*btf_id*/, uint32_t /*program_type*/) { return true; }
  // Where the ids of kernel functions and structs in vmlinux BTF come from; some features cannot be tried without.
  struct BtfLookup {
    std::function<std::optional<uint32_t>(std::string_view)> kfunc;
    std::function<std::optional<uint32_t>(std::string_view)> struct_tag;
  };
  virtual void use_btf(BtfLookup lookup) = 0;

  // Creates all maps and loads all programs, in place of those of an earlier call. On a refusal `refusal()` tells which
  // and why.
  virtual Status load(const program::Program& program, const types::Types& types, const source::Sources& sources) = 0;
  virtual const std::optional<Refusal>& refusal() const = 0;
  // The verifier's log of every program, for --dump=verifier; set before `load`.
  virtual void keep_verifier_log(bool keep) = 0;
  virtual const std::string& verifier_log() const = 0;

  // ---- Maps
  virtual std::span<std::byte> memory(MapId map) = 0;  // an mmapable array, live
  // Of an array of which only `first_bytes` of each value can be accessed yet, makes the whole value accessible.
  virtual Status map_value(MapId /*map*/, uint32_t /*index*/) { return {}; }
  // Every key with its value; of per-CPU maps all CPUs' values, each padded to 8 bytes. Read in batches.
  virtual Status for_each(
      MapId map,
      const std::function<void(std::span<const std::byte> key, std::span<const std::byte> value)>& visit) = 0;
  virtual std::optional<std::vector<std::byte>> lookup(MapId map, std::span<const std::byte> key) = 0;
  virtual Status update(MapId map, std::span<const std::byte> key, std::span<const std::byte> value) = 0;
  virtual Status remove(MapId map, std::span<const std::byte> key) = 0;

  // ---- Programs
  // Runs a kSyscall or kRawTracepoint program once, now, without an event.
  virtual Status run(ProgramId program) = 0;
  // The same `count` times: what the last run returned, and how long one took in the kernel.
  struct Measured {
    uint32_t result = 0;
    uint64_t average_ns = 0;
  };
  virtual Result<Measured> measure(ProgramId program, uint64_t count) = 0;
  virtual Status attach_raw_tracepoint(ProgramId program, const std::string& name, uint64_t cookie) = 0;
  virtual Status attach_tracing(ProgramId program, uint64_t cookie) = 0;  // tp_btf, fentry, fexit, iter: by its btf id
  virtual Status attach_perf_event(ProgramId program, const PerfEvent& event, uint64_t cookie) = 0;
  virtual Status attach_uprobe(ProgramId program, const std::string& path, uint64_t offset, uint64_t reference_counter,
                               bool is_return, std::optional<uint32_t> pid, uint64_t cookie) = 0;
  virtual Status attach_uprobe_multi(ProgramId program, const UprobeMulti& probes) = 0;
  virtual Status attach_kprobe(ProgramId program, const Kprobe& probe, uint64_t cookie);
  virtual Status attach_kprobe_multi(ProgramId program, const KprobeMulti& probes);
  // Starts a walk of a kIter program over all that there is, in a helper process; a descriptor in `walks` becomes
  // readable when it is done.
  virtual Status start_walk(ProgramId program);
  // The same, but for others to walk: whoever reads the file `path`, below /sys/fs/bpf, runs the program.
  virtual Status pin_iterator(ProgramId program, const std::string& path);
  virtual std::vector<int> iterators() const { return {}; }
  virtual uint64_t attached_count() const = 0;
  // Asked before each attaching: once it says true, all of them fail with ECANCELED. A wildcard may take seconds.
  virtual void cancel_attaching_when(const std::function<bool()>& /*is_cancelled*/) {}
  // A function of a wildcard that nobody may probe, and why: said at the end.
  struct SkippedProbe {
    std::string name;
    std::string reason;
  };
  void skip(SkippedProbe function) { skipped_probes_.push_back(std::move(function)); }
  const std::vector<SkippedProbe>& skipped_probes() const { return skipped_probes_; }
  void forget_skipped_probes() { skipped_probes_.clear(); }  // where it was not the kernel that refused
  virtual void detach_watchpoints(uint64_t) {}               // of this address
  // Events of its probes for which the kernel did not run the program, as it, or another, was running already. Of what
  // is attached, and of what `detach_all` has detached. Nothing where the kernel does not count them.
  virtual std::optional<uint64_t> skipped_runs(ProgramId) { return 0; }
  // Nothing fires once this returns, or, where closing is slow, soon after; reading the maps stays possible.
  virtual void detach_all() = 0;

  // ---- Time and signals, so that a simulator can own them
  virtual uint64_t now_ns() = 0;  // CLOCK_BOOTTIME, as `nsecs` is

 private:
  std::vector<SkippedProbe> skipped_probes_;
};

inline Status Machine::attach_kprobe(ProgramId, const Kprobe&, uint64_t) { return fail("no kprobes here"); }
inline Status Machine::attach_kprobe_multi(ProgramId, const KprobeMulti&) { return fail("no kprobes here"); }

inline Status Machine::start_walk(ProgramId) { return fail("no iterators here"); }
inline Status Machine::pin_iterator(ProgramId, const std::string&) { return fail("no iterators here"); }

// This machine.
std::unique_ptr<Machine> open_linux();

}  // namespace espy::load
