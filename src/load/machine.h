// load: every effect on the kernel, by bpf(2) and perf_event_open(2).
//
// Machine: every operation that changes the kernel. Kernel (kernel/kernel.h) has the queries.
//
// In: a Program. Out: maps, loaded programs, attached links. Two implementations: Linux (linux.cc, over the bpf(2)
// wrappers of bpf.h) and simulator/. The destructor removes all that the Machine created.
// `detach_all` detaches the programs before; a helper process closes links that are slow to close, so that espy exits
// at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "kernel/features.h"
#include "kernel/processes.h"
#include "load/refusal.h"
#include "program/program.h"
#include "recording/recording.h"
#include "source/source.h"

namespace espy::load {

using program::MapId;
using program::ProgramId;

struct PerfEvent {
  uint32_t type = 0;  // PERF_TYPE_*
  uint64_t config = 0;
  uint64_t config1 = 0;  // breakpoint: the address; ignored if `path` is set
  uint64_t config2 = 0;
  uint64_t period = 0;  // 0: none; a count, or Hz if `is_frequency`
  bool is_frequency = false;
  uint32_t breakpoint_type = 0;
  int32_t pid = -1;              // -1: every process
  int32_t cpu = -1;              // -1: every CPU (only with a pid), else one
  bool on_each_cpu = false;      // one of several, which together see all CPUs
  bool for_new_threads = false;  // also for threads and processes that the thread `pid` starts
  bool is_user_probe = false;
  std::string path = {};  // config1 points to it: a uprobe's file, a kprobe's function
};

struct UprobeMulti {
  std::string path;
  std::vector<uint64_t> offsets;
  std::vector<uint64_t> reference_counters;  // one for each offset, or none
  std::vector<uint64_t> cookies;
  uint32_t pid = 0;        // 0: every process
  bool is_return = false;  // ignored for programs loaded for a session
};

// A location in the kernel's code, by name or by address.
struct Kprobe {
  std::string function;  // "": at `address`
  uint64_t address = 0;
  uint64_t offset = 0;  // from the function's start
  bool is_return = false;
  uint32_t max_calls = 0;  // with is_return: how many calls that are in progress at a time need to be seen to return
};

// Events of a program's probes that did not run it.
struct SkippedRuns {
  uint64_t count = 0;
  bool are_calls = false;  // perhaps because the kernel had no room to follow more calls, until they return
};

struct KprobeMulti {
  std::vector<std::string> functions;    // each once, or with its addresses
  std::vector<uint64_t> cookies;         // one for each function
  std::vector<uint64_t> addresses = {};  // one for each function; empty: the kernel looks for the names
  bool is_return = false;                // ignored for programs loaded for a session
};

class Machine {
 public:
  virtual ~Machine() = default;

  // True if the kernel has the feature: tries an operation that needs it, and undoes it.
  virtual bool try_feature(kernel::Feature feature) = 0;
  // True if programs of a type (enum bpf_prog_type) may call the kernel function with this BTF id.
  virtual bool try_kfunc(uint32_t /*btf_id*/, uint32_t /*program_type*/) { return true; }
  // Looks up ids of kernel functions and structs in vmlinux BTF. Some features are not found without it.
  struct BtfLookup {
    std::function<std::optional<uint32_t>(std::string_view)> kfunc;
    std::function<std::optional<uint32_t>(std::string_view)> struct_tag;
    std::function<bool(std::string_view tag, std::string_view member)> has_member;
  };
  virtual void use_btf(BtfLookup lookup) = 0;

  // Creates all maps and loads all programs, replacing the maps and programs of an earlier call. If the verifier
  // refuses a program, `refusal()` is set.
  virtual Status load(const program::Program& program, const types::Types& types, const source::Sources& sources) = 0;
  virtual const std::optional<Refusal>& refusal() const = 0;
  // Keeps the verifier's log of every program, for --dump=verifier. Call it before `load`.
  virtual void keep_verifier_log(bool keep) = 0;
  virtual const std::string& verifier_log() const = 0;

  // ---- Maps
  virtual std::span<std::byte> memory(MapId map) = 0;  // an mmapable array, live
  // Maps a whole value of an array of which only `first_bytes` of each value are mapped.
  virtual Status map_value(MapId /*map*/, uint32_t /*index*/) { return {}; }
  // Adds `count` arrays to an array of maps, from the index `first` on. Returns their memory, live until the next
  // `load`.
  virtual Result<std::vector<std::span<std::byte>>> add_arrays(MapId /*map*/, uint32_t /*first*/, uint32_t /*count*/) {
    return fail("no arrays of maps here");
  }
  // Calls `visit` for every entry; a per-CPU value has the values of all CPUs, each padded to 8 bytes. Reads in
  // batches.
  virtual Status for_each(
      MapId map,
      const std::function<void(std::span<const std::byte> key, std::span<const std::byte> value)>& visit) = 0;
  virtual std::optional<std::vector<std::byte>> lookup(MapId map, std::span<const std::byte> key) = 0;
  virtual Status update(MapId map, std::span<const std::byte> key, std::span<const std::byte> value) = 0;
  // Writes the value of a key that exists; returns whether it does.
  virtual Result<bool> replace(MapId map, std::span<const std::byte> key, std::span<const std::byte> value) = 0;
  // Returns whether the key existed.
  virtual Result<bool> remove(MapId map, std::span<const std::byte> key) = 0;
  // Whether this process may not use maps that are open, because it lacks CAP_BPF. Some kernels ask for it each time.
  virtual bool refuses_maps() { return false; }

  // ---- Programs
  // Runs a kSyscall or kRawTracepoint program once, without an event.
  virtual Status run(ProgramId program) = 0;
  // Runs it `count` times; returns the last result and the average time of a run in the kernel.
  struct Measured {
    uint32_t result = 0;
    uint64_t average_ns = 0;
  };
  virtual Result<Measured> measure(ProgramId program, uint64_t count) = 0;
  // Makes the kernel count the runs of all programs of the machine, and their time, until it is called with false.
  // Fails if it may not be done here.
  virtual Status count_runs(bool /*on*/) { return fail("no statistics here"); }
  struct Runs {
    uint64_t count = 0, ns = 0;
  };
  // Returns the counts of a program so far.
  virtual Runs counted_runs(ProgramId /*program*/) { return {}; }
  // Returns the time that the kernel counts for a program that does nothing, which is the time of the counting. 0:
  // unknown.
  virtual uint64_t counting_ns() { return 0; }
  // Returns the memory that the kernel has for a map now. 0: unknown.
  virtual uint64_t memory_bytes(MapId /*map*/) { return 0; }
  virtual Status attach_raw_tracepoint(ProgramId program, const std::string& name, uint64_t cookie) = 0;
  virtual Status attach_tracing(ProgramId program, uint64_t cookie) = 0;  // tp_btf, fentry, fexit: by attach_btf_id
  virtual Status attach_perf_event(ProgramId program, const PerfEvent& event, uint64_t cookie) = 0;
  virtual Status attach_uprobe(ProgramId program, const std::string& path, uint64_t offset, uint64_t reference_counter,
                               bool is_return, std::optional<uint32_t> pid, uint64_t cookie) = 0;
  virtual Status attach_uprobe_multi(ProgramId program, const UprobeMulti& probes) = 0;
  virtual Status attach_kprobe(ProgramId program, const Kprobe& probe, uint64_t cookie);
  virtual Status attach_kprobe_multi(ProgramId program, const KprobeMulti& probes);
  // The addresses of all functions of the kernel that have the name, for each of "name" or "name [module]"; none where
  // they are not known.
  virtual std::vector<std::vector<uint64_t>> kernel_addresses(const std::vector<std::string>& functions) {
    return std::vector<std::vector<uint64_t>>(functions.size());
  }
  // Runs a kIter program over all its objects in a helper process. A descriptor of `iterators` becomes readable when it
  // has finished. `target`: union bpf_iter_link_info, for the kinds that need it.
  virtual Status start_iterator(ProgramId program, std::span<const uint32_t> target);
  // Pins the iterator as the file `path`, below /sys/fs/bpf: reading it runs the program.
  virtual Status pin_iterator(ProgramId program, std::span<const uint32_t> target, const std::string& path);
  // Pidfds of the helper processes of start_iterator.
  virtual std::vector<int> iterators() const { return {}; }
  virtual uint64_t attached_count() const = 0;
  // Sets a function that is called before each attachment; once it returns true, attaching fails with ECANCELED.
  virtual void cancel_attaching_when(const std::function<bool()>& /*is_cancelled*/) {}
  // A probe that the kernel refuses, for the loss report.
  struct SkippedProbe {
    std::string name;
    std::string reason;
    bool is_named = false;  // skipped as config.missing_probes allows, not as one match of a wildcard
  };
  void skip(SkippedProbe function) { skipped_probes_.push_back(std::move(function)); }
  const std::vector<SkippedProbe>& skipped_probes() const { return skipped_probes_; }
  // Call it if attaching was cancelled, as probes were then not skipped because of the kernel.
  void forget_skipped_probes() { skipped_probes_.clear(); }
  // After detach_all: the CPUs on which perf events by CPU have missed a part of the run, because the CPU was offline
  // or came online. The kernel takes the events off a CPU that goes offline, and does not put them back.
  virtual std::vector<uint32_t> unwatched_cpus() const { return {}; }
  virtual void detach_watchpoints(uint64_t /*address*/) {}
  // Returns the events of its probes that did not run the program because it or another one was running already, also
  // after `detach_all`. Returns nullopt if the kernel does not count them.
  virtual std::optional<SkippedRuns> skipped_runs(ProgramId) { return SkippedRuns(); }
  // Call it before attaching if programs shall be detached for a while.
  virtual void keep_attachments() {}
  // Detaches a program, soon after it returns: closing a link may take long.
  virtual Status suspend(ProgramId /*program*/) { return fail("programs are not detached here"); }
  // True once the last `suspend` of the program has detached it.
  virtual bool is_suspended(ProgramId /*program*/) { return false; }
  // Attaches a suspended program again, without changes. Requires that it is detached.
  virtual Status resume(ProgramId /*program*/) { return {}; }
  // Nanoseconds that the threads of a process have been on a CPU; nullopt if it has ended.
  virtual std::optional<uint64_t> process_cpu_ns(uint32_t /*pid*/) { return std::nullopt; }
  // ... and that they have waited for one, by ticks of the kernel; nullopt if unknown.
  virtual std::optional<kernel::SchedulingTimes> scheduling_times(uint32_t /*pid*/) { return std::nullopt; }
  // Detaches all programs. Programs with links that are slow to close follow soon after it returns. Maps stay readable.
  virtual void detach_all() = 0;

  // ---- Time, which a simulator controls
  virtual uint64_t now_ns() = 0;  // CLOCK_BOOTTIME, as `nsecs` is
  // CLOCK_REALTIME less CLOCK_BOOTTIME; nullopt: as on this machine.
  virtual std::optional<int64_t> wall_clock_offset_ns() { return std::nullopt; }
  // The names of the addresses in stacks, if these are of a recording; null: names of this machine.
  virtual const recording::FrameNames* frame_names() { return nullptr; }

 private:
  std::vector<SkippedProbe> skipped_probes_;
};

inline Status Machine::attach_kprobe(ProgramId, const Kprobe&, uint64_t) { return fail("no kprobes here"); }
inline Status Machine::attach_kprobe_multi(ProgramId, const KprobeMulti&) { return fail("no kprobes here"); }

inline Status Machine::start_iterator(ProgramId, std::span<const uint32_t>) { return fail("no iterators here"); }
inline Status Machine::pin_iterator(ProgramId, std::span<const uint32_t>, const std::string&) {
  return fail("no iterators here");
}

std::unique_ptr<Machine> open_linux();  // the Machine of the running kernel

}  // namespace espy::load
